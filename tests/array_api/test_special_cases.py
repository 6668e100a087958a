"""The special cases of the array API standard, as tables: NaN, infinities and signed zeros.

Each row is the arguments and the result. A sign of zero counts; NaN stands for any NaN. `any sign`
results are compared by magnitude. Complex rows are those of C99, Annex G, which the standard cites.
"""

from __future__ import annotations

import math
from math import inf, nan, pi
from typing import Any

import numpy as np
import pytest
from grouping import each

import rushlight.array_api as xp

FLOATS = [xp.float32, xp.float64]
COMPLEX = [xp.complex64, xp.complex128]

UNARY: dict[str, list[tuple[float, float]]] = {
    "abs": [(nan, nan), (-0.0, 0.0), (inf, inf), (-inf, inf)],
    "acos": [(nan, nan), (1.5, nan), (-1.5, nan), (inf, nan), (1.0, 0.0), (-1.0, pi)],
    "acosh": [(nan, nan), (0.5, nan), (-inf, nan), (1.0, 0.0), (inf, inf)],
    "asin": [(nan, nan), (1.5, nan), (-1.5, nan), (0.0, 0.0), (-0.0, -0.0)],
    "asinh": [(nan, nan), (0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf)],
    "atan": [(nan, nan), (0.0, 0.0), (-0.0, -0.0), (inf, pi / 2), (-inf, -pi / 2)],
    "atanh": [
        (nan, nan), (-1.5, nan), (1.5, nan), (-1.0, -inf), (1.0, inf), (0.0, 0.0), (-0.0, -0.0),
    ],
    "ceil": [
        (inf, inf), (-inf, -inf), (0.0, 0.0), (-0.0, -0.0), (nan, nan), (-0.5, -0.0), (3.0, 3.0),
    ],
    "cos": [(nan, nan), (0.0, 1.0), (-0.0, 1.0), (inf, nan), (-inf, nan)],
    "cosh": [(nan, nan), (0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, inf)],
    "exp": [(nan, nan), (0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, 0.0)],
    "expm1": [(nan, nan), (0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1.0)],
    "floor": [
        (inf, inf), (-inf, -inf), (0.0, 0.0), (-0.0, -0.0), (nan, nan), (0.5, 0.0), (-3.0, -3.0),
    ],
    "isfinite": [(nan, False), (inf, False), (-inf, False), (1.0, True), (-0.0, True)],
    "isinf": [(nan, False), (inf, True), (-inf, True), (1.0, False), (0.0, False)],
    "isnan": [(nan, True), (inf, False), (-inf, False), (1.0, False)],
    "log": [
        (nan, nan), (-1.0, nan), (-inf, nan), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (inf, inf),
    ],
    "log1p": [
        (nan, nan), (-1.5, nan), (-inf, nan), (-1.0, -inf), (-0.0, -0.0), (0.0, 0.0), (inf, inf),
    ],
    "log2": [(nan, nan), (-1.0, nan), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (inf, inf)],
    "log10": [(nan, nan), (-1.0, nan), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (inf, inf)],
    "negative": [(0.0, -0.0), (-0.0, 0.0), (inf, -inf), (nan, nan)],
    "positive": [(-0.0, -0.0), (nan, nan)],
    "reciprocal": [(0.0, inf), (-0.0, -inf), (inf, 0.0), (-inf, -0.0), (nan, nan)],
    "round": [
        (inf, inf), (-inf, -inf), (0.0, 0.0), (-0.0, -0.0), (nan, nan), (0.5, 0.0), (1.5, 2.0),
        (2.5, 2.0), (-0.5, -0.0), (-1.5, -2.0), (-0.25, -0.0),
    ],
    "sign": [
        (0.0, 0.0), (-0.0, 0.0), (2.0, 1.0), (-2.0, -1.0), (inf, 1.0), (-inf, -1.0), (nan, nan),
    ],
    "signbit": [
        (0.0, False), (-0.0, True), (inf, False), (-inf, True), (1.0, False), (-1.0, True),
        (nan, False), (math.copysign(nan, -1), True),
    ],
    "sin": [(nan, nan), (0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan)],
    "sinh": [(nan, nan), (0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf)],
    "sqrt": [(nan, nan), (-1.0, nan), (-inf, nan), (0.0, 0.0), (-0.0, -0.0), (inf, inf)],
    "square": [(nan, nan), (-0.0, 0.0), (-inf, inf)],
    "tan": [(nan, nan), (0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan)],
    "tanh": [(nan, nan), (0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0)],
    "trunc": [
        (inf, inf), (-inf, -inf), (0.0, 0.0), (-0.0, -0.0), (nan, nan), (0.5, 0.0), (-0.5, -0.0),
    ],
}  # fmt: skip

ORDER = [
    (nan, nan), (nan, 1.0), (1.0, nan), (nan, inf), (inf, inf), (inf, 1.0), (1.0, inf), (-inf, inf),
    (-inf, 1.0), (1.0, -inf), (-inf, -inf), (0.0, -0.0), (-0.0, 0.0), (1.0, 2.0), (2.0, 1.0),
]  # fmt: skip


def compared(operation: Any) -> list[tuple[float, float, bool]]:
    """Python compares floats as IEEE 754 does, and so does the standard."""
    return [(a, b, operation(a, b)) for a, b in ORDER]


BINARY: dict[str, list[tuple[float, float, float]]] = {
    "add": [
        (nan, 1.0, nan), (1.0, nan, nan), (inf, -inf, nan), (-inf, inf, nan), (inf, inf, inf),
        (-inf, -inf, -inf), (inf, 1.0, inf), (1.0, -inf, -inf), (-0.0, -0.0, -0.0),
        (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (0.0, 0.0, 0.0), (1.0, -1.0, 0.0), (-0.0, 2.0, 2.0),
    ],
    "atan2": [
        (nan, 1.0, nan), (1.0, nan, nan), (1.0, 0.0, pi / 2), (1.0, -0.0, pi / 2),
        (0.0, 1.0, 0.0), (0.0, 0.0, 0.0), (0.0, -0.0, pi), (0.0, -1.0, pi), (-0.0, 1.0, -0.0),
        (-0.0, 0.0, -0.0), (-0.0, -0.0, -pi), (-0.0, -1.0, -pi), (-1.0, 0.0, -pi / 2),
        (-1.0, -0.0, -pi / 2), (1.0, inf, 0.0), (1.0, -inf, pi), (-1.0, inf, -0.0),
        (-1.0, -inf, -pi), (inf, 1.0, pi / 2), (-inf, 1.0, -pi / 2), (inf, inf, pi / 4),
        (inf, -inf, 3 * pi / 4), (-inf, inf, -pi / 4), (-inf, -inf, -3 * pi / 4),
    ],
    "copysign": [
        (1.0, -0.0, -1.0), (1.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (-1.0, math.copysign(nan, 1), 1.0),
        (1.0, math.copysign(nan, -1), -1.0), (inf, -1.0, -inf), (0.0, -inf, -0.0), (nan, -1.0, nan),
    ],
    "divide": [
        (nan, 1.0, nan), (1.0, nan, nan), (inf, inf, nan), (-inf, inf, nan), (0.0, 0.0, nan),
        (-0.0, 0.0, nan), (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, -1.0, -0.0), (-0.0, -1.0, 0.0),
        (1.0, 0.0, inf), (1.0, -0.0, -inf), (-1.0, 0.0, -inf), (-1.0, -0.0, inf), (inf, 1.0, inf),
        (inf, -1.0, -inf), (-inf, 1.0, -inf), (-inf, -1.0, inf), (1.0, inf, 0.0), (1.0, -inf, -0.0),
        (-1.0, inf, -0.0), (-1.0, -inf, 0.0), (inf, 0.0, inf), (-inf, 0.0, -inf),
    ],
    "equal": compared(lambda a, b: a == b),
    "floor_divide": [
        (nan, 1.0, nan), (1.0, nan, nan), (inf, inf, nan), (-inf, inf, nan), (0.0, 0.0, nan),
        (0.0, -0.0, nan), (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, -1.0, -0.0), (-0.0, -1.0, 0.0),
        (1.0, 0.0, inf), (1.0, -0.0, -inf), (-1.0, 0.0, -inf), (-1.0, -0.0, inf), (inf, 1.0, inf),
        (inf, -1.0, -inf), (-inf, 1.0, -inf), (-inf, -1.0, inf), (1.0, inf, 0.0),
        (1.0, -inf, -0.0), (-1.0, inf, -0.0), (-1.0, -inf, 0.0), (7.0, 2.0, 3.0), (-7.0, 2.0, -4.0),
        (7.0, -2.0, -4.0), (-7.0, -2.0, 3.0), (1.0, 2.0, 0.0),
    ],
    "greater": compared(lambda a, b: a > b),
    "greater_equal": compared(lambda a, b: a >= b),
    "hypot": [
        (inf, nan, inf), (-inf, nan, inf), (nan, inf, inf), (nan, -inf, inf), (nan, 1.0, nan),
        (1.0, nan, nan), (inf, 1.0, inf), (-0.0, -2.0, 2.0), (0.0, 0.0, 0.0), (1e30, 0.0, 1e30),
    ],
    "less": compared(lambda a, b: a < b),
    "less_equal": compared(lambda a, b: a <= b),
    "logaddexp": [
        (nan, 1.0, nan), (1.0, nan, nan), (inf, 1.0, inf), (1.0, inf, inf), (inf, inf, inf),
        (-inf, 1.0, 1.0), (-inf, -inf, -inf), (inf, -inf, inf), (nan, inf, nan),
    ],
    "maximum": [
        (nan, 1.0, nan), (1.0, nan, nan), (nan, inf, nan), (inf, 1.0, inf), (-inf, 1.0, 1.0),
    ],
    "minimum": [
        (nan, 1.0, nan), (1.0, nan, nan), (nan, -inf, nan), (inf, 1.0, 1.0), (-inf, 1.0, -inf),
    ],
    "multiply": [
        (nan, 1.0, nan), (1.0, nan, nan), (inf, 0.0, nan), (-0.0, -inf, nan), (inf, inf, inf),
        (-inf, inf, -inf), (-inf, -inf, inf), (inf, -1.0, -inf), (-1.0, inf, -inf),
        (-0.0, 1.0, -0.0), (-0.0, -1.0, 0.0), (0.0, -0.0, -0.0),
    ],
    "nextafter": [
        (nan, 1.0, nan), (1.0, nan, nan), (0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (1.0, 1.0, 1.0),
        (inf, inf, inf),
    ],
    "not_equal": compared(lambda a, b: a != b),
    "pow": [
        (2.0, nan, nan), (nan, 0.0, 1.0), (nan, -0.0, 1.0), (nan, 2.0, nan), (nan, nan, nan),
        (1.0, nan, 1.0), (1.0, inf, 1.0), (1.0, -inf, 1.0), (2.0, 0.0, 1.0), (inf, -0.0, 1.0),
        (2.0, inf, inf), (-2.0, inf, inf), (2.0, -inf, 0.0), (-2.0, -inf, 0.0), (-1.0, inf, 1.0),
        (-1.0, -inf, 1.0), (0.5, inf, 0.0), (-0.5, inf, 0.0), (0.5, -inf, inf), (-0.5, -inf, inf),
        (inf, 2.0, inf), (inf, -2.0, 0.0), (-inf, 3.0, -inf), (-inf, 2.0, inf), (-inf, 2.5, inf),
        (-inf, -3.0, -0.0), (-inf, -2.0, 0.0), (-inf, -2.5, 0.0), (0.0, 2.0, 0.0), (0.0, -2.0, inf),
        (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (-0.0, 2.5, 0.0), (-0.0, -3.0, -inf),
        (-0.0, -2.0, inf), (-0.0, -2.5, inf), (-2.0, 0.5, nan), (-2.0, -0.5, nan), (0.0, inf, 0.0),
        (0.0, -inf, inf), (-0.0, -inf, inf), (inf, inf, inf), (-inf, inf, inf), (inf, -inf, 0.0),
    ],
    "remainder": [
        (nan, 1.0, nan), (1.0, nan, nan), (inf, inf, nan), (-inf, inf, nan), (0.0, 0.0, nan),
        (-0.0, 0.0, nan), (0.0, 1.0, 0.0), (-0.0, 1.0, 0.0), (0.0, -1.0, -0.0), (-0.0, -1.0, -0.0),
        (1.0, 0.0, nan), (1.0, -0.0, nan), (-1.0, 0.0, nan), (-1.0, -0.0, nan), (inf, 1.0, nan),
        (inf, -1.0, nan), (-inf, 1.0, nan), (-inf, -1.0, nan), (1.0, inf, 1.0), (1.0, -inf, -inf),
        (-1.0, inf, inf), (-1.0, -inf, -1.0), (4.0, 2.0, 0.0), (-4.0, 2.0, 0.0), (4.0, -2.0, -0.0),
        (-4.0, -2.0, -0.0), (-7.0, 2.0, 1.0), (7.0, -2.0, -1.0),
    ],
    "subtract": [
        (nan, 1.0, nan), (inf, inf, nan), (-inf, -inf, nan), (inf, -inf, inf), (1.0, inf, -inf),
        (-0.0, 0.0, -0.0), (-0.0, -0.0, 0.0), (0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (1.0, 1.0, 0.0),
    ],
}  # fmt: skip

# Rows of Annex G for an imaginary part that is not negative; all of these functions turn with conj.
# A sign that the annex leaves open is marked by an entry of OPEN instead of a number.
OPEN_ZERO, OPEN_INF = "±0", "±inf"
UPPER: dict[str, list[tuple[tuple[float, float], tuple[Any, Any]]]] = {
    "acos": [
        ((0.0, 0.0), (pi / 2, -0.0)), ((-0.0, 0.0), (pi / 2, -0.0)), ((0.0, nan), (pi / 2, nan)),
        ((-0.0, nan), (pi / 2, nan)), ((1.0, inf), (pi / 2, -inf)), ((1.0, nan), (nan, nan)),
        ((-inf, 1.0), (pi, -inf)), ((inf, 1.0), (0.0, -inf)), ((-inf, inf), (3 * pi / 4, -inf)),
        ((inf, inf), (pi / 4, -inf)), ((inf, nan), (nan, OPEN_INF)), ((-inf, nan), (nan, OPEN_INF)),
        ((nan, 1.0), (nan, nan)), ((nan, inf), (nan, -inf)), ((nan, nan), (nan, nan)),
    ],
    "acosh": [
        ((0.0, 0.0), (0.0, pi / 2)), ((-0.0, 0.0), (0.0, pi / 2)), ((1.0, inf), (inf, pi / 2)),
        ((1.0, nan), (nan, nan)), ((-inf, 1.0), (inf, pi)), ((inf, 1.0), (inf, 0.0)),
        ((-inf, inf), (inf, 3 * pi / 4)), ((inf, inf), (inf, pi / 4)), ((inf, nan), (inf, nan)),
        ((-inf, nan), (inf, nan)), ((nan, 1.0), (nan, nan)), ((nan, inf), (inf, nan)),
        ((nan, nan), (nan, nan)),
    ],
    "asinh": [
        ((0.0, 0.0), (0.0, 0.0)), ((1.0, inf), (inf, pi / 2)), ((1.0, nan), (nan, nan)),
        ((inf, 1.0), (inf, 0.0)), ((inf, inf), (inf, pi / 4)), ((inf, nan), (inf, nan)),
        ((nan, 0.0), (nan, 0.0)), ((nan, 1.0), (nan, nan)), ((nan, inf), (OPEN_INF, nan)),
        ((nan, nan), (nan, nan)),
    ],
    "atanh": [
        ((0.0, 0.0), (0.0, 0.0)), ((0.0, nan), (0.0, nan)), ((1.0, 0.0), (inf, 0.0)),
        ((1.0, inf), (0.0, pi / 2)), ((1.0, nan), (nan, nan)), ((inf, 1.0), (0.0, pi / 2)),
        ((inf, inf), (0.0, pi / 2)), ((inf, nan), (0.0, nan)), ((nan, 1.0), (nan, nan)),
        ((nan, inf), (OPEN_ZERO, pi / 2)), ((nan, nan), (nan, nan)),
    ],
    "cosh": [
        ((0.0, 0.0), (1.0, 0.0)), ((0.0, inf), (nan, OPEN_ZERO)), ((0.0, nan), (nan, OPEN_ZERO)),
        ((1.0, inf), (nan, nan)), ((1.0, nan), (nan, nan)), ((inf, 0.0), (inf, 0.0)),
        ((inf, 2.0), (-inf, inf)), ((inf, inf), (OPEN_INF, nan)), ((inf, nan), (inf, nan)),
        ((nan, 0.0), (nan, OPEN_ZERO)), ((nan, 1.0), (nan, nan)), ((nan, nan), (nan, nan)),
    ],
    "exp": [
        ((0.0, 0.0), (1.0, 0.0)), ((-0.0, 0.0), (1.0, 0.0)), ((1.0, inf), (nan, nan)),
        ((1.0, nan), (nan, nan)), ((inf, 0.0), (inf, 0.0)), ((-inf, 2.0), (-0.0, 0.0)),
        ((inf, 2.0), (-inf, inf)), ((-inf, inf), (OPEN_ZERO, OPEN_ZERO)),
        ((inf, inf), (OPEN_INF, nan)), ((-inf, nan), (OPEN_ZERO, OPEN_ZERO)),
        ((inf, nan), (OPEN_INF, nan)), ((nan, 0.0), (nan, 0.0)), ((nan, 1.0), (nan, nan)),
        ((nan, nan), (nan, nan)),
    ],
    "expm1": [
        ((0.0, 0.0), (0.0, 0.0)), ((1.0, inf), (nan, nan)), ((1.0, nan), (nan, nan)),
        ((inf, 0.0), (inf, 0.0)), ((-inf, 2.0), (-1.0, 0.0)), ((inf, 2.0), (-inf, inf)),
        ((-inf, inf), (-1.0, OPEN_ZERO)), ((inf, inf), (OPEN_INF, nan)),
        ((-inf, nan), (-1.0, OPEN_ZERO)), ((inf, nan), (OPEN_INF, nan)), ((nan, 0.0), (nan, 0.0)),
        ((nan, 1.0), (nan, nan)), ((nan, nan), (nan, nan)),
    ],
    "log": [
        ((-0.0, 0.0), (-inf, pi)), ((0.0, 0.0), (-inf, 0.0)), ((1.0, inf), (inf, pi / 2)),
        ((1.0, nan), (nan, nan)), ((-inf, 1.0), (inf, pi)), ((inf, 1.0), (inf, 0.0)),
        ((-inf, inf), (inf, 3 * pi / 4)), ((inf, inf), (inf, pi / 4)), ((inf, nan), (inf, nan)),
        ((-inf, nan), (inf, nan)), ((nan, 1.0), (nan, nan)), ((nan, inf), (inf, nan)),
        ((nan, nan), (nan, nan)),
    ],
    "log1p": [
        ((-1.0, 0.0), (-inf, 0.0)), ((1.0, inf), (inf, pi / 2)), ((1.0, nan), (nan, nan)),
        ((-inf, 1.0), (inf, pi)), ((inf, 1.0), (inf, 0.0)), ((-inf, inf), (inf, 3 * pi / 4)),
        ((inf, inf), (inf, pi / 4)), ((inf, nan), (inf, nan)), ((nan, 1.0), (nan, nan)),
        ((nan, inf), (inf, nan)), ((nan, nan), (nan, nan)),
    ],
    "sinh": [
        ((0.0, 0.0), (0.0, 0.0)), ((0.0, inf), (OPEN_ZERO, nan)), ((0.0, nan), (OPEN_ZERO, nan)),
        ((1.0, inf), (nan, nan)), ((1.0, nan), (nan, nan)), ((inf, 0.0), (inf, 0.0)),
        ((inf, 2.0), (-inf, inf)), ((inf, inf), (OPEN_INF, nan)), ((inf, nan), (OPEN_INF, nan)),
        ((nan, 0.0), (nan, 0.0)), ((nan, 1.0), (nan, nan)), ((nan, nan), (nan, nan)),
    ],
    "sqrt": [
        ((0.0, 0.0), (0.0, 0.0)), ((-0.0, 0.0), (0.0, 0.0)), ((1.0, inf), (inf, inf)),
        ((nan, inf), (inf, inf)), ((1.0, nan), (nan, nan)), ((-inf, 1.0), (0.0, inf)),
        ((inf, 1.0), (inf, 0.0)), ((-inf, nan), (nan, OPEN_INF)), ((inf, nan), (inf, nan)),
        ((nan, 1.0), (nan, nan)), ((nan, nan), (nan, nan)),
    ],
    "tanh": [
        ((0.0, 0.0), (0.0, 0.0)), ((1.0, inf), (nan, nan)), ((1.0, nan), (nan, nan)),
        ((inf, 1.0), (1.0, 0.0)), ((inf, inf), (1.0, OPEN_ZERO)), ((inf, nan), (1.0, OPEN_ZERO)),
        ((nan, 0.0), (nan, 0.0)), ((nan, 1.0), (nan, nan)), ((nan, nan), (nan, nan)),
    ],
}  # fmt: skip

COMPLEX_UNARY: dict[str, list[tuple[complex, Any]]] = {
    "abs": [
        (complex(inf, nan), inf), (complex(nan, -inf), inf), (complex(-inf, 1), inf),
        (complex(nan, 1), nan), (complex(-0.0, -0.0), 0.0),
    ],
    "isfinite": [(complex(inf, 0), False), (complex(0, nan), False), (1 + 2j, True)],
    "isinf": [(complex(inf, nan), True), (complex(nan, -inf), True), (complex(nan, 0), False)],
    "isnan": [(complex(nan, 0), True), (complex(inf, nan), True), (complex(inf, inf), False)],
    "round": [(complex(0.5, -1.5), complex(0.0, -2.0)), (complex(inf, nan), complex(inf, nan))],
    "sign": [(0j, 0j), (complex(-0.0, 0), 0j), (3 + 4j, 0.6 + 0.8j), (-2 + 0j, -1 + 0j)],
    "conj": [(complex(1, 0.0), complex(1, -0.0)), (complex(inf, -2), complex(inf, 2))],
}  # fmt: skip


def filled(value: Any, dtype: Any) -> Any:
    """Enough copies that vectors and their rest both occur."""
    return xp.full((37,), value, dtype=dtype)


def assert_part(actual: np.ndarray, expected: Any, tolerance: float) -> None:
    """Compares real numbers: values, NaN, and the signs of zeros unless they are open."""
    if isinstance(expected, str):
        np.testing.assert_array_equal(np.abs(actual), float(expected[1:]))
        return
    np.testing.assert_allclose(actual, np.full_like(actual, expected), rtol=tolerance, atol=0)
    if expected == 0:
        np.testing.assert_array_equal(np.signbit(actual), math.copysign(1, expected) < 0)


def check(actual: Any, expected: Any) -> None:
    tolerance = 1e-6 if actual.dtype in (xp.float32, xp.complex64) else 1e-14
    result = actual.numpy()
    if result.dtype == np.bool_:
        assert (result == expected).all()
    elif actual.dtype.is_complex:
        assert_part(result.real, complex(expected).real, tolerance)
        assert_part(result.imag, complex(expected).imag, tolerance)
    else:
        assert_part(result, expected, tolerance)


@each("dtype", FLOATS, ids=str)
@each("x, expected", lambda name: UNARY[name], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_array(name: str, x: float, expected: Any, dtype: Any) -> None:
    check(getattr(xp, name)(filled(x, dtype)), expected)


@each("dtype", FLOATS, ids=str)
@each("x1, x2, expected", lambda name: BINARY[name], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_function_of_two_arrays(name: str, x1: float, x2: float, expected: Any, dtype: Any) -> None:
    function = getattr(xp, name)
    check(function(filled(x1, dtype), filled(x2, dtype)), expected)
    check(function(filled(x1, dtype), x2), expected)
    check(function(x1, filled(x2, dtype)), expected)


@each("dtype", COMPLEX, ids=str)
@each("conjugate", [False, True])
@each("x, expected", lambda name: UPPER[name], ids=str)
@pytest.mark.parametrize("name", UPPER)
def test_complex_function_as_annex_g(
    name: str, x: tuple[float, float], expected: tuple[Any, Any], dtype: Any, conjugate: bool
) -> None:
    sign = -1 if conjugate else 1
    tolerance = 1e-6 if dtype is xp.complex64 else 1e-14
    result = getattr(xp, name)(filled(complex(x[0], sign * x[1]), dtype)).numpy()
    assert_part(result.real, expected[0], tolerance)
    imag = expected[1]
    assert_part(result.imag, imag if isinstance(imag, str) else sign * imag, tolerance)


TURNED = {"asin": "asinh", "atan": "atanh", "cos": "cosh", "sin": "sinh", "tan": "tanh"}


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_complex_circular_functions_are_hyperbolic_ones_turned(name: str, dtype: Any) -> None:
    """The standard defines sin(z) as -i sinh(iz), and so on; cos(z) as cosh(iz)."""
    parts = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan]
    for a in parts:
        for b in parts:
            turned = getattr(xp, TURNED[name])(filled(complex(-b, a), dtype)).numpy()
            z = getattr(xp, name)(filled(complex(a, b), dtype)).numpy()
            real, imag = (
                (turned.real, turned.imag) if name == "cos" else (turned.imag, -turned.real)
            )
            np.testing.assert_allclose(z.real, real, rtol=1e-6)
            sign_is_open = np.isnan(real).all()  # of an infinity or a zero
            sides = (abs(z.imag), abs(imag)) if sign_is_open else (z.imag, imag)
            np.testing.assert_allclose(*sides, rtol=1e-6)


@each("dtype", COMPLEX, ids=str)
@each("x, expected", lambda name: COMPLEX_UNARY[name], ids=str)
@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_other_function_of_complex_numbers(
    name: str, x: complex, expected: Any, dtype: Any
) -> None:
    check(getattr(xp, name)(filled(x, dtype)), expected)


# Reductions

REDUCTIONS: list[tuple[str, list[float], dict[str, Any], float]] = [
    ("sum", [], {}, 0.0),
    ("sum", [1.0, nan], {}, nan),
    ("sum", [inf, -inf], {}, nan),
    ("prod", [], {}, 1.0),
    ("prod", [1.0, nan], {}, nan),
    ("mean", [], {}, nan),
    ("mean", [1.0, nan], {}, nan),
    ("max", [1.0, nan, inf], {}, nan),
    ("min", [1.0, nan, -inf], {}, nan),
    ("max", [1.0, -inf, inf], {}, inf),
    ("var", [1.0, nan], {}, nan),
    ("var", [3.0], {}, 0.0),
    ("var", [3.0], {"correction": 1}, nan),
    ("var", [3.0, 4.0], {"correction": 3}, nan),
    ("std", [3.0], {"correction": 1}, nan),
    ("std", [1.0, 2.0], {"correction": 0.5}, math.sqrt(1 / 3)),
    ("all", [], {}, True),
    ("any", [], {}, False),
    ("all", [nan, inf, -inf], {}, True),
    ("any", [nan], {}, True),
    ("any", [0.0, -0.0], {}, False),
]


@each("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("name", "x", "options", "expected"), REDUCTIONS)
def test_reduction(
    name: str, x: list[float], options: dict[str, Any], expected: float, dtype: Any
) -> None:
    check(getattr(xp, name)(xp.asarray(x, dtype=dtype), **options), expected)


def test_of_equal_extremes_the_first_counts() -> None:
    x = xp.asarray([1, 3, 3, 1])
    assert (int(xp.argmax(x)), int(xp.argmin(x))) == (1, 0)


def test_every_nan_is_an_element_of_its_own_in_a_set() -> None:
    values, indices, inverse, counts = xp.unique_all(xp.asarray([nan, 1.0, nan, 1.0]))
    np.testing.assert_array_equal(values.numpy(), [1.0, nan, nan])
    assert indices.tolist() == [1, 0, 2]
    assert inverse.tolist() == [1, 0, 2, 0]
    assert counts.tolist() == [2, 1, 1]


def test_signed_zeros_are_one_element_of_a_set() -> None:
    values, counts = xp.unique_counts(xp.asarray([-0.0, 0.0, -0.0]))
    assert values.tolist() == [0.0]
    assert counts.tolist() == [3]


def test_nan_is_nonzero_and_true() -> None:
    x = xp.asarray([nan, 0.0, -0.0, inf])
    assert xp.nonzero(x)[0].tolist() == [0, 3]
    assert int(xp.count_nonzero(x)) == 2
    assert xp.astype(x, xp.bool).tolist() == [True, False, False, True]
