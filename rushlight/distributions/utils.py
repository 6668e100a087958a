"""What distributions share: broadcasting of parameters, probabilities and logits, lazy attributes.

Owns no distribution. Names without underscore are PyTorch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import rushlight as rl
from rushlight import Tensor

Number: TypeAlias = bool | int | float
Parameter: TypeAlias = Tensor | Number
Shape: TypeAlias = Sequence[int]

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060
EMPTY = rl.Size()


def is_tensor_like(value: object) -> bool:
    """Whether a value is a Tensor or acts as one (has __torch_function__)."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values: Parameter) -> tuple[Tensor, ...]:
    """Returns tensors of one shape.

    Args:
        values: tensors that broadcast, and numbers, which take the dtype and the device of the
            first tensor; the default dtype if there is none, or if an integer one would cut them.

    Raises:
        ValueError: a value is neither a number nor a tensor.

    Example:
        >>> from rushlight.distributions.utils import broadcast_all
        >>> broadcast_all(torch.zeros(2), 1.0)
        (tensor([0., 0.]), tensor([1., 1.]))
    """
    for value in values:
        if not isinstance(value, Tensor):
            like = next((v for v in values if is_tensor_like(v)), None)
            values = tuple(v if is_tensor_like(v) else _as_tensor(v, like) for v in values)
            break
    tensors: Any = values
    shape = tensors[0].shape
    for tensor in tensors:
        if tensor.shape != shape:
            return tuple(rl.broadcast_tensors(*tensors))
    return tensors


def _as_tensor(value: object, like: Any) -> Tensor:
    if not isinstance(value, (bool, int, float)):
        raise ValueError(
            f"broadcast_all: got a {type(value).__name__}. Parameters are numbers, Tensors or "
            "objects with __torch_function__."
        )
    if not isinstance(like, Tensor):
        return rl.tensor(value, dtype=rl.get_default_dtype())
    is_exact = like.is_floating_point() or not isinstance(value, float)
    dtype = like.dtype if is_exact else rl.get_default_dtype()
    return rl.tensor(value, dtype=dtype, device=like.device)


def standard_normal(shape: Shape, like: Tensor) -> Tensor:
    """Returns standard normal numbers of the dtype and on the device of `like`."""
    return _standard_normal(shape, like.dtype, like.device)


def uniform(shape: Shape, like: Tensor) -> Tensor:
    """Returns uniform numbers in [0, 1) of the dtype and on the device of `like`."""
    return rl.rand(shape, dtype=like.dtype, device=like.device)


def open_uniform(shape: Shape, like: Tensor) -> Tensor:
    """Returns uniform numbers in (0, 1), whose logarithm is finite."""
    return clamp_probs(uniform(shape, like))


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Returns the sum of a tensor over so many last dims."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


# What libraries that build on PyTorch's distributions import.
_sum_rightmost = sum_rightmost


def _standard_normal(shape: Shape, dtype: Any, device: Any) -> Tensor:
    return rl.randn(shape, dtype=dtype, device=device)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Returns probabilities of log odds (is_binary) or of log weights in the last dim.

    Example:
        >>> from rushlight.distributions.utils import logits_to_probs
        >>> logits_to_probs(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """
    return rl.sigmoid(logits) if is_binary else rl.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Returns probabilities moved into [eps, 1 - eps], where eps is that of the dtype.

    Example:
        >>> from rushlight.distributions.utils import clamp_probs
        >>> clamp_probs(torch.tensor([0.0, 0.5]))
        tensor([1.1921e-07, 5.0000e-01])
    """
    eps = _eps(probs.dtype)
    return probs.clamp(eps, 1 - eps)


@functools.cache
def _eps(dtype: rl.dtype) -> float:
    return rl.finfo(dtype).eps


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Returns log odds (is_binary) or logarithms of probabilities, which are clamped.

    Example:
        >>> from rushlight.distributions.utils import probs_to_logits
        >>> probs_to_logits(torch.tensor([0.5]), is_binary=True)
        tensor([0.])
    """
    clamped = clamp_probs(probs)
    return rl.log(clamped) - rl.log1p(-clamped) if is_binary else rl.log(clamped)


class lazy_property:
    """A method that runs when its attribute is first read, and whose result takes its place.

    What it computes is part of the graph, also when it is first read under no_grad.

    Example:
        >>> from rushlight.distributions.utils import lazy_property
        >>> class Circle:
        ...     radius = 1.0
        ...     @lazy_property
        ...     def area(self):
        ...         return 3.14 * self.radius**2
        >>> circle = Circle()
        >>> circle.area, vars(circle)
        (3.14, {'area': 3.14})
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # pyright: ignore[reportArgumentType]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        if rl.is_grad_enabled():
            value = self.wrapped(instance)
        else:
            with rl.enable_grad():
                value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _lower_mask(n: int, diag: int, device: Any) -> Tensor:
    return rl.ones(n, n, dtype=rl.bool, device=device).tril(diag)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Returns the lower triangle of matrices as vectors, row by row.

    Args:
        mat: (*, n, n).
        diag: the last diagonal that belongs to it.

    Raises:
        ValueError: matrices of this size have no such diagonal.

    Example:
        >>> from rushlight.distributions.utils import tril_matrix_to_vec
        >>> tril_matrix_to_vec(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 3, 4])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(
            f"tril_matrix_to_vec: diag {diag} is outside [{-n}, {n - 1}] of ({n}, {n})."
        )
    return mat[..., _lower_mask(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Returns matrices whose lower triangle is filled by vectors, row by row.

    Args:
        vec: (*, k), where k is the size of a triangle.
        diag: the last diagonal that belongs to it.

    Raises:
        ValueError: no triangle has k elements.

    Example:
        >>> from rushlight.distributions.utils import vec_to_tril_matrix
        >>> vec_to_tril_matrix(torch.tensor([1, 3, 4]))
        tensor([[1, 0],
                [3, 4]])
    """
    size = vec.shape[-1]
    # With d = diag, a triangle of n rows has n(n+1)/2 + nd - |d|(d+1)/2 elements (d > 0 adds
    # diagonals that leave the matrix on the right; d < 0 drops some).
    b = 1 + 2 * diag
    root = (-b + (b * b + 8 * size + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    n = round(root)
    if abs(n - root) > 1e-9:
        raise ValueError(
            f"vec_to_tril_matrix: the last dim is {size}, which is not the size of the lower "
            f"triangle of a square matrix up to diagonal {diag}."
        )
    mat = vec.new_zeros(*vec.shape[:-1], n, n)
    mat[..., _lower_mask(n, diag, vec.device)] = vec
    return mat


def own_class(cls: type) -> type:
    """Returns the class of this package that `cls` is or is nearest to.

    A class of the user's that has its own __init__ must also say how it is expanded or copied; a
    class of this package is known.
    """
    return next(c for c in cls.__mro__ if c.__module__.startswith("rushlight.distributions"))
