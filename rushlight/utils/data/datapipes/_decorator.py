"""What marks classes and functions of data pipes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

C = TypeVar("C", bound=type)

__all__ = [
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]


class functional_datapipe:
    """Makes a class of pipes a method of all pipes of its kind.

    Args:
        name: the name of the method.
        enable_df_api_tracing: accepted for PyTorch's sake.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> @torch.utils.data.functional_datapipe("twice")
        ... class Twice(torch.utils.data.IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         for item in self.source:
        ...             yield from (item, item)
        >>> list(IterableWrapper("ab").twice())
        ['a', 'a', 'b', 'b']
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: C) -> C:
        if not issubclass(cls, (IterDataPipe, MapDataPipe)):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        base: Any = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        base.register_datapipe_as_function(self.name, cls)
        return cls


_determinism = False


class guaranteed_datapipes_determinism:
    """Refuses pipes without a fixed order while a with block lasts."""

    def __init__(self) -> None:
        global _determinism
        self._before, _determinism = _determinism, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        global _determinism
        _determinism = self._before


class non_deterministic:
    """Marks a class of pipes without a fixed order.

    Args:
        arg: the class, or a function of the pipe's arguments that tells whether it has none.
    """

    def __init__(self, arg: Any) -> None:
        is_class = isinstance(arg, type)
        self._cls: Any = arg if is_class else None
        self._has_no_order = (lambda *args, **kwargs: True) if is_class else arg

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._cls is None:  # arg was the function, and this is the class
            self._cls = args[0]
            return self
        if _determinism and self._has_no_order(*args, **kwargs):
            raise TypeError(
                f"{self._cls.__name__} is non-deterministic with these arguments, which "
                "guaranteed_datapipes_determinism() refuses."
            )
        return self._cls(*args, **kwargs)


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function; annotations are not checked."""
    return f


def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function; annotations are not checked."""
    return f


class runtime_validation_disabled:
    """Has no effect, as annotations are not checked."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass
