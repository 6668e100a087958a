"""Making sparse tensors, and bringing tensors to sparse layouts.

The ops on them are in the op table; torch.sparse is sparse.py.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._layout import LAYOUTS
from rushlight._overridable import overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rushlight._layout import layout as Layout


_NAMES_OF_COMPRESSED = ", ".join(str(layout) for layout in LAYOUTS[2:])

# Old names, which PyTorch keeps for products with sparse matrices.
spmm = dsmm = rl.mm
hsmm = rl.hspmm
saddmm = rl.addmm
resize_as_sparse_ = Tensor.resize_as_sparse_


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """Where each row begins, and the last ends, among sorted row numbers of entries."""
    starts = rl.searchsorted(input, rl.arange(size + 1, dtype=input.dtype, device=input.device))
    return starts.to(rl.int32 if out_int32 else rl.int64)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor,
    col_indices: Tensor,
    *,
    out_int32: bool = False,
    transpose: bool = False,
) -> Tensor:
    """The rows and columns of entries, from where each row begins."""
    rows = rl.arange(crow_indices.numel() - 1, device=crow_indices.device)
    rows = rows.repeat_interleave(crow_indices.diff())
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return rl.stack([index.to(rl.int32 if out_int32 else rl.int64) for index in pair])


@overridable
def native_norm(
    input: Tensor,
    p: float | None = 2,
    dim: Sequence[int] = (),
    keepdim: bool = False,
    dtype: rl.dtype | None = None,
) -> Tensor:
    """Returns the norm of all elements of a sparse tensor; norm takes dense ones, too.

    Example:
        >>> torch.native_norm(torch.tensor([0.0, 3.0, 4.0]).to_sparse())
        tensor(5.)
    """
    if input.layout != rl.sparse_coo:
        raise NotImplementedError(
            f"native_norm: input has layout {input.layout}, and must be torch.sparse_coo. "
            "Use norm, which takes every layout."
        )
    is_whole = len(set(dim)) in (0, input.dim())
    return rl.norm(input, p, None if is_whole else dim, keepdim, dtype=dtype)


def _indices(data: Any) -> Tensor:
    """Floats are cut off, as in PyTorch."""
    if isinstance(data, Tensor) and not data.is_floating_point():
        return data
    return rl.as_tensor(data, dtype=rl.int64)


def _values(data: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(data, Tensor):
        return rl.as_tensor(data, dtype=dtype, device=device)
    return data.to(dtype=dtype or data.dtype, device=device or data.device)


def _as_leaf(sparse: Tensor, requires_grad: bool) -> Tensor:
    return sparse.detach().requires_grad_() if requires_grad else sparse


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """Returns a tensor of layout sparse_coo, of entries given by their indices and values.

    Entries of equal indices add up. Indices are copied and always checked; gradients go to values.

    Args:
        indices: integers of shape (sparse dims, entries). A size alone, in its place or by name,
            makes a tensor without entries.
        values: elements of shape (entries, dense dims...), or the one element.
        size: sizes of the sparse and the dense dims; as small as the indices allow when None.
        dtype: dtype of the values; that which they have when None.
        device: must be the CPU.
        pin_memory: has no effect.
        requires_grad: whether the result is a leaf that collects a gradient.
        check_invariants: has no effect: indices are always checked.
        is_coalesced: claims that the indices are in row-major order and distinct.

    Raises:
        RuntimeError: if the parts do not fit one another, or an index does not fit the size.

    Example:
        >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if values is None:
        size = indices if size is None else size
        if size is None:
            raise TypeError("sparse_coo_tensor(): missing required argument 'size'")
        indices = rl.zeros(len(size), 0, dtype=rl.int64)
        values = rl.zeros(0, dtype=dtype)
    values = _values(values, dtype, device)
    if values.dim() == 0:
        values = values.unsqueeze(0)
    if requires_grad:
        values = values.detach()
    made = _C._sparse_coo_tensor(_indices(indices), values, size, is_coalesced)
    return _as_leaf(made, requires_grad)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Layout | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Returns a matrix of layout sparse_csr, sparse_csc, sparse_bsr or sparse_bsc, or a batch.

    The matrices of a batch have as many entries each. The elements of a matrix may be tensors
    themselves, in dense dims.

    Args:
        compressed_indices: the entry with which each row (or column) begins, and their number:
            (batch..., rows + 1).
        plain_indices: the column (or row) of each entry: (batch..., entries).
        values: the elements: (batch..., entries, dense dims...). In sparse_bsr and sparse_bsc the
            entries are blocks, and so are the rows and columns: (batch..., entries, rows of a
            block, columns of a block, dense dims...).
        size: (batch..., rows, columns, dense dims...); as small as the indices allow when None.
        dtype: dtype of the values; that which they have when None.
        layout: torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr or torch.sparse_bsc.
        device: must be the CPU.
        pin_memory: has no effect.
        requires_grad: whether the result is a leaf that collects a gradient.
        check_invariants: has no effect: indices are always checked.

    Raises:
        RuntimeError: if the parts do not fit one another, or an index does not fit the size.

    Example:
        >>> parts = [0, 1, 2], [1, 0], [5.0, 6.0]
        >>> torch.sparse_compressed_tensor(*parts, layout=torch.sparse_csr).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
        >>> parts = [[0, 1], [0, 1]], [[2], [0]], [[5.0], [6.0]]
        >>> torch.sparse_compressed_tensor(*parts, layout=torch.sparse_csr).to_dense()
        tensor([[[0., 0., 5.]],
        <BLANKLINE>
                [[6., 0., 0.]]])
    """
    if layout not in LAYOUTS[2:]:
        raise RuntimeError(
            f"sparse_compressed_tensor: layout must be one of {_NAMES_OF_COMPRESSED}, got {layout}."
        )
    values = _values(values, dtype, device)
    if requires_grad:
        values = values.detach()
    made = _C._sparse_compressed_tensor(
        _indices(compressed_indices),
        _indices(plain_indices),
        values,
        size,
        LAYOUTS.index(layout),
    )
    return _as_leaf(made, requires_grad)


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Returns a matrix of layout sparse_csr, or a batch; see sparse_compressed_tensor.

    Args:
        crow_indices: the entry with which each row begins, and the number of entries.
        col_indices: the column of each entry.
        values: the elements, one for each entry.
        size: sizes of the matrix; as small as the indices allow when None.
        dtype: dtype of the values; that which they have when None.
        device: must be the CPU.
        pin_memory: has no effect.
        requires_grad: whether the result is a leaf that collects a gradient.
        check_invariants: has no effect: indices are always checked.

    Raises:
        RuntimeError: if the parts do not fit one another, or an index does not fit the size.

    Example:
        >>> torch.sparse_csr_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2)) @ torch.ones(2)
        tensor([5., 6.])
    """
    return sparse_compressed_tensor(
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        layout=rl.sparse_csr,
        device=device,
        requires_grad=requires_grad,
    )


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Returns a matrix of layout sparse_csc, or a batch; see sparse_compressed_tensor.

    Args:
        ccol_indices: the entry with which each column begins, and the number of entries.
        row_indices: the row of each entry.
        values: the elements, one for each entry.
        size: sizes of the matrix; as small as the indices allow when None.
        dtype: dtype of the values; that which they have when None.
        device: must be the CPU.
        pin_memory: has no effect.
        requires_grad: whether the result is a leaf that collects a gradient.
        check_invariants: has no effect: indices are always checked.

    Raises:
        RuntimeError: if the parts do not fit one another, or an index does not fit the size.

    Example:
        >>> torch.sparse_csc_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2)).to_dense()
        tensor([[0., 6.],
                [5., 0.]])
    """
    return sparse_compressed_tensor(
        ccol_indices,
        row_indices,
        values,
        size,
        dtype=dtype,
        layout=rl.sparse_csc,
        device=device,
        requires_grad=requires_grad,
    )


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Returns a matrix of layout sparse_bsr, or a batch; see sparse_compressed_tensor.

    Args:
        crow_indices: the block with which each row of blocks begins, and their number.
        col_indices: the column of blocks in which each block stands.
        values: the blocks, (blocks, rows of a block, columns of a block).
        size: sizes of the matrix, in elements; as small as the indices allow when None.
        dtype: dtype of the values; that which they have when None.
        device: must be the CPU.
        pin_memory: has no effect.
        requires_grad: whether the result is a leaf that collects a gradient.
        check_invariants: has no effect: indices are always checked.

    Raises:
        RuntimeError: if the parts do not fit one another, or an index does not fit the size.

    Example:
        >>> torch.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0], [3.0, 4.0]]]).to_dense()
        tensor([[0., 0., 1., 2.],
                [0., 0., 3., 4.]])
    """
    return sparse_compressed_tensor(
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        layout=rl.sparse_bsr,
        device=device,
        requires_grad=requires_grad,
    )


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Returns a matrix of layout sparse_bsc, or a batch; see sparse_compressed_tensor.

    Args:
        ccol_indices: the block with which each column of blocks begins, and their number.
        row_indices: the row of blocks in which each block stands.
        values: the blocks, (blocks, rows of a block, columns of a block).
        size: sizes of the matrix, in elements; as small as the indices allow when None.
        dtype: dtype of the values; that which they have when None.
        device: must be the CPU.
        pin_memory: has no effect.
        requires_grad: whether the result is a leaf that collects a gradient.
        check_invariants: has no effect: indices are always checked.

    Raises:
        RuntimeError: if the parts do not fit one another, or an index does not fit the size.

    Example:
        >>> torch.sparse_bsc_tensor([0, 1], [1], [[[1.0, 2.0]]], (3, 2)).to_dense()
        tensor([[0., 0.],
                [1., 2.],
                [0., 0.]])
    """
    return sparse_compressed_tensor(
        ccol_indices,
        row_indices,
        values,
        size,
        dtype=dtype,
        layout=rl.sparse_bsc,
        device=device,
        requires_grad=requires_grad,
    )


def to_sparse(
    tensor: Tensor,
    sparse_dim: int | None,
    layout: Layout | None,
    blocksize: int | Sequence[int] | None,
    dense_dim: int | None,
) -> Tensor:
    """Returns a tensor in a sparse layout: Tensor.to_sparse."""
    if layout is None:
        layout = rl.sparse_coo
    if layout not in LAYOUTS:
        raise RuntimeError(
            f"to_sparse: layout must be torch.sparse_coo or one of {_NAMES_OF_COMPRESSED}, got "
            f"{layout}."
        )
    if dense_dim is not None:
        if sparse_dim is not None or tensor.layout is not rl.strided:
            raise RuntimeError(
                f"to_sparse: dense_dim={dense_dim} was given for a tensor of layout "
                f"{tensor.layout} with sparse_dim={sparse_dim}. It tells how many dims of a dense "
                "tensor get no indices, in place of sparse_dim."
            )
        sparse_dim = tensor.dim() - dense_dim
    if isinstance(blocksize, int):
        blocksize = (blocksize, blocksize)
    return _C._to_layout(tensor, LAYOUTS.index(layout), sparse_dim, blocksize)


def parts_of(tensor: Tensor) -> tuple[Any, ...]:
    """Returns what rebuild() makes the tensor of again: its layout, parts and shape."""
    shape = tuple(tensor.shape)
    if tensor.layout is rl.sparse_coo:
        return (
            rl.sparse_coo,
            (tensor._indices(), tensor._values(), shape, tensor.is_coalesced()),
        )
    return tensor.layout, (*compressed_indices_of(tensor), tensor.detach().values(), shape)


def compressed_indices_of(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the compressed and the plain indices of a tensor in a compressed layout."""
    if tensor.layout in (rl.sparse_csr, rl.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices()
    return tensor.ccol_indices(), tensor.row_indices()


def rebuild(layout: Layout, parts: tuple[Any, ...]) -> Tensor:
    """Returns the tensor of a layout and its parts, as parts_of() gave them."""
    if layout is rl.sparse_coo:
        indices, values, shape, is_coalesced = parts
        return sparse_coo_tensor(indices, values, shape, is_coalesced=is_coalesced)
    compressed, plain, values, shape = parts
    return sparse_compressed_tensor(compressed, plain, values, shape, layout=layout)


def rebuild_leaf(layout: Layout, parts: tuple[Any, ...], requires_grad: bool) -> Tensor:
    """Makes a sparse tensor from what Tensor.__reduce_ex__ pickled."""
    return rebuild(layout, parts).requires_grad_(requires_grad)
