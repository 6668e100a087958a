"""Switches of MIOpen, the library of AMD's GPUs, which are not supported."""

from __future__ import annotations

import sys

from rushlight.backends._switches import Switch, SwitchModule, change, changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any


def set_flags(_immediate: bool | None = None) -> tuple[Any, ...]:
    """Sets what is not None, and returns the setting from before."""
    return change(_Miopen, immediate=_immediate)


def flags(immediate: bool = False) -> AbstractContextManager[None]:
    """Sets the switch for a block."""
    return changed(_Miopen, immediate=immediate)


class _Miopen(SwitchModule):
    immediate = Switch(False, setter="set_immediate_miopen")


sys.modules[__name__].__class__ = _Miopen
