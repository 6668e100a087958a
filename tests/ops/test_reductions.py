"""What the op matrix cannot say of reductions, softmax and scans: ties, NaN, nothing, dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

import rushlight as rl

rng = np.random.default_rng(3)


def array(t: Any) -> np.ndarray:
    return t.detach().to(rl.float64).numpy()


# Dtypes


@pytest.mark.parametrize("dtype", [rl.bool, rl.uint8, rl.int8, rl.int16, rl.int32, rl.int64])
def test_sums_and_products_of_integers_are_int64(dtype: rl.dtype) -> None:
    x = rl.tensor([1, 0, 1]).to(dtype)
    assert x.sum().dtype is x.sum(0).dtype is x.prod().dtype is x.cumsum(0).dtype is rl.int64
    assert x.sum().item() == 2
    assert x.sum(dtype=rl.int32).dtype is rl.int32


def test_sums_of_small_integers_do_not_wrap_around() -> None:
    assert rl.full((1000,), 200, dtype=rl.uint8).sum().item() == 200_000
    assert rl.full((1000,), 200, dtype=rl.uint8).sum(dtype=rl.uint8).item() == 200_000 % 256


def test_dtype_converts_before_it_adds() -> None:
    half = rl.full((4096,), 1.0, dtype=rl.float16)
    assert half.sum().item() == 4096  # accumulated in float32
    assert half.sum(dtype=rl.float64).dtype is rl.float64
    assert rl.tensor([1, 2]).mean(dtype=rl.float32).item() == 1.5
    assert rl.tensor([0.4, 0.4]).sum(dtype=rl.bool).item() is True


def test_mean_of_integers_needs_a_dtype() -> None:
    with pytest.raises(RuntimeError, match=r"mean: could not infer output dtype.*Got: int64"):
        rl.tensor([1, 2]).mean()


def test_truth_of_uint8_is_uint8() -> None:
    x = rl.tensor([0, 2], dtype=rl.uint8)
    assert x.any().dtype is rl.uint8
    assert x.any().item() == 1
    assert x.int().all().dtype is rl.bool


def test_complex_numbers_are_added_and_measured() -> None:
    x = rl.tensor([3 + 4j, 1 - 1j])
    assert x.sum().item() == 4 + 3j
    assert x.prod().item() == pytest.approx(7 + 1j)
    assert x.norm(1).item() == pytest.approx(5 + 2**0.5)
    many = np.random.default_rng(3).normal(size=(300, 7, 80)).view(np.complex128)
    for dim in (0, 1, 2, (0, 2), (0, 1, 2)):
        for mine, theirs in ((rl.sum, np.sum), (rl.mean, np.mean)):
            result = mine(rl.from_numpy(many), dim)
            np.testing.assert_allclose(result.numpy(), theirs(many, axis=dim), 1e-12, 1e-12)
    with pytest.raises((RuntimeError, NotImplementedError), match="not implemented for complex64"):
        x.max()


# NaN, ties and infinities


def test_nan_is_the_largest_and_the_smallest() -> None:
    x = rl.tensor([[1.0, float("nan"), 3.0, float("nan")], [4.0, 5.0, 6.0, 0.0]])
    for extreme in (rl.max, rl.min):
        values, indices = extreme(x, 1)
        assert np.isnan(values[0].item())
        assert indices[0].item() == 1
        assert np.isnan(extreme(x).item())
    assert x.argmax().item() == x.argmin().item() == 1
    assert np.isnan(x.amax(0)[1].item())
    assert x.amax(0)[0].item() == 4.0
    running, at = x.cummax(1)
    assert np.isnan(array(running)[0]).tolist() == [False, True, True, True]
    assert at.tolist() == [[0, 1, 1, 3], [0, 1, 2, 2]]


@pytest.mark.parametrize("shape", [(50,), (3, 50), (50, 3), (5, 50, 2), (3, 40001)])
def test_the_first_of_equal_extremes_is_found(shape: tuple[int, ...]) -> None:
    x = rng.integers(0, 3, shape)
    for dim in range(len(shape)):
        assert np.array_equal(rl.tensor(x).max(dim).indices.numpy(), x.argmax(dim))
        assert np.array_equal(rl.tensor(x.astype(np.float32)).argmin(dim).numpy(), x.argmin(dim))
    assert rl.tensor(x).argmax().item() == x.argmax()


def test_all_minus_infinity_has_an_extreme() -> None:
    values, indices = rl.full((3, 100), -float("inf")).max(1)
    assert indices.tolist() == [0, 0, 0]
    assert values.tolist() == [-float("inf")] * 3


def test_equal_extremes_share_the_gradient() -> None:
    x = rl.tensor([2.0, 5.0, 5.0], requires_grad=True)
    x.max().backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5]
    x.grad = None
    x.max(0).values.backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_running_extremes_take_the_last_position() -> None:
    x = rl.tensor([1, 3, 3, 2, 3])
    assert x.cummax(0).indices.tolist() == [0, 1, 2, 2, 4]
    assert x.cummin(0).indices.tolist() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("value", [float("inf"), -float("inf")])
def test_logsumexp_of_infinities_is_infinite(value: float) -> None:
    x = rl.tensor([[value, -float("inf"), value]] * 2, requires_grad=True)
    assert x.logsumexp(1).tolist() == [value] * 2
    assert x.logsumexp(0).tolist() == [value, -float("inf"), value]
    if value < 0:
        x.logsumexp(1).sum().backward()
        assert x.grad.tolist() == [[0.0] * 3] * 2


def test_softmax_ignores_minus_infinity() -> None:
    x = rl.tensor([[0.0, -float("inf"), 0.0]], requires_grad=True)
    y = x.softmax(1)
    assert y.tolist() == [[0.5, 0.0, 0.5]]
    y[0, 0].backward()
    assert x.grad.tolist() == [[0.25, 0.0, -0.25]]


# Nothing


def test_nothing_reduces_to_the_neutral_element() -> None:
    x = rl.zeros(2, 0)
    assert x.sum(1).tolist() == [0.0, 0.0]
    assert x.prod().item() == 1.0
    assert x.all().item() is True
    assert x.any().item() is False
    assert np.isnan(x.mean().item())
    assert np.isnan(x.var(1)).all()
    assert x.logsumexp(1).tolist() == [-float("inf")] * 2
    assert x.norm().item() == 0.0
    assert x.sum(0).shape == x.softmax(0).shape[1:] == x.cumsum(1).shape[1:] == (0,)


@pytest.mark.parametrize("f", [rl.max, rl.min, rl.amax, rl.amin, rl.argmax, rl.argmin])
def test_an_extreme_of_nothing_raises(f: Callable[..., Any]) -> None:
    kind = IndexError if f in (rl.argmax, rl.argmin) else RuntimeError
    with pytest.raises(kind, match="Expected reduction dim to be specified"):
        f(rl.zeros(0))
    with pytest.raises(IndexError, match="Expected reduction dim 1 to have non-zero size"):
        f(rl.zeros(2, 0), -1)
    assert f(rl.zeros(0, 3), 1) is not None


def test_variance_of_one_element_is_nan_but_not_of_a_population() -> None:
    x = rl.tensor([[3.0]])
    assert np.isnan(x.var().item())
    assert x.var(correction=0).item() == 0.0


# Dims


def test_truth_over_no_dims_is_that_of_each_element() -> None:
    assert rl.tensor([[0, 2]]).any(()).tolist() == [[False, True]]


def test_running_sums_in_place_are_recorded() -> None:
    x = rl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y.cumsum_(0)
    assert y.tolist() == [1.0, 3.0, 6.0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 2.0, 1.0]


def test_dims_are_checked() -> None:
    x = rl.zeros(2, 3)
    for f in (x.sum, x.mean, x.amax, x.softmax, x.cumsum, x.logsumexp, x.argmax, x.max, x.prod):
        with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 2"):
            f(2)
    with pytest.raises(RuntimeError, match="dim 1 appears multiple times"):
        x.sum((1, -1))


def test_a_number_reduces_over_dim_0_and_minus_1() -> None:
    x = rl.tensor(2.5)
    for dim in (0, -1):
        assert x.sum(dim).item() == x.amax(dim).item() == x.cumsum(dim).item() == 2.5
        assert x.max(dim).indices.item() == 0
        assert x.softmax(dim).item() == 1.0


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5).flatmap(
        lambda shape: st.tuples(
            st.just(shape),
            st.permutations(range(len(shape))),
            st.sets(st.integers(0, len(shape) - 1)),
        )
    ),
    st.booleans(),
    st.integers(1, 2),
)
def test_any_layout_gives_the_same_result(case: tuple[Any, ...], keepdim: bool, step: int) -> None:
    shape, order, dims = case
    values = np.sin(np.arange(np.prod(shape) * step)).reshape(*shape[:-1], shape[-1] * step)
    view = values[..., ::step].transpose(order)
    x = rl.from_numpy(view)
    assert x.shape == view.shape
    dim, axis = (tuple(dims), tuple(dims)) if dims else (None, None)
    for mine, theirs in ((rl.sum, np.sum), (rl.amax, np.max)):
        np.testing.assert_allclose(
            mine(x, dim, keepdim).numpy(),
            theirs(view, axis=axis, keepdims=keepdim),
            rtol=1e-12,
            atol=1e-12,
        )
    np.testing.assert_allclose(x.softmax(0).numpy(), scipy.special.softmax(view, 0), rtol=1e-12)
    np.testing.assert_allclose(x.cumsum(-1).numpy(), view.cumsum(-1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("columns", [257, 266, 1025, 1030, 1036, 2049])
@pytest.mark.parametrize("dtype", [rl.float32, rl.float16, rl.float64])
def test_a_sum_does_not_depend_on_where_it_lies(columns: int, dtype: rl.dtype) -> None:
    for rows, width, kept in ((50, 5, 3), (200, 5, 3), (40, 9, 7), (1000, 3, 2), (3000, 1, 1)):
        x = rl.randn(rows, width, columns, dtype=rl.float64).to(dtype)
        exact = rl.float64 if dtype is rl.float64 else rl.float32
        sums = x[:, :kept].sum((0, 1), dtype=exact)
        for shift in (1, 5, columns // 2):
            moved = x.roll(shift, 2)[:, :kept].sum((0, 1), dtype=exact)
            assert rl.equal(moved, sums.roll(shift, 0))


def test_expanded_and_negative_strided_inputs_reduce() -> None:
    x = rl.tensor([1.0, 2.0, 3.0]).expand(70, 3)
    assert x.sum(0).tolist() == [70.0, 140.0, 210.0]
    assert x.sum(1).tolist() == [6.0] * 70
    assert x.sum().item() == 420.0
    assert x.argmax().item() == 2
    planes = rl.arange(6.0).reshape(2, 3).t().expand(4, 3, 2)
    assert planes.sum().item() == 60.0 and planes.argmax().item() == 5
    assert planes.sum((0, 1)).tolist() == [12.0, 48.0]
    assert planes.flip(1).amax(2).tolist() == [[5.0, 4.0, 3.0]] * 4


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
@pytest.mark.parametrize("shape", [(4, 1000), (1000, 4), (3, 70, 5)])
def test_half_types_are_computed_in_float32(dtype: rl.dtype, shape: tuple[int, ...]) -> None:
    x = rl.tensor(rng.normal(size=shape)).to(dtype)
    exact = array(x)
    step = 2.0**-10 if dtype is rl.float16 else 2.0**-7
    for dim in range(len(shape)):
        for mine, theirs in (
            (x.sum(dim), exact.sum(dim)),
            (x.std(dim), exact.std(dim, ddof=1)),
            (x.softmax(dim), scipy.special.softmax(exact, dim)),
            (x.log_softmax(dim), scipy.special.log_softmax(exact, dim)),
            (x.logsumexp(dim), scipy.special.logsumexp(exact, dim)),
            (x.norm(dim=dim), np.linalg.norm(exact, axis=dim)),
        ):
            assert mine.dtype is dtype
            np.testing.assert_allclose(array(mine), theirs, rtol=step, atol=step**2)
        assert np.array_equal(array(x.amax(dim)), exact.max(dim))
        assert np.array_equal(array(x.amin(dim)), exact.min(dim))
        with_nan = x.where(x < 1, rl.nan)
        theirs = np.where(exact < 1, exact, 0).sum(dim)
        np.testing.assert_allclose(array(with_nan.nansum(dim)), theirs, rtol=step, atol=step**2)
        assert np.array_equal(array(with_nan.amax(dim).isnan()), (exact >= 1).any(dim))


def test_softmax_dtype_keeps_the_gradient_in_the_dtype_of_the_input() -> None:
    x = rl.tensor([[1.0, 2.0]], dtype=rl.float16, requires_grad=True)
    y = rl.nn.functional.softmax(x, dim=-1, dtype=rl.float32)
    assert y.dtype is rl.float32
    y[0, 0].backward()
    assert x.grad.dtype is rl.float16


def test_a_long_float_sum_keeps_its_digits() -> None:
    x = rl.full((10_000_000,), 0.1)
    assert x.sum().item() == pytest.approx(1e6, rel=1e-6)
    assert x.view(-1, 4).sum(0).tolist() == pytest.approx([2.5e5] * 4, rel=1e-6)
    assert x.mean().item() == pytest.approx(0.1, rel=1e-6)


def test_variance_keeps_its_digits_far_from_zero() -> None:
    x = rng.normal(size=(1000, 30)) + 1000.0
    for dim in (0, 1):
        exact = x.astype(np.float32).astype(np.float64).var(dim, ddof=1)
        np.testing.assert_allclose(
            array(rl.tensor(x.astype(np.float32)).var(dim)), exact, rtol=1e-5
        )


# Gradients beside the matrix


def test_norm_at_zero_has_gradient_zero() -> None:
    for p in (1, 2, 3, float("inf")):
        x = rl.zeros(3, requires_grad=True)
        x.norm(p).backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]
    x = rl.tensor([2.0, 2.0], requires_grad=True)
    x.std().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_var_mean_sums_what_arrives_for_both_results() -> None:
    x = rl.tensor([1.0, 2.0, 6.0], requires_grad=True)
    variance, mean = rl.var_mean(x)
    (variance + mean).backward()
    np.testing.assert_allclose(x.grad.numpy(), (np.array([1.0, 2.0, 6.0]) - 3) + 1 / 3, rtol=1e-6)


def test_the_sum_to_a_shape_undoes_broadcasting() -> None:
    x = rl.tensor(rng.normal(size=(4, 3, 5)))
    for size in ((4, 3, 5), (3, 5), (1, 5), (3, 1), (5,), (1,), (), (4, 1, 1)):
        got = rl._C._sum_to(x, size)
        kept = (1,) * (3 - len(size)) + size
        dims = tuple(d for d in range(3) if kept[d] == 1)
        np.testing.assert_allclose(got.numpy(), x.numpy().sum(dims, keepdims=True).reshape(size))
    with pytest.raises(RuntimeError, match="cannot be summed"):
        rl._C._sum_to(x, (2, 5))
