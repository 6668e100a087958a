"""Functions of the package root that are not ops and have no file of their subject."""

from __future__ import annotations

import sys

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._overridable import asks_itself, overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_tensor(obj: Any) -> bool:
    """Returns whether an object is a tensor.

    Example:
        >>> torch.is_tensor(torch.ones(2)), torch.is_tensor(2)
        (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Returns whether an object is the storage of a tensor."""
    storage = sys.modules.get("rushlight._storage")  # whoever made one has imported it
    return storage is not None and isinstance(obj, storage.StorageBase)


_segment_reduce = rl.segment_reduce
asks_itself(_C.result_type)


def _expect_tensor(op: str, input: Any) -> Tensor:
    if not isinstance(input, Tensor):
        kind = type(input).__name__
        raise TypeError(f"{op}(): argument 'input' (position 1) must be Tensor, not {kind}.")
    return input


@overridable
def is_floating_point(input: Tensor) -> bool:
    """Returns whether the tensor's dtype is a real floating-point type."""
    return _expect_tensor("is_floating_point", input).dtype.is_floating_point


@overridable
def is_complex(input: Tensor) -> bool:
    """Returns whether the tensor's dtype is complex."""
    return _expect_tensor("is_complex", input).dtype.is_complex


@overridable
def numel(input: Tensor) -> int:
    """Returns the number of elements.

    Example:
        >>> torch.numel(torch.ones(2, 3))
        6
    """
    return _expect_tensor("numel", input).numel()


def broadcast_shapes(*shapes: Any) -> Any:
    """Returns the shape that all these shapes broadcast to.

    Raises:
        RuntimeError: if two sizes of a dim differ and neither is 1, or one is no int.
        ValueError: if a size is negative.

    Example:
        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    for shape in shapes:
        if not isinstance(shape, (int, tuple, list)):
            raise RuntimeError(
                f"broadcast_shapes: a shape is an int, or a tuple or list of ints, not {shape!r}."
            )
    sizes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    for size in sizes:
        if any(length < 0 for length in size):
            raise ValueError(f"broadcast_shapes: the shape {size} has a negative length.")
    result = [1] * max((len(size) for size in sizes), default=0)
    for size in sizes:
        for i in range(-len(size), 0):
            if size[i] != 1 and result[i] not in (1, size[i]):
                raise RuntimeError(
                    f"Shape mismatch: objects cannot be broadcast to a single shape: {sizes}. "
                    f"Sizes must be equal or 1."
                )
            if size[i] != 1:
                result[i] = size[i]
    return _C.Size(result)


def typename(obj: Any) -> str:
    """Returns the name of a class or function, or of an object's type; of a tensor, with its dtype.

    Example:
        >>> torch.typename(torch.ones(2)), torch.typename([2]), torch.typename(list)
        ('torch.FloatTensor', 'list', 'list')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    home = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return home + kind.__qualname__


@overridable
def detach_(input: Tensor) -> Tensor:
    """Cuts a tensor off its history, in place."""
    return input.detach_()


@overridable
def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Returns whether a tensor could take over another's memory: whether both have one layout."""
    return input.layout == from_.layout
