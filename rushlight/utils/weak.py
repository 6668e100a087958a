"""Dicts that know tensors by identity and do not keep them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any, Self
from weakref import ref

from rushlight import Tensor

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]

WeakRef = ref


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to those to the same object, whatever == says of it."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # pyright: ignore[reportCallIssue]
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        if mine is None or not isinstance(other, WeakIdRef):
            return self is other
        return mine is other()


class WeakIdKeyDictionary(MutableMapping):
    """A dict whose keys are known by identity and leave when nothing else holds them.

    Args:
        dict: the first entries.

    Example:
        >>> names = torch.utils.weak.WeakTensorKeyDictionary()
        >>> x = torch.ones(2)
        >>> names[x] = "x"
        >>> names[x], torch.ones(2) in names
        ('x', False)
        >>> del x
        >>> len(names)
        0
    """

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: Any = {}
        self.update(dict or {})

    def _reference(self, key: Any) -> Any:
        data = weakref.ref(self)

        def forget(reference: Any) -> None:
            owner = data()
            if owner is not None:
                owner.data.pop(reference, None)

        return self.ref_type(key, forget)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self._reference(key)] = value

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # what has no weak references is no key
            return False

    def copy(self) -> Self:
        """Returns a dict of its own with the same keys and values."""
        result = type(self)(ref_type=self.ref_type)
        result.update(self)
        return result

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Self:
        """Copies of the values under the same keys."""
        result = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            result[key] = deepcopy(value, memo)
        return result

    def __or__(self, other: Mapping[Any, Any]) -> Self:
        if not isinstance(other, Mapping):
            return NotImplemented
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Mapping[Any, Any]) -> Self:
        if not isinstance(other, Mapping):
            return NotImplemented
        result = type(self)(other, self.ref_type)
        result.update(self)
        return result

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def keyrefs(self) -> list[Any]:
        """Returns the weak references to the keys."""
        return list(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor.

    Args:
        tensor: the tensor.
    """

    ref: WeakIdRef

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
