"""Modules that hold other modules or parameters in order or by name."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping

from rushlight import Tensor
from rushlight.nn.modules._members import MODULE
from rushlight.nn.modules.module import Module, _indent_rest
from rushlight.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Sequence(Module):
    """A list of child modules, kept under the names "0", "1", ...; a base of the real lists."""

    def _children_list(self) -> list[Any]:
        values = self.__dict__
        return [values[name] for name, kind in self._kinds.items() if kind == MODULE]

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

    def _name_at(self, index: Any) -> str:
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
        return getattr(self, self._name_at(index))

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

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

        Example:
            >>> layers = torch.nn.ModuleList([torch.nn.ReLU()])
            >>> layers.insert(0, torch.nn.Tanh())[0]
            Tanh()
        """
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
        for module in self._children_list():
            input = module(input)
        return input

    def _part(self, index: slice) -> Sequential:
        return type(self)(dict(self._own(MODULE)[index]))

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
            text = _indent_rest(texts[start])
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


def _as_parameter(value: Any) -> Any:
    """A tensor as a parameter; a parameter, or anything else, unchanged."""
    is_plain_tensor = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain_tensor else value


def _describe(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    where = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"{kind} containing: [{value.dtype} of size {size}{where}]"


class ParameterList(Module):
    """A list of parameters that belong to the module that holds it.

    Tensors become parameters; other values are kept as they are.

    Args:
        values: the values to start with.

    Example:
        >>> gains = torch.nn.ParameterList([torch.ones(2), torch.ones(3)])
        >>> [tuple(p.shape) for p in gains.parameters()]
        [(2,), (3,)]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name_at(self, index: Any) -> str:
        position = operator.index(index)
        if not -self._size <= position < self._size:
            raise IndexError(
                f"ParameterList: index {position} is out of range for {self._size} parameters."
            )
        return str(position % self._size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name_at(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name_at(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._size)])

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Adds a value at the end.

        Example:
            >>> len(torch.nn.ParameterList().append(torch.ones(2)))
            1
        """
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds several values at the end.

        Raises:
            TypeError: if values is not an iterable, or is a tensor.

        Example:
            >>> len(torch.nn.ParameterList().extend([torch.ones(2), torch.ones(3)]))
            2
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}."
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_describe(value)}" for i, value in enumerate(self))


class ParameterDict(Module):
    """Parameters by name, in the order they were added, that belong to the module that holds it.

    Tensors become parameters; other values are kept as they are.

    Args:
        parameters: a mapping, or pairs of name and value, to start with.

    Example:
        >>> scales = torch.nn.ParameterDict({"left": torch.ones(2)})
        >>> [name for name, _ in scales.named_parameters()]
        ['left']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Any) -> ParameterDict:
        result = ParameterDict(other)
        result.update(self)
        return result

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Returns another dictionary of the same parameters."""
        return ParameterDict(self)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Returns the value of a name, after adding default if there is none.

        Example:
            >>> torch.nn.ParameterDict().setdefault("a", torch.ones(1)).item()
            1.0
        """
        if key not in self:
            self[key] = default
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value of a name, or default if there is none.

        Example:
            >>> torch.nn.ParameterDict().get("a", 5)
            5
        """
        return getattr(self, key) if key in self else default

    def clear(self) -> None:
        """Removes all values."""
        for key in list(self):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes a value out and returns it.

        Raises:
            KeyError: if there is none of that name.

        Example:
            >>> torch.nn.ParameterDict({"a": torch.ones(1)}).pop("a").item()
            1.0
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes out the pair that was added last and returns it.

        Raises:
            KeyError: if there is none.

        Example:
            >>> torch.nn.ParameterDict({"a": 1, "b": 2}).popitem()
            ('b', 2)
        """
        if not self._keys:
            raise KeyError("popitem: ParameterDict is empty.")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Returns a new dictionary with one value under all the given names.

        Example:
            >>> list(torch.nn.ParameterDict().fromkeys(["a", "b"], 1))
            ['a', 'b']
        """
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """Returns the names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Returns the pairs of name and value."""
        return [(key, self[key]) for key in self]

    def values(self) -> Iterable[Any]:
        """Returns the values."""
        return [self[key] for key in self]

    def update(self, parameters: Any) -> None:
        """Adds values, replacing those of the same name.

        Args:
            parameters: a mapping, or pairs of name and value.

        Raises:
            TypeError: if parameters is neither.

        Example:
            >>> scales = torch.nn.ParameterDict()
            >>> scales.update({"a": torch.ones(1)})
            >>> list(scales)
            ['a']
        """
        if not isinstance(parameters, (Iterable, ParameterDict)):
            raise TypeError(
                "ParameterDict.update should be called with an iterable of key/value pairs, but "
                f"got {type(parameters).__name__}."
            )
        pairs = (
            parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters
        )
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(value)}" for key, value in self.items())
