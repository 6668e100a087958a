"""Layouts sparse_bsr and sparse_bsc, where they differ from those without blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from ops.matrix import tensor_of
from sparse_matrices import BLOCK_LAYOUTS, coo, same, scipy_of

import rushlight as torch
from rushlight import Tensor
from rushlight.nn.functional import linear


def blocks(
    rows: int, columns: int, block: tuple[int, int], share: float = 0.4, seed: int = 0
) -> np.ndarray:
    """A matrix of rows x columns blocks, some of which are not zero."""
    generator = np.random.default_rng(seed)
    used = generator.random((rows, columns)) < share
    return np.kron(used, np.ones(block)) * generator.normal(
        size=(rows * block[0], columns * block[1])
    )


# Making and taking apart


def test_parts_come_back() -> None:
    values = torch.arange(1.0, 13.0).reshape(2, 2, 3)
    x = torch.sparse_bsr_tensor([0, 1, 2], [1, 0], values, (4, 6))
    assert (x.shape, x.dim(), x.numel(), x._nnz()) == ((4, 6), 2, 24, 2)
    assert (x.sparse_dim(), x.dense_dim()) == (2, 0)
    assert not x.is_sparse
    assert not x.is_sparse_csr
    assert x.layout is torch.sparse_bsr
    assert x.crow_indices().tolist() == [0, 1, 2]
    assert x.col_indices().tolist() == [1, 0]
    assert x.values().data_ptr() == values.data_ptr()
    expected = [[0, 0, 0, 1, 2, 3], [0, 0, 0, 4, 5, 6], [7, 8, 9, 0, 0, 0], [10, 11, 12, 0, 0, 0]]
    same(x, expected)
    y = torch.sparse_bsc_tensor([0, 1, 2], [1, 0], values)
    assert y.shape == (4, 6)
    assert y.ccol_indices().tolist() == [0, 1, 2]
    assert y.row_indices().tolist() == [1, 0]
    same(y, np.roll(expected, (2, 3), (0, 1)))
    for layout, made in ((torch.sparse_bsr, x), (torch.sparse_bsc, y)):
        same(torch.sparse_compressed_tensor([0, 1, 2], [1, 0], values, layout=layout), made)
    leaf = torch.sparse_bsr_tensor([0, 1], [0], [[[1, 2]]], dtype=torch.float64, requires_grad=True)
    assert (leaf.dtype, leaf.is_leaf, leaf.requires_grad) == (torch.float64, True, True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: torch.sparse_bsr_tensor([0, 1], [0], [1.0]), r"must have 3 dims.*\(1,\)"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [0], [[1.0]]), "must have 3 dims"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [0], v[:, :0]), "blocks must have rows"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [1], v, (2, 3)), r"divisible by .* \(2, 2\)"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [1], v, (3, 4)), r"divisible by .* \(2, 2\)"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [1], v, (2, 2)), "found index 1 at entry 0"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [-1], v, (2, 2)), "found index -1 at entry 0"),
        (lambda v: torch.sparse_bsr_tensor([0, 2], [0], v, (2, 2)), r"-1\] must be .* 1, but is"),
        (lambda v: torch.sparse_bsr_tensor([1, 1], [0], v, (2, 2)), r" 0\] must be 0, but is 1"),
        (lambda v: torch.sparse_bsr_tensor([0, 2, 1], [0], v, (4, 2)), "goes from entry 0 to 2"),
        (
            lambda v: torch.sparse_bsr_tensor([0, 1], [0], v, (4, 2)),
            "has 2 elements, but .* have 3",
        ),
        (
            lambda v: torch.sparse_bsc_tensor([0, 1], [0], v, (2, 4)),
            "has 2 elements, but .* have 3",
        ),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [0, 1], v), "must have same nnz"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [[0]], v), "col_indices must have 1 dim"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [2**62], v), "the size of dim 1 overflows"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [2**61], v), "overflow"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [0], v, (2, 2, 2)), "size must have 2 dims"),
        (lambda v: torch.sparse_bsr_tensor([0, 1], [0], v, (-2, 2)), "negative"),
    ],
)
def test_wrong_parts_are_refused_with_the_place(
    make: Callable[[Tensor], Any], message: str
) -> None:
    with pytest.raises(RuntimeError, match=message):
        make(torch.ones(1, 2, 2))


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda d: d.to_sparse_bsr((3, 2)), r"\(4, 6\) must be divisible by .* \(3, 2\)"),
        (lambda d: d.to_sparse_bsc((2, 4)), "must be divisible"),
        (lambda d: d.to_sparse_bsr((0, 2)), r"blocksize needs to be positive, but got \(0, 2\)"),
        (lambda d: d.to_sparse_bsr(-2), "positive"),
        (lambda d: d.to_sparse_bsr(2**62), "divisible"),
        (lambda d: d.to_sparse_bsr((2,)), r"a tuple of size 2, but got \(2,\)"),
        (lambda d: d.to_sparse_bsr(()), r"a tuple of size 2, but got \(\)"),
        (lambda d: d.to_sparse_bsr((2, 2), 1), "dense_dim=1. Two dims at least"),
        (lambda d: d[0].to_sparse_bsr((1, 1)), "only matrices and batches of them can be sparse_b"),
        (lambda d: d.to_sparse(1).to_sparse_bsr((1, 1)), "only matrices and batches of them"),
        (lambda d: d.to_sparse(layout=torch.sparse_bsr), "strided to sparse_bsr without blocksize"),
        (lambda d: d.to_sparse_csr().to_sparse(layout=torch.sparse_bsc), "without blocksize"),
        (lambda d: d.to_sparse(blocksize=(2, 2)), "strided to sparse_coo with blocksize"),
        (lambda d: d.to_sparse(layout=torch.sparse_csr, blocksize=2), "with blocksize argument"),
        (lambda d: d.to_sparse_bsr(2).indices(), "expected a tensor of layout sparse_coo"),
        (lambda d: d.to_sparse_bsr(2).ccol_indices(), "sparse_csc or sparse_bsc, but got sparse_b"),
        (lambda d: d.to_sparse_bsc(2).col_indices(), "sparse_csr or sparse_bsr, but got sparse_b"),
        (lambda d: torch.zeros(4, 6, layout=torch.sparse_bsr), "without blocksize argument"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(convert: Callable[[Tensor], Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        convert(torch.ones(4, 6))


# Layouts


@pytest.mark.parametrize("block", [(1, 1), (2, 3), (4, 6), (3, 2), (12, 1)])
def test_blocks_are_those_of_scipy(block: tuple[int, int]) -> None:
    dense = blocks(12 // block[0], 12 // block[1], block)
    dense[0, 0] = 0
    x, reference = (
        tensor_of(dense).to_sparse_bsr(block),
        scipy.sparse.bsr_array(dense, blocksize=block),
    )
    reference.sort_indices()
    assert x.crow_indices().tolist() == reference.indptr.tolist()
    assert x.col_indices().tolist() == reference.indices.tolist()
    assert x.values().tolist() == reference.data.tolist()
    turned = tensor_of(dense.T).to_sparse_bsc(block[::-1])
    assert turned.ccol_indices().tolist() == reference.indptr.tolist()
    assert turned.row_indices().tolist() == reference.indices.tolist()
    assert turned.values().tolist() == reference.data.swapaxes(1, 2).tolist()
    for one in (x, turned.t(), x.to_sparse_coo().to_sparse_bsr(block)):
        assert one.layout is torch.sparse_bsr
        assert one.values().tolist() == x.values().tolist()


def test_blocks_become_others() -> None:
    dense = blocks(6, 6, (2, 2))
    x = tensor_of(dense).to_sparse_bsr(2)
    assert x.to_sparse_bsr(2) is x
    assert x.to_sparse().layout is torch.sparse_coo
    assert x.to_sparse()._nnz() == 4 * x._nnz()
    assert x.to_sparse_coo().is_coalesced()
    for block in ((1, 4), (3, 2), (12, 12)):
        for layout in BLOCK_LAYOUTS:
            y = x.to_sparse(layout=layout, blocksize=block)
            assert y.values().shape[1:] == block
            np.testing.assert_array_equal(scipy_of(y).toarray(), dense)
    for y in (x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_bsc(2)):
        np.testing.assert_array_equal(scipy_of(y).toarray(), dense)


def test_unordered_and_repeated_blocks_are_put_in_order_where_that_matters() -> None:
    values = torch.arange(1.0, 7.0).reshape(3, 1, 2)
    x = torch.sparse_bsr_tensor([0, 3], [1, 0, 1], values, (1, 4))
    assert x.values().tolist() == values.tolist()
    same(x, [[3, 4, 6, 8]])
    same(x * x, [[9, 16, 36, 64]])
    same(x.abs() + x.to_sparse_bsc((1, 2)), [[6, 8, 12, 16]])
    same(x @ torch.ones(4), [21])
    assert x.to_sparse_bsc((1, 2)).values().tolist() == [[[3, 4]], [[6, 8]]]


def test_matrices_without_blocks_or_size() -> None:
    for shape in ((0, 4), (4, 0), (0, 0), (4, 6)):
        for layout in BLOCK_LAYOUTS:
            x = torch.zeros(shape).to_sparse(layout=layout, blocksize=2)
            assert (x._nnz(), x.shape, x.values().shape) == (0, shape, (0, 2, 2))
            same(x.to_sparse_csr(), np.zeros(shape))
            same(x.t().to_sparse_coo(), np.zeros(shape[::-1]))
            same(x + x * 2 + x.clone().zero_(), np.zeros(shape))
            for width in (0, 1, 5):
                same(x @ torch.ones(shape[1], width), np.zeros((shape[0], width)))
                leaf = x.detach().requires_grad_()
                (leaf @ torch.ones(shape[1], width)).sum().backward()
                assert leaf.grad._nnz() == 0
            assert x.sum().item() == 0
            assert x.sum(0).shape == shape[1:]
    assert torch.sparse_bsr_tensor(
        [0], torch.zeros(0, dtype=torch.int64), torch.ones(0, 2, 3)
    ).shape == (0, 0)


def test_writing_keeps_or_takes_blocks() -> None:
    dense = blocks(2, 3, (2, 2), 0.7)
    x = tensor_of(dense).to_sparse_bsr(2)
    y = x.clone()
    y.mul_(2).neg_()
    same(y, -2 * dense)
    same(y.copy_(x), dense)
    same(torch.zeros(4, 6, dtype=torch.float64).add_(x, alpha=3), 3 * dense)
    assert torch.zeros_like(x).values().shape == (0, 2, 2)
    assert x.float().values().dtype is torch.float32
    assert y.zero_().values().shape == (0, 2, 2)
    with pytest.raises(RuntimeError, match="cannot be copied"):
        x.copy_(x.to_dense())
    mask = torch.ones(4, 6, dtype=torch.float64).sparse_mask(x)
    assert mask.layout is torch.sparse_bsr
    assert mask.values().tolist() == np.ones(x.values().shape).tolist()


def test_text() -> None:
    x = torch.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0], [3.0, 4.0]]])
    assert repr(x) == (
        "tensor(crow_indices=tensor([0, 1]),\n"
        "       col_indices=tensor([1]),\n"
        "       values=tensor([[[1., 2.],\n"
        "                       [3., 4.]]]), size=(2, 4), nnz=1,\n"
        "       layout=torch.sparse_bsr)"
    )


# Products


@pytest.mark.parametrize(
    "block", [(1, 1), (2, 3), (4, 4), (5, 7), (8, 1), (1, 8), (16, 16), (33, 3)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_of_any_block_and_width(block: tuple[int, int], dtype: Any) -> None:
    dense = blocks(7, 5, block)
    generator = np.random.default_rng(1)
    tolerance = 1e-4 if dtype is torch.float32 else 1e-12
    for width in (1, 2, 8, 17, 24, 25, 63, 130, 400):
        right = generator.normal(size=(dense.shape[1], width))
        left = generator.normal(size=(width, dense.shape[0]))
        expected, before = dense @ right, left @ dense
        for layout in BLOCK_LAYOUTS:
            x = tensor_of(dense).to(dtype).to_sparse(layout=layout, blocksize=block)
            same((x @ tensor_of(right).to(dtype)).double(), expected, tolerance)
            same((tensor_of(left).to(dtype) @ x).double(), before, tolerance)
            same((x.t() @ tensor_of(left.T).to(dtype)).double(), before.T, tolerance)
            leaf, d = x.detach().requires_grad_(), tensor_of(right).to(dtype).requires_grad_()
            weights = generator.normal(size=expected.shape)
            (leaf @ d).backward(tensor_of(weights).to(dtype))
            held = np.kron(
                (abs(dense.reshape(7, block[0], 5, block[1])).sum((1, 3)) > 0), np.ones(block)
            )
            same(leaf.grad.double(), held * (weights @ right.T), tolerance)
            same(d.grad.double(), dense.T @ weights, tolerance)


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.complex64]
)
def test_products_of_other_dtypes(dtype: Any) -> None:
    dense = torch.tensor([[0, 0, 3, 1], [0, 0, 2, 0], [1, 2, 0, 0], [0, 1, 0, 0]]).to(dtype)
    right = torch.arange(12).reshape(4, 3).to(dtype)
    expected = (dense.to(torch.complex128) @ right.to(torch.complex128)).numpy()
    for x in (dense.to_sparse_bsr(2), dense.to_sparse_bsc((2, 1))):
        same((x @ right).to(torch.complex128), expected)
        same(
            (x @ dense.to_sparse_bsr(2)).to(torch.complex128), (dense @ dense).to(torch.complex128)
        )


def test_large_products_on_several_threads() -> None:
    dense = blocks(40, 30, (16, 16), 0.2)
    x = tensor_of(dense).to_sparse_bsr(16)
    for width in (3, 60, 1000):
        right = np.random.default_rng(1).normal(size=(480, width))
        same(x @ tensor_of(right), dense @ right)
        same(x.t() @ tensor_of(dense[:, :width]), dense.T @ dense[:, :width])


def test_linear_layers_take_weights_of_blocks() -> None:
    dense = blocks(4, 3, (2, 2))
    weight, bias = tensor_of(dense).to_sparse_bsr(2), torch.arange(8.0, dtype=torch.float64)
    for shape in ((6,), (5, 6), (2, 5, 6), (0, 6), (2, 0, 6)):
        x = tensor_of(np.random.default_rng(1).normal(size=shape))
        result = linear(x, weight, bias)
        assert result.is_contiguous()
        same(result, x.numpy() @ dense.T + bias.numpy())
        same(linear(x, weight), x.numpy() @ dense.T)
    layer = torch.nn.Linear(6, 8, dtype=torch.float64)
    layer.weight = torch.nn.Parameter(weight)
    layer(x.new_ones(3, 6)).sum().backward()
    assert layer.weight.grad.layout is torch.sparse_bsr
    assert layer.weight.grad.values().unique().tolist() == [3]
    with pytest.raises(RuntimeError, match=r"input \(5,\) does not have the 6 features"):
        linear(torch.ones(5), weight)
    with pytest.raises(RuntimeError, match="same dtype"):
        linear(torch.ones(6), weight)


def test_relatives_of_the_product() -> None:
    dense = blocks(3, 2, (2, 3), 0.7)
    x, d = (
        tensor_of(dense).to_sparse_bsr((2, 3)),
        tensor_of(np.random.default_rng(1).normal(size=(6, 6))),
    )
    same(torch.mv(x, d[0]), dense @ d[0].numpy())
    same(d[0] @ x, d[0].numpy() @ dense)
    same(torch.addmm(d, x, d, beta=2, alpha=3), 2 * d.numpy() + 3 * dense @ d.numpy())
    same(torch.addmv(d[0], x, d[1]), d[0].numpy() + dense @ d[1].numpy())
    same(torch.sparse.mm(x, d), dense @ d.numpy())
    product = x @ coo(6, 6, 9)
    assert product.layout is torch.sparse_bsr
    assert product.values().shape[1:] == (2, 1)
    same(product, dense @ coo(6, 6, 9).to_dense().numpy())
    product = x @ tensor_of(dense).to_sparse_bsc((3, 2))
    assert product.values().shape[1:] == (2, 2)
    same(product, dense @ dense)
    assert (coo(6, 6, 9).to_sparse_csr() @ x).layout is torch.sparse_csr
    sampled = torch.sparse.sampled_addmm(x, d, d, beta=0.5)
    held = np.kron(abs(dense.reshape(3, 2, 2, 3)).sum((1, 3)) > 0, np.ones((2, 3)))
    same(sampled, held * (dense * 0.5 + (d @ d).numpy()))
    for message, call in (
        ("cannot be multiplied", lambda: x @ d[:5]),
        ("same dtype", lambda: x @ d.float()),
        ("do not multiply", lambda: torch.bmm(x, d)),
    ):
        with pytest.raises((RuntimeError, NotImplementedError), match=message):
            call()


def test_the_two_ops_behind_gradients_check_their_blocks() -> None:
    core, x = torch._C.ops("core"), torch.ones(4, 6).to_sparse_bsr((2, 3))
    for values in (torch.ones(4), torch.ones(4, 3, 2), torch.ones(3, 2, 3), torch.ones(4, 2)):
        with pytest.raises(RuntimeError, match="expected values for 4 entries"):
            core["_sparse_like"](values, x)
        with pytest.raises(RuntimeError, match="do not multiply"):
            core["_sparse_dense_mm"](values, x, torch.ones(6, 2), False)
    with pytest.raises(RuntimeError, match="do not multiply"):
        core["_sparse_dense_mm"](x.values(), x, torch.ones(4, 2), False)
    with pytest.raises(RuntimeError, match="do not fit"):
        core["_sparse_dots"](x, torch.ones(6, 2), torch.ones(4, 2))
