"""Names in graphs: of nodes, unique in a graph, and of what they call, as Python code spells it."""

from __future__ import annotations

import builtins
import keyword
import operator
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

_NOT_IN_NAMES = re.compile(r"[^0-9a-zA-Z_]+")
_NUMBERED = re.compile(r"(.*)_(\d+)$")
_MAGIC = re.compile(r"__(.+)__$")
_HUMP = re.compile(r"(?<=[a-z])([A-Z])")

# What generated code has under a name of its own.
_RESERVED = {"NoneType", "device", "inf", "nan", "rushlight", "torch"}

# Where people look for functions that private modules define.
_PUBLIC_HOMES = ("rushlight", "rushlight.nn.functional")


class Namespace:
    """Names that are given out once each."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}  # of objects that have one
        self._used: set[str] = set()
        self._counts: dict[str, int] = defaultdict(int)  # the last number after a name

    def create_name(self, candidate: str, obj: Any | None) -> str:
        """Returns a name that nothing else has, like the candidate.

        Args:
            candidate: a name, whose characters need not be those of Python's names.
            obj: what is named; asked again, it has the same name. None is nothing to remember.

        Example:
            >>> names = torch.fx.graph.Namespace()
            >>> [names.create_name("conv.1", None) for _ in range(3)]
            ['conv_1', 'conv_2', 'conv_3']
        """
        if obj is not None and obj in self._names:
            return self._names[obj]
        candidate = _NOT_IN_NAMES.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        numbered = _NUMBERED.match(candidate)
        base, number = (numbered[1], int(numbered[2])) if numbered else (candidate, None)
        name = base if number is None else f"{base}_{number}"
        count = number or self._counts[base]
        while name in self._used or self._is_taken(name, obj):
            count += 1
            name = f"{base}_{count}"
        self._used.add(name)
        self._counts[base] = count
        if obj is not None:
            self._names[obj] = name
        return name

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Remembers what a name was made for."""
        self._names.setdefault(obj, name)

    def _is_taken(self, name: str, obj: Any) -> bool:
        """Whether Python means something else by the name."""
        if keyword.iskeyword(name):
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not getattr(obj, "value", None)
        return name in _RESERVED


def snake_case(text: str) -> str:
    """fooBar as foo_bar."""
    return _HUMP.sub(r"_\1", text).lower()


def target_to_name(target: Callable[..., Any] | str) -> str:
    """What a node is called after its target: add for operator.add and __add__."""
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    magic = _MAGIC.match(name)
    return snake_case(magic[1] if magic else name)


def qualified_name(function: Callable[..., Any]) -> str:
    """The name by which code finds a function: rushlight.relu, operator.add.

    Raises:
        RuntimeError: if its module is not known.
    """
    name: str = getattr(function, "__name__", "")
    if getattr(builtins, name, None) is function:
        return name
    if getattr(operator, name, None) is function:
        return f"operator.{name}"
    module: Any = getattr(function, "__module__", None)
    if module is None:
        raise RuntimeError(
            f"cannot find module for {function!r}. Only functions of modules have one."
        )
    if module == "rushlight" and not hasattr(sys.modules[module], name):
        return f"rushlight.Tensor.{name}"  # an op that is only a method
    if module == "rushlight.private":
        return f"rushlight._C.{name}"
    if module.startswith("rushlight."):
        for home in _PUBLIC_HOMES:
            if getattr(sys.modules[home], name, None) is function:
                return f"{home}.{name}"
    if module == "rushlight._quantized_library":
        return f"rushlight.ops.quantized.{name}"
    return f"{module}.{getattr(function, '__qualname__', name)}"
