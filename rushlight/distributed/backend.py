"""The names of the ways to communicate, and which of them there are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import rushlight as rl
from rushlight import _C

if TYPE_CHECKING:
    from rushlight.distributed.store import Store

__all__ = [
    "Backend",
    "BackendConfig",
    "get_default_backend_for_device",
    "is_backend_available",
    "is_nccl_available",
]


class _Plugin(NamedTuple):
    creator_fn: Callable[..., Any]
    extended_api: bool


@dataclass
class _DistributedBackendOptions:
    """What the function of a backend with the extended interface is told of the group to make."""

    store: Store
    group_rank: int
    group_size: int
    timeout: timedelta
    group_id: str
    global_ranks_in_group: list[int]


def _fake(told: _DistributedBackendOptions, pg_options: Any) -> Any:
    from rushlight.distributed.fake_group import FakeGroup

    return FakeGroup(told.group_rank, told.group_size)


class Backend(str):
    """A backend's name in small letters: "gloo" for tensors of the CPU, "nccl" for those of GPUs.

    With "fake" one process plays a rank of a job of any size: what the others bring is what it
    brings itself. It shows shapes, memory and the order of calls, not the numbers.

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
    FAKE = "fake"

    backend_list: ClassVar = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map: ClassVar = {"cpu": GLOO, "cuda": NCCL}
    backend_capability: ClassVar[dict[str, list[str]]] = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda"],
    }
    _plugins: ClassVar = {"FAKE": _Plugin(_fake, True)}  # by name in capitals

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {name!r}.")
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(
        cls,
        name: str,
        func: Callable[..., Any],
        extended_api: bool = False,
        devices: str | Sequence[str] | None = None,
    ) -> None:
        """Gives a name to a kind of group of your own, for init_process_group and new_group.

        Args:
            name: of the backend, also an attribute of this class from now on, in capitals.
            func: gets a store for the group alone, the rank in the group, its size and the timeout,
                and returns an instance of a class that inherits from ProcessGroup.
            extended_api: whether func gets two arguments instead: an object with store,
                group_rank, group_size, timeout, group_id and global_ranks_in_group; and pg_options.
            devices: the types of devices of its tensors. By default, with a warning, "cpu" and
                "cuda".

        Example:
            >>> class Alone(torch.distributed.ProcessGroup):
            ...     def allreduce(self, tensors, opts):
            ...         tensors[0].mul_(2)
            >>> make = lambda store, rank, size, timeout: Alone(rank, size)
            >>> torch.distributed.Backend.register_backend("alone", make, devices="cpu")
            >>> store = torch.distributed.HashStore()
            >>> torch.distributed.init_process_group("alone", store=store, rank=0, world_size=1)
            >>> x = torch.ones(2)
            >>> torch.distributed.all_reduce(x)
            >>> x
            tensor([2., 2.])
            >>> torch.distributed.destroy_process_group()
        """
        key = name.lower()
        if devices is None:
            warnings.warn(
                f"Device capability of {name} unspecified, assuming `cpu` and `cuda`. "
                "Please specify it by `devices`.",
                stacklevel=2,
            )
            kinds = ["cpu", "cuda"]
        else:
            kinds = [devices] if isinstance(devices, str) else list(devices)
            for kind in kinds:
                cls.default_device_backend_map.setdefault(kind, key)
        if not hasattr(cls, name.upper()):
            setattr(cls, name.upper(), key)
        if key not in cls.backend_list:
            cls.backend_list.append(key)
        cls.backend_capability[key] = kinds
        cls._plugins[name.upper()] = _Plugin(func, extended_api)


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
            name = _available(text)
            for device in Backend.backend_capability[name]:
                self.device_backend_map[device] = name
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

    def get_device_backend_map(self) -> dict[str, Backend]:
        """Returns the backend of each type of device."""
        return self.device_backend_map

    def plugin(self) -> _Plugin | None:
        """Returns the first that was registered, if there is one."""
        found = (Backend._plugins.get(name.upper()) for name in self.device_backend_map.values())
        return next(filter(None, found), None)

    def __str__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())


def _available(name: str) -> Backend:
    if name not in Backend.backend_list:
        raise ValueError(f"init_process_group: unknown backend {name!r}. Use 'gloo'.")
    if not is_backend_available(name):
        reason = _C._nccl_problem() if name == Backend.NCCL else "Use backend='gloo'."
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
        name == Backend.GLOO
        or name.upper() in Backend._plugins
        or (name == Backend.NCCL and is_nccl_available())
        for name in names
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
