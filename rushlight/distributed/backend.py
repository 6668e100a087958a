"""The names of the ways to communicate, and which of them there are."""

from __future__ import annotations

from typing import ClassVar

import rushlight as rl
from rushlight import _C

__all__ = [
    "Backend",
    "BackendConfig",
    "get_default_backend_for_device",
    "is_backend_available",
    "is_nccl_available",
]


class Backend(str):
    """A backend's name in small letters: "gloo" for tensors of the CPU, "nccl" for those of GPUs.

    Example:
        >>> torch.distributed.Backend("GLOO")
        'gloo'
    """

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"

    backend_list: ClassVar = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map: ClassVar = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {name!r}.")
        return super().__new__(cls, name.lower())


_WHY_NOT = {
    Backend.XCCL: "Use backend='gloo'.",
    Backend.UCC: "Use backend='gloo'.",
    Backend.MPI: "Use backend='gloo', and start the processes with rushlight.distributed.run.",
}


class BackendConfig:
    """The backend of each type of device.

    Args:
        backend: one name for all, or names like "cpu:gloo,cuda:nccl", the default. Where they name
            NCCL beside another, tensors of a GPU go through the CPU if it is missing.

    Raises:
        ValueError: for a name that is none.
        RuntimeError: for a backend that is not available.
    """

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, Backend] = {}
        text = Backend(backend)
        if text == Backend.UNDEFINED:
            for device, name in Backend.default_device_backend_map.items():
                self.device_backend_map[device] = Backend(name)
            return
        if ":" not in text:
            for device in ["cuda"] if text == Backend.NCCL else Backend.default_device_backend_map:
                self.device_backend_map[device] = _available(text)
            return
        for pair in text.split(","):
            device, colon, name = pair.partition(":")
            if not colon or device in self.device_backend_map:
                raise ValueError(
                    f"The custom backend string argument is invalid: {backend!r}. It names each "
                    'type of device once, as in "cpu:gloo,cuda:nccl".'
                )
            is_beside = device == "cuda" and name == Backend.NCCL and "," in text
            self.device_backend_map[device] = Backend(name) if is_beside else _available(name)

    def __str__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())


def _available(name: str) -> Backend:
    if name not in Backend.backend_list:
        raise ValueError(f"init_process_group: unknown backend {name!r}. Use 'gloo'.")
    if not is_backend_available(name):
        reason = _C._nccl_problem() if name == Backend.NCCL else _WHY_NOT[name]
        raise RuntimeError(f"init_process_group: the backend {name!r} is not available. {reason}")
    return Backend(name)


def is_backend_available(backend: str) -> bool:
    """Returns whether there is a backend of this name; for pairs, whether all are there.

    Example:
        >>> torch.distributed.is_backend_available("gloo")
        True
    """
    names = [pair.partition(":")[2] or pair for pair in backend.lower().split(",")]
    return all(
        name == Backend.GLOO or (name == Backend.NCCL and is_nccl_available()) for name in names
    )


def is_nccl_available() -> bool:
    """Returns whether there are GPUs, and NCCL (`pip install rushlight[nccl]`) to join them."""
    return not _C._nccl_problem()


def get_default_backend_for_device(device: str | rl.device) -> str:
    """Returns the backend that is used for tensors of a device.

    Raises:
        ValueError: if there is none.
    """
    kind = str(device).partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device: {device}")
    return Backend.default_device_backend_map[kind]
