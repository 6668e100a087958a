"""Modules that hold other modules, in order or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict as OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Self

from rushlight import _later
from rushlight.nn.modules.module import Module, _addindent
from rushlight.nn.parameter import Parameter as Parameter

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Sequence(Module):
    """A list of child modules, kept under the names "0", "1", ...; a base of the real lists."""

    def _children_list(self) -> list[Any]:
        return list(self._modules.values())

    def _set_children(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def _position(self, index: Any, end: int) -> int:
        """An index that may count from the end, as a position from 0 to end - 1."""
        position = operator.index(index)
        length = len(self)
        if not -length <= position < end:
            raise IndexError(
                f"{type(self).__name__}: index {position} is out of range for {length} modules."
            )
        return position % length if position < 0 else position

    def _get_abs_string_index(self, index: Any) -> str:  # subclasses call it by PyTorch's name
        return list(self._modules)[self._position(index, len(self))]

    def _part(self, index: slice) -> Any:
        """A list of the same type with the modules of a slice."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._children_list())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        modules = self._modules
        return next(islice(modules.values(), self._position(index, len(modules)), None))

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._get_abs_string_index(index), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = self._children_list()
        del modules[index if isinstance(index, slice) else self._position(index, len(self))]
        self._set_children(modules)

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def append(self, module: Module) -> Self:
        """Adds a module at the end.

        Example:
            >>> len(torch.nn.ModuleList().append(torch.nn.ReLU()))
            1
        """
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Adds a module before an index; those after it move up.

        Raises:
            IndexError: if the index is out of range.
            AssertionError: if it is no module.

        Example:
            >>> layers = torch.nn.ModuleList([torch.nn.ReLU()])
            >>> layers.insert(0, torch.nn.Tanh())[0]
            Tanh()
        """
        if not isinstance(module, Module):
            raise AssertionError(
                f"{type(self).__name__}.insert: module should be of type: {Module}, but is a "
                f"{type(module).__name__}."
            )
        modules = self._children_list()
        modules.insert(self._position(index, len(self) + 1), module)
        self._set_children(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds several modules at the end.

        Raises:
            TypeError: if modules is not iterable.

        Example:
            >>> len(torch.nn.ModuleList().extend([torch.nn.ReLU(), torch.nn.Tanh()]))
            2
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got "
                f"{type(modules).__name__}."
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, index: int | slice = -1) -> Any:
        """Takes a module out and returns it; those after it move down.

        Example:
            >>> torch.nn.ModuleList([torch.nn.ReLU()]).pop()
            ReLU()
        """
        module = self[index]
        del self[index]
        return module


class Sequential(_Sequence):
    """Calls its modules one after the other, each on what the one before returned.

    Args:
        args: the modules, or one ordered dictionary of them by name.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten(0))
        >>> net(torch.tensor([[-1.0], [2.0]])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self.extend(args)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def _part(self, index: slice) -> Sequential:
        return type(self)(dict(list(self._modules.items())[index]))

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other).__name__} is given."
            )
        return Sequential(*self, *other)

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int):
            raise TypeError(
                f"unsupported operand type(s) for *: Sequential and {type(times).__name__}"
            )
        if times <= 0:
            raise ValueError(f"Sequential: multiplication factor must be at least 1, got {times}.")
        return Sequential(*(self._children_list() * times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        return self.extend((self * times)._children_list()[len(self) :])


class ModuleList(_Sequence):
    """A list of modules whose parameters belong to the module that holds it.

    Args:
        modules: the modules to start with.

    Example:
        >>> layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _part(self, index: slice) -> ModuleList:
        return type(self)(self._children_list()[index])

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Like Module's, with runs of equal modules on one line."""
        lines: list[str] = []
        texts = [repr(module) for module in self]
        start = 0
        while start < len(texts):
            end = start + 1
            while end < len(texts) and texts[end] == texts[start]:
                end += 1
            text = _addindent(texts[start], 2)
            count = end - start
            lines.append(
                f"({start}): {text}" if count == 1 else f"({start}-{end - 1}): {count} x {text}"
            )
            start = end
        if not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name, in the order they were added, that belong to the module that holds it.

    Args:
        modules: a mapping, or pairs of name and module, to start with.

    Example:
        >>> acts = torch.nn.ModuleDict({"relu": torch.nn.ReLU(), "tanh": torch.nn.Tanh()})
        >>> acts["tanh"]
        Tanh()
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Takes a module out and returns it.

        Raises:
            KeyError: if there is none of that name.

        Example:
            >>> torch.nn.ModuleDict({"a": torch.nn.ReLU()}).pop("a")
            ReLU()
        """
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """Returns the names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Returns the pairs of name and module."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """Returns the modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds modules, replacing those of the same name.

        Args:
            modules: a mapping, or pairs of name and module.

        Raises:
            TypeError: if modules is neither.

        Example:
            >>> acts = torch.nn.ModuleDict()
            >>> acts.update([("a", torch.nn.ReLU())])
            >>> list(acts)
            ['a']
        """
        if not isinstance(modules, (Iterable, ModuleDict)):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}."
            )
        pairs: Any = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for name, module in pairs:
            self[name] = module


# PyTorch has these here.
__getattr__ = _later.imports(
    __name__,
    names_in={
        "parameter_container": "ParameterDict ParameterList",
    },
    package="rushlight.nn.modules",
)
