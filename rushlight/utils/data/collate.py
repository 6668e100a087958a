"""Making a batch of samples.

Owns the rules by which samples of one structure become one structure of batched tensors.
Invariant: containers keep their type, except that a plain tuple becomes a list.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import rushlight as rl
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


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
    first = batch[0]
    if isinstance(first, Tensor):
        return rl.stack(batch, 0)
    if _is_numpy_text(first):
        raise _cannot_collate(first.dtype)
    if _is_numpy(first, "ndarray"):
        return rl.stack([rl.as_tensor(sample) for sample in batch], 0)
    if _is_numpy(first, "generic"):
        return rl.as_tensor(sys.modules["numpy"].array(batch))
    if isinstance(first, float):
        return rl.tensor(batch, dtype=rl.float64)
    if isinstance(first, int):
        return rl.tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        columns = {key: default_collate([sample[key] for sample in batch]) for key in first}
        return _mapping_like(first, columns)
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError(
                "default_collate: each element in list of batch should be of equal size, but the "
                f"sizes are {[len(sample) for sample in batch]}"
            )
        return _sequence_like(
            first, [default_collate(column) for column in zip(*batch, strict=True)]
        )
    raise _cannot_collate(type(first))


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
    return _map_items(data, default_convert)


def pin_batch(data: Any) -> Any:
    """Returns a batch with its tensors in pinned memory, and all that has a method pin_memory."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, str | bytes):
        return data
    return _map_items(data, pin_batch)


def _map_items(data: Any, function: Callable[[Any], Any]) -> Any:
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
    return _is_numpy(value, "ndarray") and value.dtype.kind in "SUO"


def _cannot_collate(kind: Any) -> TypeError:
    return TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {kind}. Pass a collate_fn that knows it."
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
