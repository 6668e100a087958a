"""What programs import from torch.utils._mode_utils."""

from __future__ import annotations

from contextlib import contextmanager

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@contextmanager
def no_dispatch() -> Iterator[None]:
    """Runs ops without asking modes and the classes of tensors, in a with block.

    Example:
        >>> from rushlight.utils._mode_utils import no_dispatch
        >>> with no_dispatch():
        ...     torch.ones(2)
        tensor([1., 1.])
    """
    before = _C._set_dispatch_disabled(True)
    try:
        yield
    finally:
        _C._set_dispatch_disabled(before)


def all_same_mode(modes: list[Any]) -> bool:
    """Returns whether the modes of a list are all one."""
    return all(mode == modes[0] for mode in modes)
