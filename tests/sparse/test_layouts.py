"""Sparse tensors: what they are made of, and the ways between layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from sparse_matrices import LAYOUTS, coo, in_layout, matrices, same, scipy_of

import rushlight as torch

# Making and taking apart


def test_indices_may_be_floats() -> None:
    x = torch.sparse_coo_tensor(torch.tensor([[0.0, 1.7]]), [1.0, 2.0], (3,))
    assert x.to_dense().tolist() == [1.0, 2.0, 0.0]


def test_parts_come_back() -> None:
    indices, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
    x = torch.sparse_coo_tensor(indices, values, (2, 3))
    assert isinstance(x, torch.Tensor)
    assert (x.shape, x.dim(), x.numel(), x._nnz()) == ((2, 3), 2, 6, 3)
    assert (x.sparse_dim(), x.dense_dim()) == (2, 0)
    assert x.is_sparse
    assert not x.is_sparse_csr
    assert x.layout is torch.sparse_coo
    assert not x.is_coalesced()
    assert x._indices().tolist() == indices.tolist()
    assert x._values().data_ptr() == values.data_ptr()
    ordered = x.coalesce()
    assert ordered.is_coalesced()
    assert ordered.coalesce() is ordered
    assert ordered.indices().tolist() == indices.tolist()
    assert ordered.values().tolist() == values.tolist()
    same(x, [[0, 0, 3], [4, 0, 5]])


def test_size_is_inferred_and_hybrid_tensors_have_dense_dims() -> None:
    x = torch.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]])
    assert x.shape == (3, 2)
    assert (x.sparse_dim(), x.dense_dim()) == (1, 1)
    same(x, [[1, 2], [0, 0], [3, 4]])
    assert torch.sparse_csr_tensor([0, 1, 1], [4], [1.0]).shape == (2, 5)


def test_one_element_needs_no_brackets() -> None:
    same(torch.sparse_coo_tensor([[1]], 5.0, (2,)), [0, 5])
    assert torch.sparse_coo_tensor(torch.zeros(0, 1), 12.5, ()).to_dense().item() == 12.5


def test_to_sparse_leads_to_the_strided_layout_too() -> None:
    x = coo(3, 4, 5)
    a = x.to_dense()
    assert a.to_sparse(layout=torch.strided) is a
    same(x.to_sparse_csr().to_sparse(layout=torch.strided), a)
    assert x.to_sparse(layout=torch.strided).layout is torch.strided


def test_tensors_without_entries() -> None:
    for x in (
        torch.sparse_coo_tensor((2, 3)),
        torch.sparse_coo_tensor(size=(2, 3)),
        torch.zeros(2, 3, layout=torch.sparse_coo),
        torch.empty(2, 3, layout=torch.sparse_csr),
        torch.zeros(2, 3).to_sparse(),
        torch.zeros_like(coo(2, 3, 4)),
    ):
        assert (x._nnz(), x.shape) == (0, (2, 3))
        same(x, np.zeros((2, 3)))
        same(x @ torch.ones(3, 2, dtype=x.dtype), np.zeros((2, 2)))


def test_scalars_without_sparse_dims() -> None:
    x = torch.sparse_coo_tensor(torch.zeros(0, 2, dtype=torch.int64), [3.0, 4.0], ())
    assert x.to_dense().item() == 7
    assert torch.tensor(3.0).to_sparse().to_dense().item() == 3
    assert x.coalesce()._nnz() == 1


def test_dtype_device_and_requires_grad() -> None:
    x = torch.sparse_coo_tensor(
        [[0, 1]], [1, 2], (2,), dtype=torch.float64, device="cpu", requires_grad=True
    )
    assert x.dtype is torch.float64
    assert x.requires_grad
    assert x.is_leaf
    assert x.to(torch.float32).dtype is torch.float32
    assert x.to("cpu") is x
    assert x.detach().int().values().tolist() if x.is_coalesced() else True
    with pytest.raises(NotImplementedError, match="not implemented on meta"):
        x.to("meta")
    with pytest.raises(NotImplementedError, match="not implemented on meta"):
        torch.sparse_coo_tensor([[0]], torch.ones(1, device="meta"), (1,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)),
            "dim 0, size is 3 but found index 5 at entry 1",
        ),
        (
            lambda: torch.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)),
            "found negative index -1 for dim 0 at entry 1",
        ),
        (lambda: torch.sparse_coo_tensor([[2**63 - 1]], [1.0]), "index 9223372036854775807"),
        (
            lambda: torch.sparse_coo_tensor([[0, 1]], [1.0], (3,)),
            "must have same nnz, but got nnz from indices: 2",
        ),
        (
            lambda: torch.sparse_coo_tensor([0, 1], [1.0, 2.0], (3,)),
            r"must have 2 dims, sparse_dim x nnz, but got shape \(2,\)",
        ),
        (
            lambda: torch.sparse_coo_tensor([[0]], [1.0], (3, 3)),
            r"sparse_dim \(1\) \+ dense_dim \(0\), but got 2",
        ),
        (lambda: torch.sparse_coo_tensor([[0]], [[1.0, 2.0]], (3, 3)), "dim 1 must be 3"),
        (lambda: torch.sparse_coo_tensor([[0, 1]], torch.tensor(1.0), (3,)), "must have same nnz"),
        (
            lambda: torch.sparse_coo_tensor(torch.zeros(1, 1).bool(), [1.0], (3,)),
            "indices must be an integer tensor, but got bool",
        ),
        (lambda: torch.sparse_coo_tensor([[0]], [1.0], (-1,)), "found index 0|negative"),
        (
            lambda: torch.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (3,), is_coalesced=True),
            "entry 1 does not come after entry 0",
        ),
        (
            lambda: torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,), is_coalesced=True),
            "entry 1 does not come after entry 0",
        ),
        (lambda: torch.sparse_coo_tensor(size=(2**40, 2**40)), "overflow"),
        (
            lambda: torch.sparse_csr_tensor([0, 1, 1], [5], [1.0], (2, 3)),
            "found index 5 at entry 0 of row 0",
        ),
        (
            lambda: torch.sparse_csr_tensor([0, 1, 1], [-1], [1.0], (2, 3)),
            "found index -1 at entry 0 of row 0",
        ),
        (
            lambda: torch.sparse_csr_tensor([0, 1, 5], [0], [1.0], (2, 3)),
            r"crow_indices\[..., -1\] must be the number of entries, 1, but is 5",
        ),
        (
            lambda: torch.sparse_csr_tensor([1, 1, 1], [0], [1.0], (2, 3)),
            r"crow_indices\[..., 0\] must be 0, but is 1",
        ),
        (
            lambda: torch.sparse_csr_tensor([0, 2, 1, 2], [0, 0], [1.0, 2.0], (3, 3)),
            "row 1 goes from entry 2 to 1",
        ),
        (
            lambda: torch.sparse_csr_tensor([0, 9, 1], [0], [1.0], (2, 3)),
            "row 0 goes from entry 0 to 9",
        ),
        (
            lambda: torch.sparse_csr_tensor([0, 1], [0], [1.0], (2, 3)),
            "has 2 elements, but for size .* it must have 3",
        ),
        (lambda: torch.sparse_csr_tensor([], [], [], (0, 3)), "is empty"),
        (
            lambda: torch.sparse_csr_tensor([0, 1], [2**63 - 1], [1.0]),
            "found index 9223372036854775807 in col_indices, which no size can hold",
        ),
        (lambda: torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1, 1)), "size must have 2 dims"),
        (
            lambda: torch.sparse_csc_tensor([0, 1, 1], [5], [1.0], (3, 2)),
            "found index 5 at entry 0 of column 0",
        ),
        (
            lambda: torch.sparse_compressed_tensor([0, 1], [0], [1.0], layout=torch.sparse_coo),
            "layout must be",
        ),
    ],
)
def test_wrong_parts_are_refused_with_the_place(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        make()


def test_indices_cannot_be_changed_afterwards() -> None:
    indices = np.array([[0, 1], [1, 0]])
    x = torch.sparse_coo_tensor(torch.from_numpy(indices), [1.0, 2.0], (2, 2))
    indices[:] = 10**9
    same(x, [[0, 1], [2, 0]])
    for part in (
        x._indices(),
        x.coalesce().indices(),
        x.to_sparse_csr().crow_indices(),
        x.to_sparse_csr().col_indices(),
        x.to_sparse_csc().row_indices(),
    ):
        with pytest.raises(RuntimeError, match="read-only"):
            part.fill_(10**9)
        with pytest.raises(RuntimeError, match="read-only"):
            torch.cumsum(part, 0, out=part)
        assert not part.numpy().flags.writeable
        part.data = torch.full((2, 2), 10**9)
    same(x.to_sparse_csr() @ torch.ones(2, 1), [[1], [2]])
    same(x, [[0, 1], [2, 0]])


def test_values_share_memory() -> None:
    x = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,), is_coalesced=True)
    x.values().mul_(10)
    assert x.to_dense().tolist() == [10, 20]
    assert x.clone()._values().data_ptr() != x._values().data_ptr()


# Layouts


@given(matrices())
@settings(max_examples=30)
def test_all_ways_between_layouts_keep_the_matrix(parts: Any) -> None:
    indices, values, shape = parts
    x = torch.sparse_coo_tensor(indices, values, shape)
    expected = scipy.sparse.coo_array((values, tuple(indices)), shape).toarray()
    same(x, expected)
    coalesced = x.coalesce()
    reference = scipy.sparse.coo_array((values, tuple(indices)), shape)
    reference.sum_duplicates()
    order = np.lexsort(reference.coords[::-1])
    assert coalesced.indices().tolist() == [c[order].tolist() for c in reference.coords]
    assert coalesced.values().tolist() == reference.data[order].tolist()
    for first in [x, torch.from_numpy(expected)]:
        for a in LAYOUTS:
            one = in_layout(first, a)
            assert one.layout is a
            same(one, expected)
            np.testing.assert_array_equal(scipy_of(one).toarray(), expected)
            for b in LAYOUTS:
                same(in_layout(one, b), expected)
            same(one.t(), expected.T)
            same(one.t().to_sparse_coo(), expected.T)
            same(one.t().t(), expected)
            same(one.t().coalesce() if one.is_sparse else one.t(), expected.T)


def test_to_sparse_keeps_dense_dims() -> None:
    x = torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 2.0], [3.0, 0.0]]])
    assert x.to_sparse(1).values().shape == (2, 2, 2)
    assert x.to_sparse(2).indices().tolist() == [[0, 1, 1], [0, 0, 1]]
    for dims in (1, 2, 3, None):
        same(x.to_sparse(dims), x)
    for dims in (0, 4, -1):
        with pytest.raises(RuntimeError, match="sparse_dim must be from 1 to 3"):
            x.to_sparse(dims)
    with pytest.raises(RuntimeError, match="only matrices and batches of them can be sparse_csr"):
        x[0, 0].to_sparse_csr()
    with pytest.raises(RuntimeError, match="keeps its number of sparse dims, 3"):
        x.to_sparse().to_sparse(1)
    for layout in LAYOUTS:
        assert in_layout(x[0], layout).to_sparse().layout is torch.sparse_coo
    assert x.to_dense() is x


def test_unordered_csr_rows_are_put_in_order_where_that_matters() -> None:
    x = torch.sparse_csr_tensor([0, 3, 3], [2, 0, 2], [1.0, 2.0, 4.0], (2, 3))
    assert x.values().tolist() == [1, 2, 4]
    same(x, [[2, 0, 5], [0, 0, 0]])
    same(x * x, [[4, 0, 25], [0, 0, 0]])
    assert x.to_sparse_coo().coalesce().indices().tolist() == [[0, 0], [0, 2]]


def test_parts_of_other_layouts_are_refused() -> None:
    x = coo(3, 3, 4)
    for ask, message in (
        (lambda: x.crow_indices(), "expected .* sparse_csr or sparse_bsr, but got sparse_coo"),
        (lambda: x.to_sparse_csr().row_indices(), "sparse_csc or sparse_bsc, but got sparse_csr"),
        (lambda: x.ccol_indices(), "sparse_csc"),
        (lambda: x.to_sparse_csr().indices(), "expected a tensor of layout sparse_coo"),
        (lambda: x.to_sparse_csr().coalesce(), "expected a tensor of layout sparse_coo"),
        (lambda: x.values(), r"uncoalesced tensor, please call \.coalesce\(\) first"),
        (lambda: x.indices(), r"uncoalesced tensor, please call \.coalesce\(\) first"),
        (lambda: torch.ones(2).values(), "expected a sparse tensor"),
        (lambda: torch.ones(2)._nnz(), "expected a sparse tensor"),
    ):
        with pytest.raises(RuntimeError, match=message):
            ask()
    assert (torch.ones(2, 3).sparse_dim(), torch.ones(2, 3).dense_dim()) == (0, 2)


@pytest.mark.parametrize("layout", [x for x in LAYOUTS if x is not torch.sparse_coo])
def test_filling_a_compressed_tensor_sets_its_entries(layout: Any) -> None:
    x = in_layout(coo(4, 4, 6, repeats=False), layout)
    entries = (x.to_dense() != 0) if x.values().dim() == 1 else None
    for filled in (
        torch.ones_like(x),
        torch.full_like(x, 1),
        torch.fill(x, 1.0),
        torch.fill(x, torch.tensor(1.0)),
        x.clone().fill_(1),
        x.clone().fill_(torch.tensor(1.0)),
    ):
        assert (filled.layout, filled._nnz(), filled.dtype) == (layout, x._nnz(), x.dtype)
        assert torch.equal(filled.values(), torch.ones_like(x.values()))
        assert entries is None or torch.equal(filled.to_dense(), entries.to(x.dtype))
    assert torch.ones_like(x, dtype=torch.float32).dtype is torch.float32
    assert x.values().unique().numel() > 1
    values = x.values()
    x.fill_(3)
    assert torch.equal(values, torch.full_like(values, 3))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_made_beside_a_sparse_tensor_may_be_dense(layout: Any) -> None:
    x = in_layout(coo(4, 6, 7).float(), layout)
    strided = {"layout": torch.strided}
    assert torch.equal(torch.zeros_like(x, **strided), torch.zeros(4, 6))
    assert torch.equal(torch.ones_like(x, **strided), torch.ones(4, 6))
    assert torch.equal(torch.full_like(x, 2, **strided), torch.full((4, 6), 2.0))
    assert torch.empty_like(x, **strided).stride() == (6, 1)
    assert torch.rand_like(x, **strided).max() > 0
    assert torch.equal(x.new_full((2,), 3, **strided), torch.full((2,), 3.0))
    assert torch.equal(x.new_zeros(2, **strided), torch.zeros(2))
    with pytest.raises(RuntimeError, match="not implemented for tensors of layout"):
        x.new_ones(2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_new_tensor_beside_a_sparse_one_is_sparse_without_entries(layout: Any) -> None:
    x = in_layout(coo(4, 4, 6, repeats=False).float(), layout)
    for new in (x.new_zeros(6, 8), x.new_empty((6, 8)), x.new_zeros((6, 8), dtype=torch.int64)):
        assert (new.layout, new._nnz(), tuple(new.shape)) == (layout, 0, (6, 8))
        assert torch.equal(new.to_dense(), torch.zeros(6, 8, dtype=new.dtype))
    assert x.new_zeros((6, 8), dtype=torch.int64).dtype is torch.int64


def test_a_coo_tensor_cannot_be_filled() -> None:
    for fill in (torch.ones_like, lambda x: torch.full_like(x, 2), lambda x: x.fill_(1)):
        with pytest.raises(NotImplementedError, match="layout sparse_coo"):
            fill(coo(3, 4, 5))
