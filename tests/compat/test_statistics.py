"""Statistics, distances and numeric functions give what PyTorch gives, gradients included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

rng = np.random.default_rng(5)
NAN = float("nan")


def compare(mine: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(mine) == len(expected)
        for m, e in zip(mine, expected, strict=True):
            compare(m, e)
        return
    assert str(mine.dtype) == str(expected.dtype)
    assert tuple(mine.shape) == tuple(expected.shape)
    np.testing.assert_allclose(
        mine.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6, equal_nan=True
    )


def check(f: Callable[..., Any], *arrays: Any) -> None:
    compare(
        f(torch, *[torch.tensor(a) for a in arrays]),
        f(pytorch, *[pytorch.tensor(a) for a in arrays]),
    )


def check_grads(f: Callable[..., Any], *arrays: np.ndarray) -> None:
    """The same, and the gradients of the first result times fixed weights."""

    def run(lib: Any) -> Any:
        inputs = [lib.tensor(a, requires_grad=True) for a in arrays]
        result = f(lib, *inputs)
        first = result[0] if isinstance(result, (tuple, list)) else result
        weights = lib.tensor(np.cos(np.arange(first.numel())).reshape(tuple(first.shape)))
        grads = lib.autograd.grad((first * weights).sum(), inputs, allow_unused=True)
        return [result, [g for g in grads if g is not None]]

    compare(run(torch), run(pytorch))


X = rng.normal(size=(4, 7))
WITH_NAN = np.where(rng.random((4, 7)) < 0.2, np.nan, X)
TIES = rng.integers(0, 3, (5, 9))


@pytest.mark.parametrize("x", [X, WITH_NAN, TIES, X.astype(np.float32), TIES.astype(np.uint8)])
@pytest.mark.parametrize("dim", [0, -1])
def test_medians(x: np.ndarray, dim: int) -> None:
    check(lambda t, x: [x.median(), x.nanmedian(), x.median(dim)[0], x.nanmedian(dim)[0]], x)
    check(lambda t, x: x.median(dim, keepdim=True).values, x)
    if x is not WITH_NAN:
        check(lambda t, x: x.mode(dim), x)
    check(lambda t, x: [x.kthvalue(k, dim).values for k in (1, 2, 4)], x)


def test_gradients_of_medians() -> None:
    check_grads(lambda t, x: x.median(), X)
    check_grads(lambda t, x: x.median(), np.array([1.0, 2.0, 2.0, 2.0, 5.0]))
    check_grads(lambda t, x: x.median(), WITH_NAN)
    check_grads(lambda t, x: x.nanmedian(), WITH_NAN)
    check_grads(lambda t, x: x.median(1), X)
    check_grads(lambda t, x: x.nanmedian(0), WITH_NAN)
    check_grads(lambda t, x: x.kthvalue(2, 0), X)
    check_grads(lambda t, x: x.mode(0), X)


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("x", [X, WITH_NAN, X.astype(np.float32)])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_quantiles(how: str, x: np.ndarray, name: str, keepdim: bool, dim: int | None) -> None:
    q = np.array([0.0, 0.1, 0.25, 0.5, 0.77, 1.0], x.dtype)
    options = {"dim": dim, "keepdim": keepdim, "interpolation": how}
    check(lambda t, x, q: getattr(t, name)(x, q, **options), x, q)
    check(lambda t, x: getattr(x, name)(0.4, **options), x)
    if x is not WITH_NAN:  # which NaN a gradient goes to is not specified
        check_grads(lambda t, x, q: getattr(t, name)(x, q, **options), x, q[1:4])


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.6, 0.75, 0.9, 1.0])
def test_quantiles_of_infinite_values(q: float) -> None:
    check(lambda t, x: t.quantile(x, q), np.array([-np.inf, 1.0, 2.0, np.inf, np.inf]))


def test_histograms() -> None:
    x = rng.normal(size=1000).astype(np.float32)
    w = rng.random(1000).astype(np.float32)
    check(lambda t, x: [x.histc(7), x.histc(10, -1, 1), x.histc(3, min=0, max=5)], x)
    check(lambda t, x: list(t.histogram(x, 9)), x)
    check(lambda t, x, w: list(t.histogram(x, 9, range=(-1, 2), weight=w, density=True)), x, w)
    edges = np.array([-2.0, -1.0, 0.5, 0.75], np.float32)
    check(lambda t, x, e: list(t.histogram(x, e, density=True)), x, edges)
    points = rng.normal(size=(100, 2)).astype(np.float32)
    check(lambda t, x: list(t.histogramdd(x, [3, 4])), points)
    check(lambda t, x: list(t.histogramdd(x, 3, range=[-1, 1, 0, 2.0], density=True)), points)
    check(lambda t, x, e: list(t.histogramdd(x, [e, e])), points, edges)
    check(lambda t, x: list(t.histogram(t.ones_like(x), 4)), x)
    check(lambda t, x: list(t.histogram(x[:0], 4)), x)


@pytest.mark.filterwarnings("ignore:cov")
@pytest.mark.parametrize("correction", [0, 1, 2, 7, 9])
def test_corrections_of_covariances(correction: int) -> None:
    check_grads(lambda t, x: t.cov(x, correction=correction), X)


def test_covariances() -> None:
    f, a = rng.integers(1, 4, 7), rng.random(7)
    check(lambda t, x, f, a: t.cov(x, fweights=f, aweights=a), X, f, a)
    check(lambda t, x, a: t.cov(x, correction=0, aweights=a), X, a)
    check(lambda t, x: [t.cov(x[0]), t.corrcoef(x), t.corrcoef(x[0])], X)
    check(lambda t, x: t.cov(x), TIES)
    check(lambda t, x: [t.cov(x), t.corrcoef(x)], X + 1j * X[::-1])
    check_grads(lambda t, x: t.corrcoef(x), X)


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_repeated_differences(n: int) -> None:
    check(lambda t, x: [x.diff(n), x.diff(n, 0)], X)
    check_grads(lambda t, x: x.diff(n, 0), X)


def test_differences() -> None:
    check(lambda t, x: x.diff(1, 1, x[:, :2], x[:, :1]), X)
    check(lambda t, x: x.diff(), TIES > 0)
    check(lambda t, x: x.diff(), TIES)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(edge_order: int) -> None:
    places = np.sort(rng.random(7))
    check_grads(lambda t, x: t.gradient(x, edge_order=edge_order), X)
    check_grads(lambda t, x: t.gradient(x, spacing=0.3, dim=1, edge_order=edge_order), X)
    check_grads(lambda t, x: t.gradient(x, spacing=[0.3, 2], edge_order=edge_order), X)
    check(lambda t, x, p: t.gradient(x, spacing=[p], dim=1, edge_order=edge_order), X, places)
    check(
        lambda t, x, p, q: t.gradient(x, spacing=(p, q), edge_order=edge_order),
        X, np.sort(rng.random(4)), places,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["trapezoid", "trapz", "cumulative_trapezoid"])
def test_integrals(name: str) -> None:
    places = np.sort(rng.random(7))
    check_grads(lambda t, y: getattr(t, name)(y, dim=0), X)
    check_grads(lambda t, y: getattr(t, name)(y, dx=0.5), X)
    check_grads(lambda t, y, x: getattr(t, name)(y, x), X, places)
    check_grads(lambda t, y, x: getattr(t, name)(y, x, dim=1), X, X + 3)


def test_integrals_of_integers_and_of_nothing() -> None:
    check(lambda t, y: [t.trapezoid(y), t.cumulative_trapezoid(y, dim=0)], TIES)
    check(lambda t, y: [t.trapezoid(y[:, :0]), t.trapezoid(y[:, :1])], X)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances(p: float) -> None:
    a, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 4, 3))
    many = rng.normal(size=(30, 3))
    check_grads(lambda t, a, b: t.cdist(a, b, p), a, b)
    check_grads(lambda t, a, b: t.cdist(a, b, p), many, many[:7])
    mode = "donot_use_mm_for_euclid_dist"
    check_grads(lambda t, a, b: t.cdist(a, b, p, mode), many, many[:7] + 1)
    check_grads(lambda t, a: t.pdist(a, p), many[:6])
    if p:
        check_grads(lambda t, a, b: t.pairwise_distance(a, b, p), a[:, :4], b)
        check_grads(lambda t, a, b: t.dist(a, b, p), a[:, :4], b)
        check_grads(lambda t, a: t.renorm(a, p, 0, 1.5), many)
        check_grads(lambda t, a: t.renorm(a, p, 1, 1.5), many)


def test_products() -> None:
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    check_grads(lambda t, a, b: t.cross(a, b, dim=1), a, b)
    check_grads(lambda t, a, b: t.kron(a, b), a, b[:2])
    check_grads(lambda t, a: a.trace(), a)
    check(lambda t, a: a.trace(), TIES)
    check(lambda t, a: [t.vander(a[0]), t.vander(a[0], 2), t.vander(a[0], 4, True)], a)
    check(lambda t, a: t.vander(a[0]), TIES)
    check_grads(lambda t, a, b: t.cosine_similarity(a, b, dim=1), a, b)


def test_sets() -> None:
    x = rng.integers(0, 20, (6, 8))
    check(lambda t, x: t.isin(x, x[0]), x)
    check(lambda t, x: t.isin(x, t.arange(15)), x)
    check(lambda t, x: [t.isin(x, 3), t.isin(x, x[0, :2], invert=True), t.isin(3, x)], x)
    check(lambda t, x: t.unique(x, return_inverse=True, return_counts=True), x)
    check(lambda t, x: t.unique(x[:, :1] % 3, dim=0, return_inverse=True, return_counts=True), x)
    flat = np.sort(x.ravel() % 4).reshape(6, 8)
    check(lambda t, x: t.unique_consecutive(x, return_inverse=True, return_counts=True), flat)
    check(lambda t, x: t.unique_consecutive(x, True, True, dim=0), flat[[0, 0, 1, 2, 2, 5]])
    check(lambda t, x: list(t.unravel_index(x, (4, 5))), x)
    check(lambda t, x: [t.nonzero_static(x % 3, size=5), t.nonzero_static(x % 3, size=99)], x)


@pytest.mark.parametrize("options", [{}, {"right": True}, {"side": "right"}, {"out_int32": True}])
def test_options_of_searches(options: dict[str, Any]) -> None:
    rows, values = np.sort(rng.normal(size=(4, 9))), rng.normal(size=(4, 5))
    check(lambda t, r, v: t.searchsorted(r, v, **options), rows, values)
    check(lambda t, r, v: t.searchsorted(r[0], v, **options), rows, values)


def test_searches() -> None:
    rows, values = np.sort(rng.normal(size=(4, 9))), rng.normal(size=(4, 5))
    check(lambda t, r, v: t.searchsorted(r.flip(1), v, sorter=r.flip(1).argsort(1)), rows, values)
    check(lambda t, r: [t.searchsorted(r[0], 0.5), t.bucketize(0.5, r[0])], rows)
    check(lambda t, r, v: [t.bucketize(v, r[0]), t.bucketize(v, r[0], right=True)], rows, values)
    special = np.array([NAN, np.inf, -np.inf, 0.0])
    check(lambda t, r, v: t.searchsorted(r[0], v), rows, special)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce: str) -> None:
    lengths, offsets = np.array([2, 0, 3, 2]), np.array([0, 2, 2, 7])
    x = X.T.copy()
    x[1, 1] = x[3, 2] = x[5, 2] = 0
    check_grads(lambda t, x: t.segment_reduce(x, reduce, lengths=t.tensor(lengths)), x)
    check(lambda t, x: t.segment_reduce(x, reduce, lengths=t.tensor(lengths), initial=2.0), x)
    check(lambda t, x: t.segment_reduce(x, reduce, offsets=t.tensor(offsets)), x)
    two = np.array([[1, 2, 4], [3, 3, 1], [0, 7, 0], [2, 2, 3]])
    check(lambda t, x: t.segment_reduce(x, reduce, lengths=t.tensor(two), axis=1), X)


def test_scattered_products() -> None:
    index = np.array([[0, 1, 1, 2, 2, 2, 0]] * 4)
    x = X.copy()
    x[0, 1] = x[1, 3] = x[1, 4] = 0
    base = rng.normal(size=(4, 3))
    check_grads(lambda t, b, x: b.scatter_reduce(1, t.tensor(index), x, "prod"), base, x)


@pytest.mark.parametrize("dim", [0, 1])
def test_orders(dim: int) -> None:
    check(lambda t, x: x.sort(dim=dim, stable=True), TIES)
    check(lambda t, x: x.argsort(dim=dim, descending=True, stable=True), TIES)
    check(lambda t, x: x.topk(3, dim).values, TIES)
    check(lambda t, x: x.topk(3, dim, largest=False), X)
    check(lambda t, x: [x.logcumsumexp(dim), *x.cummax(dim), *x.cummin(dim)], X)
    check(lambda t, x: [*t.std_mean(x, dim), *t.var_mean(x, dim, correction=0)], X)
    check(lambda t, x: [x.nansum(dim), x.nanmean(dim), t.count_nonzero(x, dim)], WITH_NAN)
    check(lambda t, x: [*t.aminmax(x, dim=dim, keepdim=True)], WITH_NAN)
    check(lambda t, x: [x.sum_to_size(1, 7), x.sum_to_size(7), t.msort(x)], X)


def test_einsum() -> None:
    a, b, c = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    check_grads(lambda t, a, b, c: t.einsum("ij,jk,ki->j", a, b, c), a, b, c)
    check_grads(lambda t, a, b: t.einsum(a, [0, 1], b, [1, ...], [0, ...]), a, b)
    check(lambda t, a: t.einsum("i...->...", a), a)
    check(lambda t, a, b: t.einsum("Ba,aC", a, b), a, b)
