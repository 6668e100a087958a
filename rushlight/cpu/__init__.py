"""torch.cpu: what torch.cuda has, for the CPU, where nothing is asynchronous.

Programs that ask for the module of a device's kind find the same names here.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from rushlight import _later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import MappingProxyType
    from typing import Any

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """Stands where a stream of a GPU would; work on the CPU is done when a call returns."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Stream) -> None:
        """Does nothing: the other stream has nothing to wait for."""

    def synchronize(self) -> None:
        """Does nothing: all work is done."""


class Event:
    """Stands where an event of a GPU would; it has always come to pass."""

    def query(self) -> bool:
        """Returns True."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Does nothing: there is nothing to wait for."""

    synchronize = wait = record


_stream = Stream()


def is_available() -> bool:
    """Returns True."""
    return True


def is_initialized() -> bool:
    """Returns True."""
    return True


def device_count() -> int:
    """Returns 1: all processors are one device."""
    return 1


def get_capabilities() -> MappingProxyType[str, bool | str]:
    """Returns which instruction sets the processor has, by their names in PyTorch.

    Of x86-64 these are among others "avx2", "fma3", "avx512_f" and "amx_tile", of ARM "neon",
    "bf16" and "sve"; beside them "architecture" is the processor's family. They are read once.

    Example:
        >>> torch.cpu.get_capabilities()["architecture"] in ("x86_64", "aarch64")
        True
    """
    from rushlight.cpu._capabilities import CAPABILITIES

    return CAPABILITIES


def current_device() -> str:
    """Returns "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one CPU."""


def synchronize(device: Any = None) -> None:
    """Does nothing: all work is done."""


def current_stream(device: Any = None) -> Stream:
    """Returns the one stream."""
    return _stream


def stream(stream: Stream | None) -> AbstractContextManager[None]:
    """Returns a context in which nothing changes.

    Example:
        >>> with torch.cpu.stream(torch.cpu.Stream()):
        ...     torch.ones(1)
        tensor([1.])
    """
    return nullcontext()


__getattr__ = _later.imports(__name__, ("amp",))
