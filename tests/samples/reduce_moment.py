"""Samples of products, variances, norms and logsumexp."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.special

from samples import Sample, away_from, complex_normal, normal, samples
from samples.reduce import Dim, over


def products() -> Iterator[Any]:
    yield normal(3, 4)
    yield np.array(3.0)


samples("prod", ref=np.prod)(products)


@samples("prod.int", ref=over(np.prod))
def prod_along() -> Iterator[Any]:
    yield normal(3, 4), 1
    yield normal(3, 4, 2), -2, True
    yield np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [1.0, 2.0, 4.0]]), 1  # gradients beside zeros


def moments() -> Iterator[Any]:
    yield normal(3, 4)
    yield normal(3, 4), 0
    yield Sample(normal(3, 4, 5), dim=(0, 2), correction=0, keepdim=True)
    yield Sample(normal(3, 40), dim=1, correction=2.5)


def unbiased_moments() -> Iterator[Any]:
    yield Sample(normal(3, 4), unbiased=False)
    yield normal(3, 4), 1, True, True
    yield Sample(normal(3, 4, 5), (0, 1), unbiased=False, keepdim=True)


def moments_of_all() -> Iterator[Any]:
    yield normal(3, 4), False
    yield complex_normal(3, 4), True


def of_all(ref: Any, x: np.ndarray, unbiased: bool) -> Any:
    return ref(x, unbiased=unbiased)


def with_complex(make: Any) -> Any:
    def more() -> Iterator[Any]:
        yield from make()
        yield complex_normal(3, 4)
        yield complex_normal(3, 4), 1

    return more


def variance(root: bool, mean: bool) -> Any:
    def ref(
        x: np.ndarray,
        dim: Dim = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Any = None,
    ) -> Any:
        freedom = int(unbiased) if correction is None else correction
        value = (np.std if root else np.var)(x, axis=dim, ddof=freedom, keepdims=keepdim)
        return (value, np.mean(x, axis=dim, keepdims=keepdim)) if mean else value

    return ref


for name, ref in {
    "var": variance(False, False),
    "std": variance(True, False),
    "var_mean": variance(False, True),
    "std_mean": variance(True, True),
}.items():
    samples(name, ref=ref)(with_complex(moments))
    samples(name + ".unbiased", ref=ref)(with_complex(unbiased_moments))
    samples(name + ".all", ref=partial(of_all, ref))(moments_of_all)


def vector_norm(x: np.ndarray, p: Any = 2, dim: Dim = None, keepdim: bool = False) -> Any:
    magnitude = np.abs(x)
    if p == "fro" or p is None:
        p = 2
    if np.isinf(p):
        return over(np.max if p > 0 else np.min)(magnitude, dim, keepdim)
    if p == 0:
        return over(np.sum)((x != 0).astype(x.dtype), dim, keepdim)
    return over(np.sum)(magnitude**p, dim, keepdim) ** (1 / p)


@samples("linalg.vector_norm", "norm", ref=vector_norm)
def norms() -> Iterator[Any]:
    yield normal(3, 4)
    for p in (1, 2, 3, 2.5, 0.5, 0, np.inf, -np.inf):
        yield away_from(0.0), p, 1
    yield normal(3, 4, 5), 2.0, (0, 2), True


@samples(
    "logsumexp",
    ref=lambda x, dim, keepdim=False: scipy.special.logsumexp(x, axis=dim, keepdims=keepdim),
)
def logsumexp() -> Iterator[Any]:
    yield normal(3, 4), 1
    yield normal(3, 4, 5), (0, 2), True
    yield normal(3, 70, scale=400.0), 1
    yield complex_normal(3, 4), 1
    yield complex_normal(3, 4, 5), (0, 2), True
    yield np.array([[800 + 1j, 801 - 2j]]), 1
