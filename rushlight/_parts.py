"""For classes whose methods are written in several files, each in a base class of its own."""

from __future__ import annotations


def name_after(cls: type) -> None:
    """Gives the methods that a class has from its bases its name: errors and profiles show it.

    Example:
        >>> from rushlight._parts import name_after
        >>> class Part:
        ...     def add(self, number): ...
        >>> class Whole(Part): ...
        >>> name_after(Whole)
        >>> Whole().add()
        Traceback (most recent call last):
        TypeError: Whole.add() missing 1 required positional argument: 'number'
    """
    function = type(name_after)
    for part in cls.__mro__[1:]:
        for method in vars(part).values():
            if isinstance(method, function) and method.__qualname__.startswith(part.__name__):
                method.__qualname__ = f"{cls.__name__}.{method.__name__}"
                method.__module__ = cls.__module__
