"""The default source of random numbers: its seed and its state.

Owns nothing itself: the generator is _C.default_generator, which all random ops use that are not
given one.
"""

from __future__ import annotations

import contextlib

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from rushlight import Generator, Tensor

__all__ = [
    "set_rng_state",
    "get_rng_state",
    "manual_seed",
    "seed",
    "initial_seed",
    "fork_rng",
    "thread_safe_generator",
]

default_generator: Generator = _C.default_generator


def manual_seed(seed: int) -> Generator:
    """Sets the seed of random numbers and returns the default generator.

    The same seed gives the same numbers on every device and for any number of threads.

    Args:
        seed: integer from -2**63 to 2**64 - 1.

    Example:
        >>> first = torch.manual_seed(0) and torch.rand(2)
        >>> again = torch.manual_seed(0) and torch.rand(2)
        >>> torch.equal(first, again)
        True
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Sets a seed that the operating system chose, and returns it."""
    return default_generator.seed()


def initial_seed() -> int:
    """Returns the seed that was set last.

    Example:
        >>> _ = torch.manual_seed(7)
        >>> torch.initial_seed()
        7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Returns the state of the default generator, as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the state of the default generator.

    Args:
        new_state: what get_rng_state returned.

    Example:
        >>> state = torch.get_rng_state()
        >>> first = torch.rand(2)
        >>> torch.set_rng_state(state)
        >>> torch.equal(first, torch.rand(2))
        True
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, device_type: str | None = None
) -> Iterator[None]:
    """Restores the state of the default generator at the end of a with block.

    Args:
        devices: accepted for PyTorch's sake; one generator serves all devices.
        enabled: False does nothing.
        device_type: the type of the devices.

    Raises:
        RuntimeError: device_type is no type of a device.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> with torch.random.fork_rng():
        ...     inside = torch.rand(2)
        >>> torch.equal(inside, torch.rand(2))
        True
    """
    if device_type is not None:
        _C.device(device_type)
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def thread_safe_generator() -> Generator | None:
    """Returns the generator of its own that a thread of a DataLoader has, else None.

    None stands for the default generator in all random ops, which is safe from any thread, too.

    Example:
        >>> torch.random.thread_safe_generator() is None
        True
    """
    from rushlight.utils.data import get_worker_info

    info: Any = get_worker_info()
    if getattr(info, "worker_method", None) != "thread" or info.rng is None:
        return None
    return info.rng.torch_generator
