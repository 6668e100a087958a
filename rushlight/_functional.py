"""Functions of the package root that are not ops: questions about tensors and global settings."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._overridable import overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight import device


def is_tensor(obj: Any) -> bool:
    """Returns whether an object is a tensor.

    Example:
        >>> torch.is_tensor(torch.ones(2)), torch.is_tensor(2)
        (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Returns whether an object is the storage of a tensor."""
    from rushlight import StorageBase

    return isinstance(obj, StorageBase)


@overridable
def _assert(condition: Any, message: str) -> None:
    """Fails with a message unless a condition holds; a step of a graph where it is traced."""
    if not condition:
        raise AssertionError(message)


def _assert_async(
    input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value"
) -> None:
    """Fails unless a tensor's one element is true; a GPU is waited for."""
    if not input.item():
        raise RuntimeError(assert_msg)


def _check_with(
    error_type: type[Exception],
    cond: bool,
    message: Callable[[], object] | None = None,
) -> None:
    """Raises an error of this type unless a condition holds.

    Args:
        error_type: a class.
        cond: a bool; for a tensor there is _check_tensor_all.
        message: gives the text of the error.

    Raises:
        TypeError: if cond is no bool, or message cannot be called.
    """
    if not isinstance(cond, bool):
        raise TypeError(
            f"cond must be a bool, but got {type(cond)}. For a tensor use _check_tensor_all."
        )
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises a RuntimeError unless a condition holds.

    Args:
        cond: a bool.
        message: gives the text of the error.

    Example:
        >>> torch._check(2 > 1, lambda: "what a compiler may rely on")
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises an IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises a ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises a TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises a NotImplementedError unless a condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(
    i: int, message: Callable[[], object] | None = None, *, max: int | None = None
) -> None:
    """Raises a RuntimeError unless a number may be a size, and at most `max`."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], object] | None = None
) -> None:
    """Raises an error of this type unless all elements are True.

    Args:
        error_type: a class.
        cond: a tensor of bool; a GPU is waited for.
        message: gives the text of the error.

    Raises:
        TypeError: if cond is no such tensor.
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != rl.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], object] | None = None) -> None:
    """Raises a RuntimeError unless all elements are True; see _check_tensor_all_with."""
    _check_tensor_all_with(RuntimeError, cond, message)


_segment_reduce = rl.segment_reduce


@overridable
def is_floating_point(input: Tensor) -> bool:
    """Returns whether the tensor's dtype is a real floating-point type."""
    return input.dtype.is_floating_point


@overridable
def is_complex(input: Tensor) -> bool:
    """Returns whether the tensor's dtype is complex."""
    return input.dtype.is_complex


@overridable
def numel(input: Tensor) -> int:
    """Returns the number of elements.

    Example:
        >>> torch.numel(torch.ones(2, 3))
        6
    """
    return input.numel()


def broadcast_shapes(*shapes: Any) -> Any:
    """Returns the shape that all these shapes broadcast to.

    Raises:
        RuntimeError: if two sizes of a dim differ and neither is 1.

    Example:
        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    sizes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
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
    """Returns the name of an object's type; of a tensor, with its dtype."""
    if isinstance(obj, Tensor):
        return obj.type()
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


@overridable
def detach_(input: Tensor) -> Tensor:
    """Cuts a tensor off its history, in place."""
    return input.detach_()


def set_default_device(device: Any) -> None:
    """Sets the device of tensors that are made without one, in this thread.

    `with torch.device("cuda"):` does the same for a block. What follows an input, as zeros_like
    does, is made where the input is.

    Args:
        device: a device or its name; None is the CPU.

    Example:
        >>> torch.set_default_device("meta")
        >>> torch.ones(2).device
        device(type='meta')
        >>> torch.set_default_device(None)
        >>> torch.ones(2).device
        device(type='cpu')
    """
    _C._set_default_device("cpu" if device is None else device)


def get_default_device() -> device:
    """Returns the device of tensors that are made without one.

    Example:
        >>> with torch.device("meta"):
        ...     torch.get_default_device()
        device(type='meta')
    """
    place = _C._default_device()
    return place if place.index is not None else _C.tensor([]).device


@overridable
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Returns the different elements, in order; with dim, the different slices along it.

    Args:
        input: tensor of any shape.
        sorted: accepted for PyTorch's sake; the result is always in order.
        return_inverse: also return which of them each element of input is.
        return_counts: also return how often each occurs.

    Example:
        >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is None:
        values, inverse, counts = _C._unique(input, return_inverse)
    else:
        values, inverse, counts = _unique_slices(input, dim)
    results = [values]
    if return_inverse:
        results.append(inverse)
    if return_counts:
        results.append(counts)
    return tuple(results) if len(results) > 1 else values


def _unique_slices(input: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers the slices along dim in their order, taking one position after the other."""
    rank = _C._unique
    rows = input.movedim(dim, 0)
    rows = rows.reshape(rows.shape[0], math.prod(rows.shape[1:]))
    numbers = rows.new_zeros(len(rows), dtype=_C.int64)
    for column in rows.unbind(1):
        values, inverse, _ = rank(column)
        numbers = rank(numbers * len(values) + inverse)[1]
    _, inverse, counts = rank(numbers)
    first = numbers.argsort(stable=True)[counts.cumsum(0) - counts]
    return input.index_select(dim, first), inverse, counts


@overridable
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Returns the elements (or slices along dim) that differ from the one before.

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    rows = input.flatten() if dim is None else input.movedim(dim, 0)
    values, inverse, counts = _C._unique_consecutive(rows, return_inverse)
    results = [values if dim is None else values.movedim(0, dim)]
    if return_inverse:
        results.append(inverse.reshape(input.shape) if dim is None else inverse)
    if return_counts:
        results.append(counts)
    return tuple(results) if len(results) > 1 else results[0]


def einsum(*args: Any) -> Tensor:
    """Returns sums of products of tensors' elements in Einstein's notation.

    Each operand's dims get a letter; letters that are not in the output are summed over. "..."
    stands for any dims, which broadcast. Without "->" the output has the letters that appear once,
    in alphabetical order.

    Args:
        args: the equation, then the operands or a list of them; or operands and lists of numbers
            below 52 in turn, with the list for the output last, if there is one.

    Raises:
        RuntimeError: if the equation does not fit the operands.

    Example:
        >>> a, b = torch.ones(2, 3), torch.ones(3, 4)
        >>> torch.einsum("ij,jk->ik", a, b).tolist()
        [[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]]
        >>> torch.einsum(a, [0, 1], [1, 0]).shape
        torch.Size([3, 2])
    """
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])  # so that tracers see operands in one form
    if _C._argument_takes_over(args, {}):
        return _C._call_taken_over(einsum, args, {})
    if args and isinstance(args[0], str):
        equation, *operands = args
    else:
        pairs = len(args) // 2
        operands = list(args[: 2 * pairs : 2])
        equation = ",".join(_subscripts(labels) for labels in args[1 : 2 * pairs : 2])
        if len(args) % 2:
            equation += "->" + _subscripts(args[-1])
    return _C.einsum(equation, operands, _einsum_path(equation, operands))


def _einsum_path(equation: str, operands: Any) -> list[int] | None:
    """The order of contraction, two operands for each step; None leaves it to the core."""
    if len(operands) <= 2:
        return None
    from rushlight.backends import opt_einsum

    if not opt_einsum.enabled:  # from left to right
        path = [0, 1]
        for left in range(len(operands) - 2, 0, -1):
            path += [left, 0]
        return path
    planner = opt_einsum.get_opt_einsum()
    if planner is None:
        return None
    shapes = [tuple(operand.shape) for operand in operands]
    steps = planner.contract_path(equation, *shapes, shapes=True, optimize=opt_einsum.strategy)[0]
    path = []
    count = len(operands)
    for step in steps:  # a step with more than two operands takes them from left to right
        first, *rest = sorted(step)
        for k, operand in enumerate(rest):
            path += [first, operand - k] if k == 0 else [count - 1, operand - k - 1]
            count -= 1
    return path


def _subscripts(labels: Any) -> str:
    """The letters for a list of numbers, which may have an Ellipsis."""
    text = ""
    for label in labels:
        if label is Ellipsis:
            text += "..."
        elif 0 <= label < 52:
            text += chr(ord("A") + label) if label < 26 else chr(ord("a") + label - 26)
        else:
            raise ValueError(f"einsum: subscript {label} is out of range. It must be in [0, 52).")
    return text


@overridable
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Returns the sums of products over some dims of two tensors.

    Args:
        a: any tensor.
        b: any tensor.
        dims: how many of a's last dims to sum with as many of b's first; or two lists, a's dims and
            b's. A dim of size 1 stands for as many equal elements as the other one has.
        out: where the result is written.

    Returns:
        A tensor with the remaining dims of a, then those of b.

    Raises:
        RuntimeError: if the sizes of the dims differ.

    Example:
        >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(4, 3), dims=([1, 2], [1, 0])).tolist()
        [12.0, 12.0]
    """
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot: dims must be between 0 and the numbers of dims, {a.dim()} and "
                f"{b.dim()}, but is {dims}."
            )
        dims_a, dims_b = range(a.dim() - dims, a.dim()), range(dims)
    else:
        dims_a, dims_b = dims
    dims_a, dims_b = [d % a.dim() for d in dims_a], [d % b.dim() for d in dims_b]
    for d, e in zip(dims_a, dims_b, strict=False):
        if a.shape[d] == 1 != b.shape[e]:
            b = b.sum(e, keepdim=True, dtype=b.dtype)
        elif b.shape[e] == 1 != a.shape[d]:
            a = a.sum(d, keepdim=True, dtype=a.dtype)
    sizes_a, sizes_b = [a.shape[d] for d in dims_a], [b.shape[d] for d in dims_b]
    if sizes_a != sizes_b:
        raise RuntimeError(
            f"tensordot: contracted dimensions need to match, but have sizes {sizes_a} in a and "
            f"{sizes_b} in b."
        )
    free_a = [d for d in range(a.dim()) if d not in dims_a]
    free_b = [d for d in range(b.dim()) if d not in dims_b]
    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    inner = math.prod(sizes_a)
    left = a.permute(free_a + dims_a).reshape(math.prod(a.shape[d] for d in free_a), inner)
    right = b.permute(dims_b + free_b).reshape(inner, math.prod(b.shape[d] for d in free_b))
    result = (left @ right).reshape(shape)
    return result if out is None else rl.clone(result, out=out)
