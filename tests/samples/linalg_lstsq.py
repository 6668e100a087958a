"""Samples of least squares."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, complex_normal, normal, samples


def lstsq(A: np.ndarray, B: np.ndarray, rcond: float | None = None, driver: str = "gelsy") -> Any:
    """By the pseudoinverse."""
    is_vector = B.ndim == 1 or B.shape == A.shape[:-1]
    sides = B[..., None] if is_vector else B
    X = np.linalg.pinv(A) @ sides
    m, n = A.shape[-2:]
    batch = np.broadcast_shapes(A.shape[:-2], sides.shape[:-2])
    residuals = np.zeros(0)
    if m > n and driver != "gelsy":
        residuals = (np.abs(A @ X - sides) ** 2).sum(-2)
    rank = np.zeros(0, np.int64) if driver == "gels" else np.full(batch, min(m, n))
    return X[..., 0] if is_vector else X, residuals, rank


# The singular values have no gradient.
@samples(
    "linalg.lstsq", ref=lstsq, seen_as=lambda op, A, B, **options: tuple(op(A, B, **options))[:3]
)
def least_squares() -> Iterator[Any]:
    yield Sample(normal(2, 4, 3), normal(2, 4, 2), driver="gelsy")
    yield Sample(normal(3, 3), normal(3), driver="gelsy")
    yield Sample(normal(2, 2, 4), normal(2, 2), driver="gelsy")
    yield Sample(normal(4, 2), normal(3, 4, 1), driver="gels")
    yield Sample(complex_normal(4, 2), complex_normal(4, 2), driver="gels")
    yield Sample(complex_normal(2, 3), complex_normal(2, 1), driver="gels")
    for driver in ("gelsd", "gelss"):
        yield Sample(normal(2, 4, 2), normal(2, 4, 1), driver=driver)
        yield Sample(complex_normal(3, 5), complex_normal(3, 1), driver=driver)
