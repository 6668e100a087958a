"""Which mode of fake tensors is on, for libraries that ask."""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight._subclasses.fake_tensor import FakeTensorMode

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> FakeTensorMode | None:
    """Returns the innermost mode of fake tensors that is on, None if there is none."""
    modes = _C._dispatch_modes()
    if not modes:
        return None
    from rushlight._subclasses.fake_tensor import FakeTensorMode

    return next((mode for mode in reversed(modes) if isinstance(mode, FakeTensorMode)), None)


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """Returns the mode that is on, or else that of the fake tensors among some inputs.

    Args:
        inputs: tensors, also nested ones.

    Returns:
        The mode; None if none is on and no tensor is fake.

    Raises:
        AssertionError: if there are several.
    """
    from rushlight._subclasses.fake_tensor import maybe_get_fake_mode
    from rushlight.utils._pytree import tree_leaves

    modes = [active_fake_mode(), *map(maybe_get_fake_mode, tree_leaves(inputs))]
    found = [mode for mode in modes if mode is not None]
    for mode in found[1:]:
        if mode is not found[0]:
            raise AssertionError(f"fake mode {mode} doesn't match mode {found[0]}.")
    return found[0] if found else None
