"""The repr of objects whose attributes have the names of their arguments."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["Shown"]


class Shown:
    """Base class, whose repr is the call that makes such an object: Name(argument=value, ...).

    A class lists in _shown which arguments those are.

    Example:
        >>> from rushlight._repr import Shown
        >>> class Crop(Shown):
        ...     _shown = ("size",)
        ...     size = 7
        >>> Crop()
        Crop(size=7)
    """

    _shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)}" for name in self._shown)
        return f"{type(self).__name__}({', '.join(shown)})"
