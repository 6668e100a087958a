"""Modules that hold parameters, in order or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, Self

from rushlight import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: Any) -> Any:
    """A tensor as a parameter; a parameter, or anything else, unchanged."""
    is_plain_tensor = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain_tensor else value


def _describe(value: Any, by_type: bool = False) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    where = f" (GPU {value.get_device()})" if value.is_cuda else ""
    what = value.type() if by_type else value.dtype  # PyTorch names them differently, too
    return f"{kind} containing: [{what} of size {size}{where}]"


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

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterList should not be called.")

    def _get_abs_string_index(self, index: Any) -> str:
        position = operator.index(index)
        if not -self._size <= position < self._size:
            raise IndexError(
                f"ParameterList: index {position} is out of range for {self._size} parameters."
            )
        return str(position % self._size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._get_abs_string_index(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._get_abs_string_index(index), _as_parameter(value))

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
            parameters: pairs of name and value, or a mapping: an OrderedDict or ParameterDict in
                its order, another one sorted by name, as the numbers of parameters in PyTorch's
                checkpoints of optimizers have it.

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
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            parameters = parameters.items()
        elif isinstance(parameters, Mapping):
            parameters = sorted(parameters.items())
        for key, value in parameters:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(value, True)}" for key, value in self.items())
