"""Making a batch of samples.

Owns the rules by which samples of one structure become one structure of batched tensors.
Invariant: containers keep their type, except that a plain tuple becomes a list.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor

# Kinds of NumPy's dtypes that tensors cannot hold: strings and objects. Libraries search by it.
np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_collate(batch: Sequence[Any]) -> Any:
    """Returns one batch of a list of samples that have the same structure.

    Tensors and NumPy arrays are stacked along a new first dimension; numbers become a tensor
    (Python floats in float64); strings and bytes stay a list; mappings, named tuples and sequences
    are batched entry by entry.

    Args:
        batch: the samples.

    Example:
        >>> torch.utils.data.default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
        >>> torch.utils.data.default_collate([{"x": 1.5}, {"x": 2.5}])
        {'x': tensor([1.5000, 2.5000], dtype=torch.float64)}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(
    batch: Sequence[Any], *, collate_fn_map: Mapping[Any, Callable[..., Any]] | None = None
) -> Any:
    """Returns one batch of a list of samples, whose values a table of functions puts together.

    Args:
        batch: the samples.
        collate_fn_map: from a class, or a tuple of them, to a function of a list of such values,
            that takes this table by keyword. An entry for the very class counts first, then the
            first that a value is an instance of. To teach default_collate a class, add it to
            default_collate_fn_map.

    Example:
        >>> collate = torch.utils.data._utils.collate.collate
        >>> collate([{"n": 1}, {"n": 2}], collate_fn_map={int: lambda n, **_: sum(n)})
        {'n': 3}
    """
    first = batch[0]
    function = _chosen(first, collate_fn_map) if collate_fn_map else None
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = {
            key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map)
            for key in first
        }
        return _mapping_like(first, columns)
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError(
                "default_collate: each element in list of batch should be of equal size, but the "
                f"sizes are {[len(sample) for sample in batch]}"
            )
        columns = zip(*batch, strict=True)
        return _sequence_like(
            first, [collate(column, collate_fn_map=collate_fn_map) for column in columns]
        )
    raise _cannot_collate(type(first))


def _chosen(
    first: Any, collate_fn_map: Mapping[Any, Callable[..., Any]]
) -> Callable[..., Any] | None:
    function = collate_fn_map.get(type(first))
    if function is not None:
        return function
    is_array, is_number = _is_numpy(first, "ndarray"), _is_numpy(first, "generic")
    for kind, function in collate_fn_map.items():
        if isinstance(first, kind) and not (is_number and kind is float):  # float64 is a float
            return function
    if collate_fn_map is not default_collate_fn_map:
        return None
    return collate_numpy_array_fn if is_array else collate_numpy_scalar_fn if is_number else None


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    if batch[0].layout not in (rl.strided, rl.jagged):
        raise RuntimeError(
            "default_collate: Batches of sparse tensors are not currently supported by the default "
            "collate_fn; please provide a custom collate_fn to handle them appropriately."
        )
    return rl.stack(batch, 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    if _is_numpy_text(batch[0]):
        raise _cannot_collate(batch[0].dtype)
    return rl.stack([rl.as_tensor(sample) for sample in batch], 0)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    return rl.as_tensor(sys.modules["numpy"].array(batch))


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: Any = None) -> Tensor:
    return rl.tensor(batch, dtype=rl.float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: Any = None) -> Tensor:
    return rl.tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Sequence[Any]:
    return batch


# NumPy's classes are not in it: they are known once NumPy was imported.
default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_convert(data: Any) -> Any:
    """Returns a sample with its NumPy arrays and numbers as tensors; all else stays as it is.

    Args:
        data: the sample: a value, or nested mappings and sequences of values.

    Example:
        >>> import numpy
        >>> torch.utils.data.default_convert({"x": numpy.arange(2), "n": 3})
        {'x': tensor([0, 1]), 'n': 3}
    """
    if isinstance(data, Tensor | str | bytes) or _is_numpy_text(data):
        return data
    if _is_numpy(data, "ndarray") or _is_numpy(data, "generic"):
        return rl.as_tensor(data)
    return map_items(data, default_convert)


def map_items(data: Any, function: Callable[[Any], Any]) -> Any:
    """Returns a mapping or sequence with function(item) for each item; all else as it is."""
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: function(data[key]) for key in data})
    if isinstance(data, Sequence):
        return _sequence_like(data, [function(item) for item in data])
    return data


def _is_numpy(value: Any, class_name: str) -> bool:
    numpy = sys.modules.get("numpy")  # a value cannot be NumPy's before NumPy was imported
    return numpy is not None and isinstance(value, getattr(numpy, class_name))


def _is_numpy_text(value: Any) -> bool:
    """Whether the value is an array of strings or objects, which tensors cannot hold."""
    return _is_numpy(value, "ndarray") and bool(np_str_obj_array_pattern.search(value.dtype.str))


def _cannot_collate(kind: Any) -> TypeError:
    return TypeError(
        f"{default_collate_err_msg_format.format(kind)}. Pass a collate_fn that knows it."
    )


def _mapping_like(example: Any, items: dict[Any, Any]) -> Any:
    """Returns the items in a mapping of the example's type, or as they are if it refuses them."""
    try:
        if isinstance(example, MutableMapping):
            result = copy.copy(example)  # keeps extras, such as a default factory
            result.update(items)
            return result
        return type(example)(items)
    except TypeError:
        return items


def _sequence_like(example: Any, items: list[Any]) -> Any:
    """Returns the items in a sequence of the example's type, or as they are if it refuses them."""
    if type(example) in (list, tuple):
        return items
    if hasattr(example, "_fields"):
        return type(example)(*items)
    if isinstance(example, tuple):
        return items
    try:
        if isinstance(example, MutableSequence):
            result = copy.copy(example)
            for i, item in enumerate(items):
                result[i] = item
            return result
        return type(example)(items)
    except TypeError:
        return items
