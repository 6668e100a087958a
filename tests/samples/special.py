"""Samples of special functions, over the wide ranges that their forms have."""

from collections.abc import Iterator

import numpy as np
import scipy.special

from samples import integers, normal, samples, uniform

J = {
    "special.bessel_j0": scipy.special.j0,
    "special.bessel_j1": scipy.special.j1,
    "special.spherical_bessel_j0": lambda x: scipy.special.spherical_jn(0, x),
    "special.erfcx": scipy.special.erfcx,
    "special.log_ndtr": scipy.special.log_ndtr,
    "special.ndtr": scipy.special.ndtr,
    "special.i0e": scipy.special.i0e,
    "special.i1e": scipy.special.i1e,
    "i0": scipy.special.i0,
    "special.i1": scipy.special.i1,
}
OF_POSITIVE = {
    "special.bessel_y0": scipy.special.y0,
    "special.bessel_y1": scipy.special.y1,
    "special.modified_bessel_k0": scipy.special.k0,
    "special.modified_bessel_k1": scipy.special.k1,
    "special.scaled_modified_bessel_k0": scipy.special.k0e,
    "special.scaled_modified_bessel_k1": scipy.special.k1e,
    "special.entr": scipy.special.entr,
}


def spread(count: int, low: float, high: float) -> np.ndarray:
    """Positive numbers whose magnitudes are spread evenly."""
    return np.exp(uniform(count, low=np.log(low), high=np.log(high)))


for _name, _ref in J.items():

    @samples(_name, ref=_ref)
    def of_all_numbers() -> Iterator[np.ndarray]:
        yield normal(3, 4)
        yield normal(2, 1, 3, scale=4.0)
        yield np.concatenate([uniform(5, low=7, high=9), -uniform(5, low=7, high=9)])


for _name, _ref in OF_POSITIVE.items():

    @samples(_name, ref=_ref)
    def of_positive_numbers() -> Iterator[np.ndarray]:
        yield uniform(3, 4, low=0.3, high=4.0)
        yield uniform(2, 1, 3, low=4.0, high=20.0)


@samples("special.ndtri", ref=scipy.special.ndtri)
def ndtri() -> Iterator[np.ndarray]:
    yield uniform(3, 4, low=0.05, high=0.95)


@samples(
    "special.airy_ai",
    ref=lambda x: scipy.special.airy(x)[0],
    grad=False,
)
def airy_ai() -> Iterator[np.ndarray]:
    yield normal(3, 4)
    yield np.linspace(-30, 30, 97)


@samples("special.xlog1py", ref=scipy.special.xlog1py)
def xlog1py() -> Iterator[tuple[object, np.ndarray]]:
    yield normal(3, 4), uniform(3, 4, low=-0.8, high=4.0)
    yield normal(3, 1), uniform(4, low=0.1, high=2.0)
    yield 2.5, uniform(3, 4, low=-0.8, high=4.0)


for _name, _ref in {"igamma": scipy.special.gammainc, "igammac": scipy.special.gammaincc}.items():

    @samples(_name, ref=_ref, constant=(0,))
    def incomplete_gamma() -> Iterator[tuple[object, np.ndarray]]:
        yield uniform(3, 4, low=0.3, high=4.0), uniform(3, 4, low=0.3, high=4.0)
        yield spread(40, 0.3, 19), spread(40, 0.3, 40)
        mean = uniform(40, low=20, high=200)
        yield mean, mean + normal(40) * np.sqrt(mean)
        yield uniform(3, 1, low=1.0, high=3.0), uniform(4, low=0.3, high=4.0)


@samples("mvlgamma", ref=np.vectorize(scipy.special.multigammaln, otypes=[float]))
def mvlgamma() -> Iterator[tuple[np.ndarray, int]]:
    yield uniform(3, 4, low=1.3, high=9.0), 2
    yield uniform(4, low=2.3, high=9.0), 4


@samples("special.zeta", ref=scipy.special.zeta, constant=(0,))
def zeta() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    yield uniform(3, 4, low=1.3, high=9.0), uniform(3, 4, low=0.3, high=9.0)
    yield 1 + spread(40, 0.01, 50), spread(40, 0.2, 50)


@samples("polygamma", ref=scipy.special.polygamma)
def polygamma() -> Iterator[tuple[int, np.ndarray]]:
    for n in range(5):
        yield n, uniform(3, 4, low=0.4, high=9.0)
    yield 1, uniform(4, low=-2.9, high=-2.1)


@samples("polygamma.self", ref=lambda x, n: scipy.special.polygamma(n, x))
def polygamma_method() -> Iterator[tuple[np.ndarray, int]]:
    yield uniform(3, 4, low=0.4, high=9.0), 2


CHEBYSHEV = {
    "t": lambda x, n: scipy.special.eval_chebyt(n, x),
    "u": lambda x, n: scipy.special.eval_chebyu(n, x),
    "v": lambda x, n: scipy.special.eval_chebyu(n, x) - scipy.special.eval_chebyu(n - 1, x),
    "w": lambda x, n: scipy.special.eval_chebyu(n, x) + scipy.special.eval_chebyu(n - 1, x),
}
POLYNOMIALS = {
    "hermite_polynomial_h": lambda x, n: scipy.special.eval_hermite(n, x),
    "hermite_polynomial_he": lambda x, n: scipy.special.eval_hermitenorm(n, x),
    "laguerre_polynomial_l": lambda x, n: scipy.special.eval_laguerre(n, x),
    "legendre_polynomial_p": lambda x, n: scipy.special.eval_legendre(n, x),
}
for _kind, _ref in CHEBYSHEV.items():
    POLYNOMIALS[f"chebyshev_polynomial_{_kind}"] = _ref
    POLYNOMIALS[f"shifted_chebyshev_polynomial_{_kind}"] = lambda x, n, f=_ref: f(2 * x - 1, n)

for _name, _ref in POLYNOMIALS.items():
    _whole = lambda x, n, f=_ref: f(x, np.asarray(n, dtype=int))  # noqa: E731

    @samples(f"special.{_name}", ref=_whole, tolerance=1e-8, constant=(1,))
    def polynomial() -> Iterator[tuple[object, object]]:
        yield uniform(3, 4, low=0.05, high=0.9), integers(0, 5, 3, 4).astype(float)
        yield uniform(3, 1, low=0.05, high=0.9), integers(5, 20, 4).astype(float)
        yield uniform(3, 4, low=0.05, high=0.9), 5
        yield 0.25, integers(0, 5, 3, 4).astype(float)
