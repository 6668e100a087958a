"""Which attributes and methods of Tensor __torch_function__ is told of, beside ops.

Ops ask by themselves; bindings/told.cpp asks when one of these members is looked up. Only modes are
told, and classes with a __torch_function__ of their own, where they leave _hears_attributes True.
"""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["tell_of_members", "told", "told_of"]

_told: list[Any] = []


def told_of() -> list[Any]:
    """Returns what classes are told of: methods, and __get__ of attributes."""
    return _told


def tell_of_members(cls: type) -> None:
    """Lets classes be told of the members of a class, as instances look them up."""
    methods = (type(tell_of_members), type(_C.TensorBase.size))
    attributes = (property, type(vars(_C.TensorBase)["shape"]))
    members = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
    for name, member in members.items():
        if name.startswith("_") or name == "as_subclass":
            continue
        if isinstance(member, methods):
            _C._tell_of(member, _asking(member), None)
            _told.append(member)
        elif isinstance(member, attributes):
            _C._tell_of(member, member.__get__, member.__set__)
            _told.append(member.__get__)


def _asking(method: Any) -> Any:
    call_taken_over = _C._call_taken_over

    def asking(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call_taken_over(method, (self, *args), kwargs)

    return _named_as(method, asking)


def told(method: F) -> F:
    """Returns a special method of Tensor of which classes are told as of its other methods."""
    body: Any = method
    hears, call_taken_over = _C._hears_attributes, _C._call_taken_over

    def asking(self: Any, *args: Any, **kwargs: Any) -> Any:
        if hears(self):
            return call_taken_over(asking, (self, *args), kwargs)
        return body(self, *args, **kwargs)

    _told.append(asking)
    return _named_as(method, asking)


def _named_as(method: Any, function: Any) -> Any:
    # Not by functools, which takes longer to import than all that a program begins with.
    for name in ("__name__", "__qualname__", "__doc__"):
        setattr(function, name, getattr(method, name))
    return function
