"""What a program can reach besides its arguments: globals, closures, attributes and containers.

Owns the walk that finds them. Two walks with equal keys found the same values and the same tensors,
and what a walk found can be put back. An object into which nobody can look counts as itself; the
code of libraries does not change.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import itertools
import sys
import sysconfig
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CellType, CodeType
from typing import Any

import rushlight as rl
from rushlight import Size, Tensor
from rushlight.fx._code import Identity
from rushlight.nn.parameter import is_lazy

__all__ = ["State", "UnseenError", "describe"]

_MOST = 20_000  # objects; to walk over more takes longer than most programs
_PLAIN = {type(None), bool, int, str, bytes, type(...), range, rl.dtype, rl.device, Size}
_LIBRARIES = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)
_CONTAINERS = (list, deque, set, OrderedDict, dict)
# What the language keeps in a class; it is seen elsewhere or of no use to a program.
_OF_CLASSES = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__slots__"),
    *("__slotnames__", "__firstlineno__", "__static_attributes__"),
}


class UnseenError(RuntimeError):
    """A program reaches too much, or something that changes without a trace."""


def describe(value: Any) -> Any:
    """A key that two values share only if a program cannot tell them apart by it."""
    if isinstance(value, Tensor):
        strides = value.stride() if value.layout is rl.strided else None
        kind = (type(value), value.layout, value.dtype, value.device)
        return (*kind, value.shape, strides, value.requires_grad, value.is_leaf)
    if isinstance(value, (float, complex)):
        return type(value), repr(value)  # of two zeros and of NaN, == says the wrong thing
    return (type(value), value) if type(value) in _PLAIN else Identity(value)


class State:
    """What can be reached from some objects.

    Args:
        roots: functions, modules, and whatever else a program has at hand.

    Attributes:
        key: equals that of another state that a program cannot tell from this one.

    Raises:
        UnseenError: if there is too much, an iterator or an array, which change unseen, or a
            parameter that has no shape yet.
    """

    def __init__(self, *roots: Any) -> None:
        self._numbers: dict[int, int] = {}
        self._found: list[Any] = []  # all that has a number, so that no other object gets its id
        self._places: list[_Place] = []
        self._parts: list[Any] = []
        self._visit_all(roots)
        self.key = tuple(self._parts)

    def keep(self) -> Callable[[], bool]:
        """Returns a function that puts back what everything holds now, and says if it changed."""
        kept = [(place, place.read()) for place in self._places]

        def restore() -> bool:
            changed = [
                (place, before) for place, before in kept if not _is_same(place.read(), before)
            ]
            for place, before in changed:
                place.write(before)
            return bool(changed)

        return restore

    def has_gradient(self, tensor: Tensor) -> bool:
        """Returns whether a tensor is the gradient of one that was found."""
        found = (value for value in self._found if isinstance(value, Tensor) and value.is_leaf)
        return any(value.grad is tensor for value in found)

    def _visit(self, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN or kind in (float, complex):
            self._parts.append(describe(value))
            return
        number = self._numbers.setdefault(id(value), len(self._numbers))
        if number < len(self._found):
            self._parts.append(number)
            return
        if number > _MOST:
            raise UnseenError("The program reaches too many objects.")
        self._found.append(value)
        if isinstance(value, Tensor):
            if is_lazy(value):
                raise UnseenError("The program reaches a parameter that has no shape yet.")
            self._parts += Identity(value), describe(value)
            self._places.append(_OfTensor(value))  # gradients come and go between calls
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, types.MethodType):
            self._visit_all((value.__func__, value.__self__))
        elif isinstance(value, functools.partial):
            self._visit_all((value.func, value.args, value.keywords))
        elif isinstance(value, (staticmethod, classmethod)):
            self._visit(value.__func__)
        elif isinstance(value, property):
            self._visit_all((value.fget, value.fset, value.fdel))
        elif isinstance(value, (tuple, frozenset)):
            self._parts += kind, len(value)
            self._visit_all(value)
        elif isinstance(value, _CONTAINERS):
            self._visit(kind)
            self._visit_place(_Container(value))
        elif isinstance(value, type):
            self._parts.append(Identity(value))
            if not _is_of_library(_file_of(value.__module__)):
                self._visit_all(value.__bases__)
                self._visit_place(_Attributes(value))
            return
        elif isinstance(value, (types.ModuleType, rl.Generator)):
            self._parts.append(Identity(value))
            return
        elif hasattr(kind, "__next__") or hasattr(kind, "__array__"):
            raise UnseenError(f"The program reaches a {kind.__name__}, which changes unseen.")
        elif hasattr(value, "__dict__") or _slots(kind):
            self._visit(kind)
        else:
            self._parts.append(Identity(value))
            return
        self._visit_place(_Attributes(value))

    def _visit_function(self, function: types.FunctionType) -> None:
        code = function.__code__
        self._parts.append(code)
        if _is_of_library(code.co_filename):
            return
        self._visit_all((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            self._visit_place(_Cell(cell))
        names = _names_in(code)
        used = _Names(function.__globals__, names)
        self._visit_place(used)
        for value in used.read():
            if isinstance(value, types.ModuleType) and not _is_of_library(_file_of(value.__name__)):
                self._visit_place(_Names(vars(value), names))

    def _visit_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self._visit(value)

    def _visit_place(self, place: _Place) -> None:
        held = place.read()
        self._places.append(place)
        self._parts.append(len(held))
        self._visit_all(held)


class _Place:
    """Where an object holds others."""

    def read(self) -> list[Any]:
        """Returns what it holds, with names before values if it has names."""
        raise NotImplementedError

    def write(self, held: list[Any]) -> None:
        """Lets it hold what read returned."""
        raise NotImplementedError


class _Container(_Place):
    """A list, a set or a dictionary; what its class makes of its methods does not matter."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._plain: Any = next(kind for kind in _CONTAINERS if isinstance(owner, kind))

    def read(self) -> list[Any]:
        if isinstance(self._owner, dict):
            return [part for pair in self._plain.items(self._owner) for part in pair]
        return list(self._plain.__iter__(self._owner))

    def write(self, held: list[Any]) -> None:
        self._plain.clear(self._owner)
        if isinstance(self._owner, dict):
            self._plain.update(self._owner, _pairs(held))
        elif isinstance(self._owner, set):
            self._plain.update(self._owner, held)
        else:
            self._plain.extend(self._owner, held)


class _Cell(_Place):
    """A variable that functions share."""

    def __init__(self, owner: CellType) -> None:
        self._owner = owner

    def read(self) -> list[Any]:
        try:
            return [self._owner.cell_contents]
        except ValueError:  # it has no value yet
            return []

    def write(self, held: list[Any]) -> None:
        if held:
            self._owner.cell_contents = held[0]
        else:
            del self._owner.cell_contents


class _Names(_Place):
    """The names of a module that a function mentions."""

    def __init__(self, owner: dict[str, Any], names: tuple[str, ...]) -> None:
        self._owner = owner
        self._names = names

    def read(self) -> list[Any]:
        return _flat({name: self._owner[name] for name in self._names if name in self._owner})

    def write(self, held: list[Any]) -> None:
        for name in self._names:
            self._owner.pop(name, None)
        self._owner.update(_pairs(held))


class _Attributes(_Place):
    """The attributes that stand in an object, or in a class."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._plain: Any = type if isinstance(owner, type) else object  # runs no code of a program

    def read(self) -> list[Any]:
        held = {}
        for name in _slots(type(self._owner)):
            with contextlib.suppress(AttributeError):  # it has no value yet
                held[name] = object.__getattribute__(self._owner, name)
        names = getattr(self._owner, "__dict__", {})
        return _flat(held | {k: v for k, v in names.items() if k not in _OF_CLASSES})

    def write(self, held: list[Any]) -> None:
        before = _pairs(held)
        for name in _pairs(self.read()).keys() - before.keys():
            self._plain.__delattr__(self._owner, name)
        for name, value in before.items():
            self._plain.__setattr__(self._owner, name, value)


class _OfTensor(_Place):
    """The gradient of a tensor."""

    def __init__(self, owner: Tensor) -> None:
        self._owner = owner

    def read(self) -> list[Any]:
        return [self._owner.grad, self._owner.requires_grad] if self._owner.is_leaf else []

    def write(self, held: list[Any]) -> None:
        self._owner.grad = held[0]
        self._owner.requires_grad_(held[1])


def _is_same(now: list[Any], before: list[Any]) -> bool:
    """Whether a place holds the same objects, or plain values that are equal."""
    return len(now) == len(before) and all(
        a is b or (type(a) in _PLAIN and type(a) is type(b) and a == b)
        for a, b in zip(now, before, strict=True)
    )


def _flat(names: dict[Any, Any]) -> list[Any]:
    return [part for pair in names.items() for part in pair]


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


@functools.cache
def _is_of_library(file: str) -> bool:
    return file.startswith(_LIBRARIES)


def _file_of(module: str) -> str:
    """Where a module comes from; what has no file is part of Python, or typed in."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return file or (_LIBRARIES[0] if module in sys.builtin_module_names else "")


@functools.cache
def _names_in(code: CodeType) -> tuple[str, ...]:
    """All names that a function and those inside of it mention, besides local ones."""
    inside = (_names_in(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return tuple(dict.fromkeys(itertools.chain(code.co_names, *inside)))


def _slots(kind: type) -> tuple[str, ...]:
    """The names of what objects of a class hold outside of a dictionary."""
    return tuple(copyreg._slotnames(kind))  # pyright: ignore[reportAttributeAccessIssue]
