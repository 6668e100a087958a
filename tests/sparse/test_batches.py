"""Batches of compressed matrices, and those whose elements are tensors: batch and dense dims."""

from __future__ import annotations

import copy
import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.matrix import tensor_of
from sparse_matrices import (
    BLOCK,
    BLOCK_LAYOUTS,
    LAYOUTS,
    batch_of_matrices,
    compressed,
    compressed_parts,
    same,
)

import rushlight as torch

COMPRESSED = LAYOUTS[1:]
SIZES = [((3,), ()), ((2, 2), ()), ((), (2,)), ((3,), (2,)), ((2, 2), (2, 3)), ((1,), ())]


def scipy_parts(matrix: np.ndarray, layout: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    by_columns = layout in (torch.sparse_csc, torch.sparse_bsc)
    lines = scipy.sparse.csr_array(matrix.T if by_columns else matrix)
    if layout in BLOCK_LAYOUTS:
        lines = lines.tobsr(BLOCK[::-1] if by_columns else BLOCK)
    lines.sort_indices()
    is_turned = by_columns and layout in BLOCK_LAYOUTS
    return lines.indptr, lines.indices, lines.data.swapaxes(1, 2) if is_turned else lines.data


# Making and taking apart


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
@pytest.mark.parametrize("batch", [(3,), (2, 2)])
def test_each_matrix_of_a_batch_has_the_parts_that_scipy_gives_it(layout: Any, batch: Any) -> None:
    dense = batch_of_matrices(batch)
    x = compressed(dense, layout)
    assert (x.shape, x.sparse_dim(), x.dense_dim()) == (dense.shape, 2, 0)
    for place in np.ndindex(*batch):
        expected = scipy_parts(dense[place], layout)
        assert x._nnz() == len(expected[2])
        for part, of_one in zip(compressed_parts(x), expected, strict=True):
            np.testing.assert_array_equal(part[place].numpy(), of_one)
        one = x[place]
        assert (one.layout, one.shape) == (layout, (4, 9))
        for part, of_one in zip(compressed_parts(one), expected, strict=True):
            np.testing.assert_array_equal(part.numpy(), of_one)


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
@pytest.mark.parametrize(("batch", "dense_sizes"), SIZES)
def test_the_parts_make_the_tensor_again(layout: Any, batch: Any, dense_sizes: Any) -> None:
    dense = batch_of_matrices(batch, dense_sizes)
    x = compressed(dense, layout, len(dense_sizes))
    block = BLOCK if layout in BLOCK_LAYOUTS else ()
    assert (x.sparse_dim(), x.dense_dim()) == (2, len(dense_sizes))
    assert compressed_parts(x)[0].shape[:-1] == compressed_parts(x)[1].shape[:-1] == batch
    assert x.values().shape == (*batch, x._nnz(), *block, *dense_sizes)
    same(x, dense)
    for again in (
        torch.sparse_compressed_tensor(*compressed_parts(x), x.shape, layout=layout),
        x.clone(),
        x.detach(),
        x.to("cpu", copy=True),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
    ):
        assert (again.layout, again.shape) == (layout, x.shape)
        same(again, dense)
        torch.testing.assert_close(again, x)
        for part, expected in zip(compressed_parts(again), compressed_parts(x), strict=True):
            assert torch.equal(part, expected)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    same(torch.load(file), dense)
    as_small = torch.sparse_compressed_tensor(*compressed_parts(x), layout=layout)
    assert as_small.dim() == x.dim()
    same(as_small, dense[tuple(slice(n) for n in as_small.shape)])


def test_indices_of_a_batch_are_read_only_and_its_values_shared() -> None:
    x = compressed(batch_of_matrices(), torch.sparse_csr)
    for part in (x.crow_indices(), x.col_indices()):
        with pytest.raises(RuntimeError, match="read-only"):
            part.fill_(10**9)
    x.values().mul_(10)
    x[1].values().mul_(10)
    same(x, batch_of_matrices() * np.array([10, 100, 10]).reshape(3, 1, 1))


def test_text_of_a_batch() -> None:
    x = torch.sparse_csr_tensor([[0, 1], [0, 1]], [[1], [0]], [[1.0], [2.0]], (2, 1, 3))
    assert repr(x) == (
        "tensor(crow_indices=tensor([[0, 1],\n"
        "                            [0, 1]]),\n"
        "       col_indices=tensor([[1],\n"
        "                           [0]]),\n"
        "       values=tensor([[1.],\n"
        "                      [2.]]), size=(2, 1, 3), nnz=1, layout=torch.sparse_csr)"
    )


def test_differences_are_told_by_assert_close() -> None:
    x = compressed(batch_of_matrices(), torch.sparse_csr)
    for other, message in (
        (x * 2, "not close"),
        (compressed(batch_of_matrices(count=3), torch.sparse_csr), "_nnz"),
        (x[0], "shape"),
    ):
        with pytest.raises(AssertionError, match=message):
            torch.testing.assert_close(x, other)


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
@pytest.mark.parametrize(
    "shape", [(0, 4, 9), (2, 0, 9), (2, 4, 0), (2, 0, 0), (0, 0, 0), (2, 4, 9), (0, 3, 4, 9)]
)
def test_batches_of_nothing(layout: Any, shape: Any) -> None:
    x = compressed(np.zeros(shape), layout)
    assert (x.shape, x._nnz(), x.values().shape[: len(shape) - 2]) == (shape, 0, shape[:-2])
    again = torch.sparse_compressed_tensor(*compressed_parts(x), x.shape, layout=layout)
    for one in (x, again, x * 2, x.sin(), x + x, x.mT.mT, torch.zeros_like(x), x.to_sparse_coo()):
        same(one, np.zeros(shape))
    for other in COMPRESSED:
        if (other in BLOCK_LAYOUTS) == (layout in BLOCK_LAYOUTS):
            same(x.to_sparse(layout=other), np.zeros(shape))
    assert x.sum().item() == 0
    assert repr(x)
    if len(shape) == 3:
        same(torch.bmm(x, torch.ones(shape[0], shape[2], 2).double()), np.zeros((*shape[:2], 2)))
    values = x.values().requires_grad_()
    made = torch.sparse_compressed_tensor(*compressed_parts(x)[:2], values, x.shape, layout=layout)
    made.to_dense().sum().backward()
    assert values.grad is not None
    assert values.grad.shape == values.shape


def test_elements_without_elements() -> None:
    x = torch.zeros(2, 3, 4, 0).to_sparse_csr(dense_dim=1)
    assert (x.shape, x.values().shape) == ((2, 3, 4, 0), (2, 0, 0))
    y = torch.sparse_csr_tensor([[0, 1]], [[2]], torch.zeros(1, 1, 0), (1, 1, 3, 0))
    assert (y._nnz(), y.to_dense().shape, y[0].shape) == (1, (1, 1, 3, 0), (1, 3, 0))


PAIR = [[0, 1], [0, 1]]  # where the only row of two matrices begins and ends


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: torch.sparse_csr_tensor([[0, 1]] * 3, [[0]] * 2, v), "different batch dims"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0]] * 3, v), "different batch dims"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0]] * 2, v[:1]), "different batch dims"),
        (lambda v: torch.sparse_csr_tensor([0, 1], [[0]], v), "col_indices must have 1 dim"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [0], v), "col_indices must have 2 dims"),
        (lambda v: torch.sparse_csr_tensor(0, [0], v), "crow_indices must have a dim or more"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0]] * 2, v[:, 0]), "must have 2 dims or more"),
        (lambda v: torch.sparse_bsr_tensor(PAIR, [[0]] * 2, v), "must have 4 dims or more"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0, 0]] * 2, v), "must have same nnz"),
        (
            lambda v: torch.sparse_csr_tensor([[0, 1], [0, 0]], [[0]] * 2, v),
            r"\[..., -1\] must be the number of entries, 1, but is 0 of matrix 1",
        ),
        (
            lambda v: torch.sparse_csr_tensor([[0, 1], [1, 1]], [[0]] * 2, v),
            r"\[..., 0\] must be 0, but is 1 of matrix 1",
        ),
        (
            lambda v: torch.sparse_csc_tensor([[0, 0, 1], [0, 9, 1]], [[0]] * 2, v),
            "column 0 of matrix 1 goes from entry 0 to 9",
        ),
        (
            lambda v: torch.sparse_csr_tensor(PAIR, [[0], [3]], v, (2, 1, 3)),
            "found index 3 at entry 0 of row 0 of matrix 1",
        ),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0], [-1]], v), "found index -1"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0], [2**63 - 1]], v), "no size can hold"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0], [2**62]], v), "overflow"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0]] * 2, v, (1, 3)), "size must have 3 dims"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0]] * 2, v, (3, 1, 3)), "does not fit parts"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0]] * 2, v, (2, -1, 3)), "negative"),
        (lambda v: torch.sparse_csr_tensor(PAIR, [[0]] * 2, v, (2, 2, 3)), "has 2 elements, but"),
        (
            lambda v: torch.sparse_csr_tensor(PAIR, [[0]] * 2, torch.ones(2, 1, 4), (2, 1, 3, 5)),
            "does not fit parts",
        ),
        (
            lambda v: torch.sparse_bsr_tensor(PAIR, [[0]] * 2, v.view(2, 1, 1, 1)[..., :0]),
            "blocks must have rows and columns",
        ),
        (
            lambda v: torch.sparse_csr_tensor(
                torch.zeros(2, 0).long(), torch.zeros(2, 0), v[:, :0]
            ),
            "is empty",
        ),
        (
            lambda v: torch.sparse_csr_tensor(
                torch.zeros(0, 3).long(), torch.zeros(0, 0), v[:0, :0], (0, 2, 2**62)
            ),
            "overflow",
        ),
        (lambda v: torch.stack([torch.eye(2), torch.ones(2, 2)]).to_sparse_csr(), "same number of"),
        (
            lambda v: torch.stack([torch.eye(2), torch.ones(2, 2)]).to_sparse().to_sparse_csc(),
            "Expect the same number of specified elements per batch, but matrix 0 has 2 and matrix "
            "1 has 4",
        ),
        (
            lambda v: torch.stack([torch.eye(4), torch.ones(4, 4)]).to_sparse_bsr(2),
            "matrix 0 has 2 and matrix 1 has 4",
        ),
        (
            lambda v: torch.sparse_csr_tensor([[0, 1]], [[2**61 - 1]], v[:1]).index_select(
                0, torch.zeros(8, dtype=torch.int64)
            ),
            "overflow",
        ),
        (lambda v: torch.ones(2, 3).to_sparse_csr(dense_dim=1), "dense_dim=1. Two dims at least"),
        (lambda v: torch.ones(2, 3).to_sparse_csr(dense_dim=-1), "dense_dim=-1"),
        (lambda v: torch.ones(2, 3, 5).to_sparse_bsr(2), "must be divisible"),
        (lambda v: torch.ones(2, 2, 3).to_sparse_csr().to_sparse_csc(1), "in place of sparse_dim"),
    ],
)
def test_wrong_parts_are_refused_with_the_place(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        make(torch.ones(2, 1))


@st.composite
def parts_of_batches(draw: Any) -> tuple[list[np.ndarray], Any, Any]:
    """Parts of a batch, of which one number may be another one, and a size that may not fit."""
    layout = draw(st.sampled_from(COMPRESSED))
    batch = draw(st.lists(st.integers(0, 2), max_size=2))
    lines, count, width = draw(st.integers(0, 3)), draw(st.integers(0, 3)), draw(st.integers(0, 3))
    matrices = math.prod(batch)
    inner = st.lists(st.integers(0, count), min_size=max(lines - 1, 0), max_size=max(lines - 1, 0))
    starts = [[0, *sorted(draw(inner)), count][: lines + 1] for _ in range(matrices)]
    index = st.integers(0, max(width - 1, 0))
    total = matrices * count
    others = draw(st.lists(index, min_size=total, max_size=total))
    arrays = [
        np.array(starts, dtype=np.int64).reshape(*batch, lines + 1),
        np.array(others, dtype=np.int64).reshape(*batch, count),
    ]
    for array in arrays:
        if array.size and draw(st.integers(0, 3)) == 0:
            place = draw(st.integers(0, array.size - 1))
            array.flat[place] = draw(st.integers(-1, 4) | st.sampled_from([2**62, -(2**63)]))
    block = [2, 3] if layout in BLOCK_LAYOUTS else []
    dense = draw(st.lists(st.integers(0, 2), max_size=1))
    arrays.append(np.ones((*batch, count, *block, *dense)))
    matrix = (lines, width) if layout in (torch.sparse_csr, torch.sparse_bsr) else (width, lines)
    matrix = tuple(n * b for n, b in zip(matrix, block or [1, 1], strict=True))
    return arrays, layout, draw(st.sampled_from([None, (*batch, *matrix, *dense), (2, 3)]))


@given(parts_of_batches())
@settings(max_examples=300)
def test_parts_at_random_make_a_tensor_or_an_error(parts: Any) -> None:
    arrays, layout, size = parts
    starts, others, values = (tensor_of(array) for array in arrays)
    try:
        x = torch.sparse_compressed_tensor(starts, others, values, size, layout=layout)
    except RuntimeError:
        return
    same(x.to_sparse_coo(), x)
    same(x.to_dense().sum(), arrays[2].sum())
    same(torch.sparse_compressed_tensor(*compressed_parts(x), x.shape, layout=layout), x)


# Layouts and shapes


@pytest.mark.parametrize("source", LAYOUTS, ids=str)
@pytest.mark.parametrize("target", LAYOUTS, ids=str)
@pytest.mark.parametrize(("batch", "dense_sizes"), SIZES)
def test_all_ways_between_layouts_keep_the_matrices(
    source: Any, target: Any, batch: Any, dense_sizes: Any
) -> None:
    dense = batch_of_matrices(batch, dense_sizes)
    x = compressed(dense, source, len(dense_sizes))
    blocksize = BLOCK if target in BLOCK_LAYOUTS else None
    y = x.to_sparse(layout=target, blocksize=blocksize)
    assert (y.layout, y.shape, y.dense_dim()) == (target, dense.shape, len(dense_sizes))
    same(y, dense)
    assert x.to_sparse(layout=torch.strided).layout is torch.strided
    if target is not torch.sparse_coo:
        for part, expected in zip(
            compressed_parts(y),
            compressed_parts(compressed(dense, target, len(dense_sizes))),
            strict=True,
        ):
            assert torch.equal(part, expected)
    if target in BLOCK_LAYOUTS and source in BLOCK_LAYOUTS:
        same(x.to_sparse(layout=target, blocksize=(1, 3)), dense)


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
def test_dims_of_a_batch_can_be_picked_and_swapped(layout: Any) -> None:
    dense = batch_of_matrices((2, 3), (2,))
    x, d = compressed(dense, layout, 1), tensor_of(dense)
    for name, pick in (
        ("first", lambda t: t[1]),
        ("last", lambda t: t[-1, -1]),
        ("second", lambda t: t.select(1, 2)),
        ("dense", lambda t: t[..., 1]),
        ("rows", lambda t: t.transpose(2, 3)),
        ("batch", lambda t: t.transpose(0, 1)),
        ("both", lambda t: t.permute(1, 0, 3, 2, 4)),
        ("some", lambda t: t.index_select(1, torch.tensor([2, 0]))),
        ("part", lambda t: t.narrow(1, 1, 2)),
        ("of values", lambda t: t.index_select(4, torch.tensor([1, 1, 0]))),
        ("unbound", lambda t: t.unbind(0)[1]),
    ):
        picked = pick(x)
        assert picked.layout is not torch.strided, name
        assert picked.layout is not torch.sparse_coo, name
        same(picked, pick(d))
    for pick in (
        lambda t: t.select(2, 1),
        lambda t: t[1, 2, 3],
        lambda t: t.select(3, -1),
    ):
        assert pick(x).layout is torch.sparse_coo
        same(pick(x), pick(d))
    turned = {"sparse_csr": "sparse_csc", "sparse_bsr": "sparse_bsc"}
    turned |= {b: a for a, b in turned.items()}
    name = str(layout).removeprefix("torch.")
    assert str(x.transpose(2, 3).layout) == f"torch.{turned[name]}"
    for dims in ((0, 2), (1, 3), (3, 4), (0, 4)):
        with pytest.raises(RuntimeError, match="must stay what it is|must stay so"):
            x.transpose(*dims)
    with pytest.raises(NotImplementedError, match="dense dims .* cannot be permuted"):
        compressed(batch_of_matrices((), (2, 2)), layout, 2).transpose(2, 3)
    for wrong in (2, -3):
        with pytest.raises(IndexError, match="out of range"):
            x.select(0, wrong)


# Operations


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
@pytest.mark.parametrize(("batch", "dense_sizes"), SIZES)
def test_operations_equal_those_of_dense_tensors(layout: Any, batch: Any, dense_sizes: Any) -> None:
    dense_dim = len(dense_sizes)
    a, b = batch_of_matrices(batch, dense_sizes), batch_of_matrices(batch, dense_sizes, seed=1)
    x, y, d = compressed(a, layout, dense_dim), compressed(b, layout, dense_dim), tensor_of(b)
    for result, expected in (
        (-x, -a),
        (x.sin(), np.sin(a)),
        (x.abs().sqrt(), np.sqrt(np.abs(a))),
        (x * 2, a * 2),
        (3 * x, a * 3),
        (x / 2, a / 2),
        (x * torch.tensor(2.0), a * 2),
        (x + x, a + a),
        (x - x * 3, -2 * a),
        (x * x, a * a),
        (x * d, a * b),
        (x + d, a + b),
        (d + x, a + b),
        (torch.add(d, x, alpha=2), 2 * a + b),
        (d.clone().add_(x), a + b),
        (x.clone().mul_(2), a * 2),
        (x.clone().sin_(), np.sin(a)),
        (x.clone().zero_(), a * 0),
        (x.clone().copy_(y), b),
        (torch.zeros_like(x), a * 0),
        (d.sparse_mask(x), b * (a != 0)),
        (y.sparse_mask(x), b * (a != 0)),
    ):
        assert result.shape == a.shape
        same(result, expected)
    for result in (-x, x * 2, x + x, x * x, x * d, d.sparse_mask(x), torch.zeros_like(x)):
        assert result.layout is layout
    assert torch.empty_like(x).values().shape == x.values().shape
    assert torch.empty_like(x, dtype=torch.float32).dtype is torch.float32
    assert x.float().values().dtype is torch.float32
    assert x.isnan().dtype is torch.bool
    same(x.sum(), a.sum())
    same(x.norm(), np.linalg.norm(a.ravel()))
    assert torch.equal(x.to(torch.int64).to_dense(), tensor_of(a).to(torch.int64))
    for dims in (0, -1, (0, 1), tuple(range(len(batch) + 2))):
        same(torch.sparse.sum(x, dims), a.sum(dims))


def test_sums_of_tensors_with_other_places_need_as_many_in_each() -> None:
    a, b = np.zeros((2, 2, 3)), np.zeros((2, 2, 3))
    a[0, 0, 0] = a[1, 0, 0] = b[0, 0, 1] = b[1, 1, 1] = 1
    x, y = compressed(a, torch.sparse_csr), compressed(b, torch.sparse_csr)
    assert (x + y).layout is torch.sparse_csr
    same(x + y, a + b)
    b[1] = a[1]
    y = compressed(b, torch.sparse_csr)
    with pytest.raises(RuntimeError, match="matrix 0 has 2 and matrix 1 has 1"):
        x.add(y)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.complex128])
def test_products_of_batches(layout: Any, dtype: Any) -> None:
    dense = tensor_of(np.ceil(batch_of_matrices((3,)) * 1000)).to(dtype)
    x = compressed(dense, layout)
    y = tensor_of(np.random.default_rng(1).normal(size=(3, 9, 5)) * 10).to(dtype)
    product = torch.bmm(x, y)
    assert (product.layout, product.dtype) == (torch.strided, dtype)
    same(product, torch.bmm(dense, y), 1e-4)
    for wrong, error, message in (
        (y[:2], RuntimeError, "do not multiply"),
        (y[:, :8], RuntimeError, "do not multiply"),
        (y[0], RuntimeError, "do not multiply"),
        (x, NotImplementedError, "takes a sparse tensor and a dense one"),
        (y.bool(), RuntimeError, "same dtype"),
    ):
        with pytest.raises(error, match=message):
            torch.bmm(x, wrong)


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
@pytest.mark.parametrize("batch", [(3,), (2, 2), (0,)])
def test_products_are_sampled_at_the_entries(layout: Any, batch: Any) -> None:
    a = batch_of_matrices(batch)
    x, generator = compressed(a, layout), np.random.default_rng(1)
    left, right = generator.normal(size=(*batch, 4, 5)), generator.normal(size=(*batch, 5, 9))
    sampled = torch.sparse.sampled_addmm(x, tensor_of(left), tensor_of(right), beta=0.5, alpha=2)
    assert sampled.layout is layout
    same(sampled, np.where(a != 0, a * 0.5 + 2 * left @ right, 0))
    more = np.zeros((batch[0] + 1, *right.shape[1:]))
    for wrong in ((left[..., :3, :], right), (left, right[..., :8]), (left, more)):
        with pytest.raises(RuntimeError, match="do not multiply"):
            torch.sparse.sampled_addmm(x, *map(tensor_of, wrong))
    with pytest.raises(RuntimeError, match="mat1 and mat2 must be dense tensors of"):
        torch.sparse.sampled_addmm(x, torch.ones(4, 5).double(), torch.ones(5, 9).double())
    with pytest.raises(RuntimeError, match="without dense dims"):
        torch.sparse.sampled_addmm(
            compressed(batch_of_matrices(batch, (2,)), layout, 1), tensor_of(left), tensor_of(right)
        )
