"""Functions on sparse tensors: products, sums and softmax over their entries."""

from __future__ import annotations

import rushlight as rl
from rushlight import _C, Tensor, _later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

sampled_addmm = _C.ops("sparse")["sampled_addmm"]

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]


_REDUCTIONS = ("sum", "mean", "amax", "amin")


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """Returns the product of two matrices, of which at least one is sparse.

    The product of two sparse matrices is sparse. The gradient of a sparse matrix has entries where
    the matrix has them.

    Args:
        mat1: matrix (n, m).
        mat2: matrix (m, p) of the same dtype.
        reduce: what is made of the products of a row's entries with those of a column: "sum",
            "mean", "amax" (or "max") or "amin" (or "min"). Without entries it is 0.

    Returns:
        The product (n, p).

    Raises:
        RuntimeError: if shapes or dtypes do not fit.
        ValueError: for another reduction.

    Example:
        >>> torch.sparse.mm(torch.eye(2).to_sparse() * 3, torch.ones(2, 2))
        tensor([[3., 3.],
                [3., 3.]])
    """
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in _REDUCTIONS:
        raise ValueError(f"sparse.mm: reduce must be one of {_REDUCTIONS}, not {reduce!r}.")
    total = rl.mm(mat1, mat2)
    if reduce == "sum":
        return total
    entries = mat1.to_sparse_coo().coalesce()
    rows, columns = entries.indices()
    if reduce == "mean":
        counts = rl.bincount(rows, minlength=mat1.shape[0]).clamp(min=1)
        return total / counts.unsqueeze(1)
    products = entries.values().unsqueeze(1) * mat2[columns]
    places = rows.unsqueeze(1).expand_as(products)
    zeros = rl.zeros_like(total)
    return zeros.scatter_reduce(0, places, products, reduce, include_self=False)


def addmm(
    mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> Tensor:
    """Returns beta * mat + alpha * mm(mat1, mat2).

    Args:
        mat: matrix (n, p).
        mat1: sparse matrix (n, m).
        mat2: matrix (m, p).
        beta: factor of mat; with 0 it is not read.
        alpha: factor of the product.

    Raises:
        RuntimeError: if shapes or dtypes do not fit.

    Example:
        >>> torch.sparse.addmm(torch.ones(2, 1), torch.eye(2).to_sparse(), torch.ones(2, 1))
        tensor([[2.],
                [2.]])
    """
    return rl.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: int | Sequence[int] | None = None, dtype: Any = None) -> Tensor:
    """Returns the sum of a sparse tensor over some dims, or over all.

    Args:
        input: sparse tensor.
        dim: dims to sum over; all when None.
        dtype: dtype of the sum.

    Returns:
        A dense tensor when all sparse dims are summed, else a sparse one.

    Example:
        >>> torch.sparse.sum(torch.eye(3).to_sparse(), 0).values()
        tensor([1., 1., 1.])
    """
    return rl.sum(input, dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Returns the softmax over the entries along dim; what is not an entry counts as -inf.

    Args:
        input: sparse tensor.
        dim: dim along which the result sums to one.
        dtype: dtype to compute in.

    Example:
        >>> x = torch.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 5.0], (2, 3))
        >>> torch.sparse.softmax(x, dim=1).values()
        tensor([0.5000, 0.5000, 1.0000])
    """
    return _C._sparse_softmax(input if dtype is None else input.to(dtype), dim, False)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Returns the logarithm of softmax over the entries along dim.

    Args:
        input: sparse tensor.
        dim: dim along which the softmax sums to one.
        dtype: dtype to compute in.

    Example:
        >>> x = torch.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 5.0], (2, 3))
        >>> torch.sparse.log_softmax(x, dim=1).values()
        tensor([-0.6931, -0.6931,  0.0000])
    """
    return _C._sparse_softmax(input if dtype is None else input.to(dtype), dim, True)


def spdiags(
    diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None
) -> Tensor:
    """Returns a sparse matrix with the given diagonals, as scipy.sparse.spdiags.

    Args:
        diagonals: rows of elements; element j of a row goes to column j. One row may be a vector.
        offsets: for each row, by how much its diagonal is above the main one; all different.
        shape: sizes of the matrix.
        layout: layout of the result; torch.sparse_coo when None.

    Raises:
        RuntimeError: if there is not one offset for each row, of dtype int64.

    Example:
        >>> torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([1]), (3, 3)).indices()
        tensor([[0, 1],
                [1, 2]])
    """
    if offsets.dtype != rl.int64 or offsets.dim() > 1:
        raise RuntimeError(
            f"spdiags: Offset Tensor must have dtype int64 and at most one dim, but got "
            f"{offsets.dtype} and shape {tuple(offsets.shape)}."
        )
    if layout is rl.strided:
        raise RuntimeError("spdiags: layout must be a sparse one, not torch.strided.")
    diagonals = diagonals.reshape(1, -1) if diagonals.dim() == 1 else diagonals
    offsets = offsets.reshape(-1)
    if diagonals.dim() != 2 or len(offsets) != len(diagonals):
        raise RuntimeError(
            f"spdiags: diagonals of shape {tuple(diagonals.shape)} do not fit {len(offsets)} "
            "offsets. There must be one offset for each row."
        )
    if len(offsets.unique()) != len(offsets):
        raise RuntimeError(
            "spdiags: Offset tensor contains duplicate values. Each must be given once."
        )
    columns = rl.arange(diagonals.shape[1]).expand(diagonals.shape)
    rows = columns - offsets.unsqueeze(1)
    kept = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    indices = rl.stack([rows[kept], columns[kept]])
    made = rl.sparse_coo_tensor(indices, diagonals[kept], shape)
    return made.coalesce() if layout is None else made.to_sparse(layout=layout)


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """Returns autograd.gradcheck for sparse tensors: itself, because it takes them.

    Example:
        >>> gradcheck = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
        >>> x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
        >>> gradcheck(lambda x: x.to_dense(), x, masked=True)
        True
    """
    return gradcheck


class check_sparse_tensor_invariants:
    """Switches PyTorch's checks of indices on and off; here they are always on.

    It remembers what it was told, so that programs which ask get their answer. It is a context
    manager and a decorator too.

    Args:
        enable: what is_enabled() returns inside.

    Example:
        >>> with torch.sparse.check_sparse_tensor_invariants():
        ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
        True
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Returns whether checks were asked for."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Asks for checks."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Takes back that checks were asked for."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        self._before.append(self.is_enabled())
        check_sparse_tensor_invariants._enabled = self._wanted

    def __exit__(self, *details: object) -> None:
        check_sparse_tensor_invariants._enabled = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function with its calls inside the context."""
        from functools import wraps

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._wanted):
                return function(*args, **kwargs)

        return inside


_find = _later.imports(
    __name__,
    names_in={
        "_semi_structured": "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT "
        "SparseSemiStructuredTensorCUTLASS to_sparse_semi_structured"
    },
)


def __getattr__(name: str) -> Any:
    """Makes FloatTensor and its kin, the constructors from before sparse_coo_tensor."""
    if name.endswith("Tensor") and not name.startswith("SparseSemi"):
        from rushlight._legacy import SparseTensorType, tensor_type

        return globals().setdefault(name, tensor_type(name, kind=SparseTensorType))
    return _find(name)
