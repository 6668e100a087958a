"""Random sparse matrices for the tests, and what to compare them with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import strategies as st

import rushlight as torch
from rushlight import Tensor

BLOCK_LAYOUTS = [torch.sparse_bsr, torch.sparse_bsc]
LAYOUTS = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, *BLOCK_LAYOUTS]
BLOCK = (2, 3)  # of the matrices in a batch


def random_matrix(
    rows: int, columns: int, entries: int, seed: int = 0, *, repeats: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Random indices (2, entries) and values; with repeats some indices come twice."""
    generator = np.random.default_rng(seed)
    places = generator.choice(rows * columns, entries, replace=repeats)
    return np.stack(np.divmod(places, columns)), generator.normal(size=entries)


def coo(rows: int, columns: int, entries: int, seed: int = 0, **options: Any) -> Tensor:
    indices, values = random_matrix(rows, columns, entries, seed, **options)
    return torch.sparse_coo_tensor(indices, values, (rows, columns))


def block_of(shape: Any) -> tuple[int, ...]:
    """Sizes of a block that divide those of a matrix, different ones where they can."""
    return tuple(
        next(b for b in (*wanted, 1) if n % b == 0)
        for n, wanted in zip(shape, [(2, 3), (3, 2)], strict=True)
    )


def in_layout(tensor: Tensor, layout: Any) -> Tensor:
    blocksize = block_of(tensor.shape) if layout in BLOCK_LAYOUTS else None
    return tensor.to_sparse(layout=layout, blocksize=blocksize)


def batch_of_matrices(
    batch: Sequence[int] = (3,), dense: Sequence[int] = (), seed: int = 0, count: int = 4
) -> np.ndarray:
    """Batches of 4 x 9 matrices that have as many blocks of 2 x 3 each, not all zero."""
    generator = np.random.default_rng(seed)
    used = np.zeros((math.prod(batch), 6), dtype=bool)
    for matrix in used:
        matrix[generator.choice(6, count, replace=False)] = True
    used = used.reshape(*batch, 2, 3).repeat(2, -2).repeat(3, -1)
    values = generator.normal(size=(*used.shape, *dense))
    return values * used.reshape(*used.shape, *[1] * len(dense))


def compressed(dense: np.ndarray | Tensor, layout: Any, dense_dim: int = 0) -> Tensor:
    """Matrices of batch_of_matrices in a layout."""
    tensor = dense if isinstance(dense, Tensor) else torch.from_numpy(dense)
    if layout is torch.sparse_coo:
        return tensor.to_sparse(tensor.dim() - dense_dim)
    blocksize = BLOCK if layout in BLOCK_LAYOUTS else None
    return tensor.to_sparse(layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def compressed_parts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compressed and plain indices, and values."""
    if x.layout in (torch.sparse_csr, torch.sparse_bsr):
        return x.crow_indices(), x.col_indices(), x.values()
    return x.ccol_indices(), x.row_indices(), x.values()


def scipy_of(tensor: Tensor) -> Any:
    """The same matrix in SciPy, from the parts that the tensor shows."""
    shape = tuple(tensor.shape)
    if tensor.layout is torch.sparse_coo:
        return scipy.sparse.coo_array(
            (tensor._values().numpy(), tuple(tensor._indices().numpy())), shape
        )
    values = tensor.detach().values().numpy()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = (values, tensor.col_indices().numpy(), tensor.crow_indices().numpy())
        kind = scipy.sparse.csr_array if values.ndim == 1 else scipy.sparse.bsr_array
        return kind(parts, shape)
    parts = (values, tensor.row_indices().numpy(), tensor.ccol_indices().numpy())
    if values.ndim == 1:
        return scipy.sparse.csc_array(parts, shape)
    return scipy.sparse.bsr_array((values.swapaxes(1, 2), *parts[1:]), shape[::-1]).T


def same(actual: Tensor, expected: Any, tolerance: float = 1e-9) -> None:
    actual = actual.detach().to_dense()
    expected = expected.to_dense() if isinstance(expected, Tensor) else expected
    np.testing.assert_allclose(actual.numpy(), np.asarray(expected), rtol=tolerance, atol=tolerance)


@st.composite
def matrices(draw: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Parts of a matrix: duplicates, no entries and sizes of 0 among them."""
    rows, columns = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    most = 12 if rows and columns else 0
    count = draw(st.integers(0, most))
    place = st.integers(0, max(rows * columns - 1, 0))
    places = np.array(draw(st.lists(place, min_size=count, max_size=count)), dtype=np.int64)
    values = draw(st.lists(st.integers(-5, 5), min_size=count, max_size=count))
    indices = np.stack(np.divmod(places, max(columns, 1)))
    return indices, np.array(values, dtype=np.float64), (rows, columns)
