"""Switches of NNPACK, which is not used; they keep what they are set to."""

from __future__ import annotations

import sys

from rushlight.backends._switches import Switch, SwitchModule, change, changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any


def is_available() -> bool:
    """Returns False."""
    return False


def set_flags(_enabled: bool | None = None) -> tuple[Any, ...]:
    """Sets what is not None, and returns the setting from before."""
    return change(_Nnpack, enabled=_enabled)


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """Sets the switch for a block."""
    return changed(_Nnpack, enabled=enabled)


class _Nnpack(SwitchModule):
    enabled = Switch(True, setter="set_enabled_NNPACK")


sys.modules[__name__].__class__ = _Nnpack
