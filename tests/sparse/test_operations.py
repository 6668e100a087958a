"""Ops on sparse tensors against the same ops on dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.matrix import tensor_of
from sparse_matrices import LAYOUTS, coo, in_layout, matrices, same

import rushlight as torch

# Arithmetic


@given(matrices(), st.data(), st.sampled_from(LAYOUTS))
@settings(max_examples=60)
def test_arithmetic_equals_that_of_dense_tensors(parts: Any, data: Any, layout: Any) -> None:
    indices, values, shape = parts
    x = torch.sparse_coo_tensor(indices, values, shape)
    x = x if layout is torch.sparse_coo else in_layout(x, layout)
    other = data.draw(st.permutations(range(len(values))))
    y = in_layout(torch.sparse_coo_tensor(indices[:, other], values + 1, shape), layout)
    a, b = x.to_dense(), y.to_dense()
    d = torch.arange(float(a.numel()), dtype=torch.float64).reshape(shape)
    same(x + y, a + b)
    same(torch.add(x, y, alpha=-2), a - 2 * b)
    same(x - y, a - b)
    same(x + x, a + a)
    same(x * y, a * b)
    same(x * x, a * a)
    same(d + x, d + a)
    same(x + d, d + a)
    same(x - d, a - d)
    same(d - x, d - a)
    same(x * d, a * d)
    same(d[:1] * x, d[:1] * a)
    same(d.clone().add_(x, alpha=3), d + 3 * a)
    same(d.clone().sub_(x), d - a)
    same(x * 3, a * 3)
    same(2 * x, a * 2)
    same(x / 4, a / 4)
    same(x**2, a**2)
    same(-x, -a)
    same(x.mul(torch.tensor(2.0)), a * 2)
    assert (x + y).layout is layout
    assert x.sum().item() == a.sum().item()
    for dim in (0, 1, (0, 1), -1):
        same(x.sum(dim), a.sum(dim))
        same(x.sum(dim, keepdim=True), a.sum(dim, keepdim=True))
    same(torch.norm(x), torch.norm(a))


@pytest.mark.parametrize(
    "name",
    [
        "abs",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "deg2rad",
        "erf",
        "erfinv",
        "expm1",
        "floor",
        "frac",
        "isinf",
        "isnan",
        "isneginf",
        "isposinf",
        "log1p",
        "nan_to_num",
        "neg",
        "positive",
        "rad2deg",
        "relu",
        "round",
        "sgn",
        "sign",
        "signbit",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "trunc",
    ],
)
def test_functions_that_keep_zero_work_on_entries(name: str) -> None:
    x = coo(4, 5, 12) * 0.2
    x = x * x if name == "sqrt" else x
    function = getattr(torch, name)
    for layout in LAYOUTS:
        result = function(in_layout(x, layout))
        assert result.layout is layout
        same(result, function(x.to_dense()))
    if x.dtype is function(x.to_dense()).dtype and name != "positive":
        y = x.clone()
        assert getattr(y, name + "_")() is y
        same(y, function(x.to_dense()))


@pytest.mark.parametrize("name", ["rand_like", "randn_like"])
def test_random_numbers_stand_at_the_entries(name: str) -> None:
    for layout in LAYOUTS:
        x = in_layout(coo(4, 5, 12).coalesce(), layout)
        drawn = getattr(torch, name)(x)
        assert drawn.layout is layout and drawn.values().shape == x.values().shape
        assert len(set(drawn.values().flatten().tolist())) == x.values().numel()


def test_functions_that_do_not_keep_zero_are_refused_by_name() -> None:
    x = coo(3, 4, 5)
    for name in ("exp", "cos", "sigmoid", "cumsum", "max", "sort"):
        args = (0,) if name == "cumsum" else ()
        with pytest.raises(
            NotImplementedError, match=rf"^{name}: not implemented for .* sparse_coo\. Use to_dense"
        ):
            getattr(torch, name)(x, *args)
    with pytest.raises(NotImplementedError, match="a number and a sparse tensor"):
        x + 1
    with pytest.raises(NotImplementedError, match="positive number"):
        x**0
    with pytest.raises(NotImplementedError, match="divided by a number"):
        x / x
    with pytest.raises(NotImplementedError, match="divided by a number"):
        x // x
    with pytest.raises(NotImplementedError, match="along dims"):
        x.any(0)
    with pytest.raises(TypeError, match="Use Tensor.to_dense"):
        x.numpy()
    with pytest.raises(RuntimeError, match="do not fit"):
        x + coo(4, 3, 5)


def test_quotients_are_rounded_and_any_asks_after_adding_up_equal_entries() -> None:
    places = torch.tensor([[0, 1, 1], [1, 2, 2]])
    x = torch.sparse_coo_tensor(places, torch.tensor([-5.0, 1.0, 2.0]), (2, 3))
    for result, divide in (
        (x // 2, lambda d: d // 2),
        (x.div(2, rounding_mode="trunc"), lambda d: d.div(2, rounding_mode="trunc")),
        (torch.div(x, torch.tensor(2), rounding_mode="floor"), lambda d: d // 2),
    ):
        assert result.layout is torch.sparse_coo
        same(result, divide(x.to_dense()))
    same((x.to_sparse_csr() // 2), x.to_dense() // 2)
    assert x.any() and not torch.any(x - x) and x.any().layout is torch.strided


def test_products_of_sparse_tensors_broadcast_numbers_and_dense_dims() -> None:
    x, two = coo(3, 4, 5), torch.tensor(2.0).to_sparse()
    same(x * two, x.to_dense() * 2)
    same(two * x, x.to_dense() * 2)
    a = torch.sparse_coo_tensor([[0, 2]], torch.arange(6.0).view(2, 3), (3, 3))
    b = torch.sparse_coo_tensor([[2, 1]], torch.tensor([[3.0], [4.0]]), (3, 1))
    same(a * b, a.to_dense() * b.to_dense())
    same(b * a, a.to_dense() * b.to_dense())


def test_transposing_in_place() -> None:
    x = coo(3, 4, 5)
    a = x.to_dense()
    assert x.t_() is x and x.shape == (4, 3)
    same(x, a.t())
    same(x.transpose_(0, 1), a)
    y = x * 1.0
    with pytest.raises(RuntimeError, match="has layout sparse_csc"):
        y.to_sparse_csr().t_()


def test_elements_of_sparse_tensors_are_not_assigned_to() -> None:
    x = coo(3, 4, 5)
    with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
        x[0] = 100


def test_writing_in_place() -> None:
    x, y = coo(3, 4, 5), coo(3, 4, 4, 1)
    a, b = x.to_dense(), y.to_dense()
    version = x._version
    assert x.add_(y, alpha=2) is x
    same(x, a + 2 * b)
    assert x._version == version + 1
    x.mul_(2).sub_(y)
    same(x, 2 * (a + 2 * b) - b)
    x.div_(2)
    x.neg_()
    same(x, b / 2 - (a + 2 * b))
    x.copy_(y)
    same(x, b)
    x.zero_()
    same(x, a * 0)
    assert x._nnz() == 0
    z = y.clone()
    y._values().zero_()
    same(z, b)
    with pytest.raises(RuntimeError, match="has layout strided and cannot be written"):
        x.add_(a)
    with pytest.raises(RuntimeError, match="cannot be copied"):
        x.copy_(a)
    d = a.clone()
    d *= z
    same(d, a * b)


def test_joining_along_dense_dims() -> None:
    a = torch.sparse_coo_tensor([[0, 2]], torch.arange(6.0).view(2, 3), (3, 3), requires_grad=True)
    b = torch.sparse_coo_tensor([[2, 1]], torch.ones(2, 2), (3, 2))
    joined = torch.cat([a, b], -1)
    same(joined.detach(), torch.cat([a.detach().to_dense(), b.to_dense()], 1))
    (joined.to_dense() * 2).sum().backward()
    assert a.grad.coalesce().values().eq(2).all()
    same(torch.stack([b, b], 1), torch.stack([b.to_dense()] * 2, 1))
    with pytest.raises(RuntimeError, match="do not join along dim 1"):
        torch.cat([a, torch.sparse_coo_tensor((4, 2))], 1)


def test_sums_with_nothing_take_other_sparse_dims() -> None:
    x = torch.sparse_coo_tensor([[0, 2]], torch.ones(2, 3), (3, 3))
    nothing = torch.sparse_coo_tensor((3, 3))
    assert (nothing.sparse_dim(), x.sparse_dim()) == (2, 1)
    same(x + nothing, x.to_dense())
    same(nothing - x, -x.to_dense())
    with pytest.raises(RuntimeError, match="sparse dims do not fit"):
        x + torch.eye(3).to_sparse()


def test_out_is_not_cut_off() -> None:
    x = torch.tensor([0.0, 0.5]).to_sparse()
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.asin(x, out=x.int())


def test_the_order_of_entries_is_noted() -> None:
    x = torch.eye(3).to_sparse()
    assert not x._coalesced_(False).is_coalesced()
    assert x._coalesced_(True) is x and x.is_coalesced()
    assert torch.sparse_coo_tensor([[0]], [1.0], (3,)).is_coalesced()
    assert not torch.sparse_coo_tensor([[0]], [1.0], (3,), is_coalesced=False).is_coalesced()
    with pytest.raises(RuntimeError, match="does not come after"):
        torch.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (3,))._coalesced_(True)


def test_resizing() -> None:
    x = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))
    x.sparse_resize_((5,), 1, 0)
    assert x.to_dense().tolist() == [1, 2, 0, 0, 0]
    with pytest.raises(RuntimeError, match="dim 0 is 5 and would become 1"):
        x.sparse_resize_((1,), 1, 0)
    with pytest.raises(RuntimeError, match="number of dimensions must be"):
        x.sparse_resize_((5, 5), 1, 0)
    x.sparse_resize_and_clear_((2, 3), 1, 1)
    assert (x._nnz(), x.shape, x.dense_dim()) == (0, (2, 3), 1)
    y = torch.sparse_coo_tensor((4, 4))
    assert x.resize_as_sparse_(y).shape == (4, 4)


def test_native_norm_is_of_all_elements() -> None:
    x = torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], [1.0, 2.0, -4.0], (3, 2))
    assert torch.native_norm(x).item() == 5
    assert torch.native_norm(x, None, [-1, 0], False, None).item() == 5
    assert torch.native_norm(x, 1).item() == 7
    assert torch.native_norm(x, 2, dtype=torch.float64).dtype == torch.float64
    for refused in (lambda: torch.native_norm(x, 2, [0]), lambda: torch.native_norm(x.to_dense())):
        with pytest.raises(NotImplementedError, match="norm: "):
            refused()


def test_norms_by_name_and_of_order_zero() -> None:
    x = torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], [1.0, 2.0, -4.0], (3, 2))
    assert x.norm("fro").item() == 5
    assert x.norm(0).item() == 2
    with pytest.raises(NotImplementedError, match="norm 'nuc' of a sparse tensor"):
        x.norm("nuc")


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_softmax_is_over_the_entries(dim: int) -> None:
    generator = np.random.default_rng(0)
    indices = generator.integers(0, 3, (2, 12))
    x = torch.sparse_coo_tensor(indices, generator.normal(size=(12, 2)), (3, 3, 2))
    dense, entries = x.to_dense(), torch.sparse_coo_tensor(indices, np.ones((12, 2))).to_dense() > 0
    hidden = torch.where(entries, dense, -torch.inf) if dim in (0, 1) else dense
    expected = torch.where(entries, torch.softmax(hidden, dim), 0.0)
    same(torch.sparse.softmax(x, dim), torch.nan_to_num(expected))
    logarithm = torch.sparse.log_softmax(x, dim, dtype=torch.float64)
    np.testing.assert_allclose(
        logarithm.values().exp().numpy(), torch.sparse.softmax(x, dim).values().numpy()
    )


# Picking and joining


def test_rows_columns_and_slices_can_be_picked() -> None:
    generator = np.random.default_rng(0)
    x = torch.sparse_coo_tensor(
        generator.integers(0, 4, (2, 10)), generator.normal(size=(10, 3)), (4, 4, 3)
    )
    a = x.to_dense()
    for dim in range(3):
        for i in (0, 2, -1):
            same(x.select(dim, i), a.select(dim, i))
        picks = torch.tensor([2, 0, 2, 1])[: x.shape[dim]]
        same(x.index_select(dim, picks), a.index_select(dim, picks))
        same(x.index_select(dim, picks - x.shape[dim]), a.index_select(dim, picks))
        same(x.narrow_copy(dim, 1, 2), a.narrow(dim, 1, 2))
        same(x.narrow(dim, -2, 1), a.narrow(dim, -2, 1))
    same(x[1], a[1])
    same(x[1, 2], a[1, 2])
    same(x[:, 2], a[:, 2])
    assert [row.to_dense().tolist() for row in x] == a.tolist()
    same(x.unsqueeze(0), a.unsqueeze(0))
    same(x.unsqueeze(1), a.unsqueeze(1))
    same(x.unsqueeze(-1), a.unsqueeze(-1))
    same(x.permute(1, 0, 2), a.permute(1, 0, 2))
    for few in (a[0, 0, 0], a[0, 0], a[0]):
        same(few.to_sparse().t(), few.t())
    with pytest.raises(RuntimeError, match="dim 2 cannot become dim 0"):
        x.permute(2, 1, 0)
    with pytest.raises(IndexError, match="index 4 is out of"):
        x.index_select(0, torch.tensor([4]))
    with pytest.raises(IndexError, match="out of"):
        x.select(0, 9)
    with pytest.raises(RuntimeError, match="narrow"):
        x.narrow(0, 3, 2)
    for layout in LAYOUTS:
        y = in_layout(coo(3, 4, 5), layout)
        same(y.index_select(1, torch.tensor([3, 0])), y.to_dense()[:, [3, 0]])
        same(y[1], y.to_dense()[1])


def test_tensors_can_be_joined() -> None:
    x, y = coo(3, 4, 5), coo(3, 4, 6, 1)
    for dim in (0, 1, -1):
        same(torch.cat([x, y, x], dim), torch.cat([x.to_dense(), y.to_dense(), x.to_dense()], dim))
        same(torch.stack([x, y], dim), torch.stack([x.to_dense(), y.to_dense()], dim))
    ordered = torch.cat([x.coalesce(), y.coalesce()])
    assert ordered.is_coalesced()
    assert ordered.coalesce().indices().tolist() == ordered.indices().tolist()
    with pytest.raises(NotImplementedError, match="sparse and dense tensors cannot be joined"):
        torch.cat([x, y.to_dense()])
    with pytest.raises(RuntimeError, match="do not join along dim 0"):
        torch.cat([x, coo(3, 5, 2)])


def test_sparse_mask_takes_the_elements_at_the_entries() -> None:
    mask, d = coo(4, 5, 6), torch.arange(20.0).reshape(4, 5)
    masked = d.sparse_mask(mask)
    assert masked._nnz() == mask.coalesce()._nnz()
    same(masked, torch.where(mask.to_dense() != 0, d, 0.0))
    x = coo(4, 5, 9, 3)
    same(x.sparse_mask(mask), torch.where(mask.to_dense() != 0, x.to_dense(), 0.0))
    same(x.sparse_mask(mask.to_sparse_csr()), x.sparse_mask(mask))


def test_spdiags_equals_that_of_scipy() -> None:
    diagonals, offsets = np.arange(12.0).reshape(3, 4), np.array([0, -1, 2])
    for shape in ((4, 4), (3, 5), (6, 2)):
        expected = scipy.sparse.spdiags(diagonals, offsets, *shape).toarray()
        for layout in (None, torch.sparse_csr):
            actual = torch.sparse.spdiags(tensor_of(diagonals), tensor_of(offsets), shape, layout)
            same(actual, expected)
    with pytest.raises(RuntimeError, match="do not fit 1 offsets"):
        torch.sparse.spdiags(tensor_of(diagonals), torch.tensor([0]), (4, 4))
    with pytest.raises(RuntimeError, match="duplicate"):
        torch.sparse.spdiags(tensor_of(diagonals), torch.tensor([0, 0, 1]), (4, 4))
    for wrong in (torch.tensor([0, 1, 2], dtype=torch.int32), torch.tensor([[0, 1, 2]])):
        with pytest.raises(RuntimeError, match="dtype int64 and at most one dim"):
            torch.sparse.spdiags(tensor_of(diagonals), wrong, (4, 4))
    with pytest.raises(RuntimeError, match="must be a sparse one"):
        torch.sparse.spdiags(tensor_of(diagonals), torch.tensor([0, 1, 2]), (4, 4), torch.strided)
