"""Settings of init_rpc, with PyTorch's names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["BackendType", "RpcBackendOptions", "TensorPipeRpcBackendOptions"]


class BackendType(Enum):
    """The ways that calls can go; there is one, under PyTorch's name."""

    TENSORPIPE = "TENSORPIPE"


@dataclass
class RpcBackendOptions:
    """What all settings for init_rpc have; TensorPipeRpcBackendOptions are those that it takes.

    Args:
        rpc_timeout: seconds that a call may take, 0 for no limit.
        init_method: how the processes find each other, see init_process_group.
    """

    rpc_timeout: float = 60.0
    init_method: str = "env://"


@dataclass(kw_only=True)
class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """Settings of a process for init_rpc.

    Args:
        num_worker_threads: how many calls of others run at the same time.
        rpc_timeout, init_method: see RpcBackendOptions.
        device_maps, devices: accepted for PyTorch's sake; tensors of a GPU arrive on the GPU of the
            same number.
        _transports, _channels: accepted for PyTorch's sake: names of ways between processes.
    """

    num_worker_threads: int = 16
    device_maps: Any = None
    devices: Any = None
    _transports: list[str] | None = None
    _channels: list[str] | None = None

    def set_device_map(self, to: str, device_map: dict[Any, Any]) -> None:
        """Notes in device_maps which devices of this process go to which of another."""
        self.device_maps = (self.device_maps or {}) | {to: device_map}

    def set_devices(self, devices: list[Any]) -> None:
        """Notes the devices of this process."""
        self.devices = list(devices)
