"""Every op takes the dtypes that PyTorch's takes and gives the dtype that PyTorch's gives.

Ops may take more than PyTorch does, and a few refuse what it takes, see REFUSED.
"""

import itertools
import warnings

import numpy as np
import pytest
from compat.libraries import function_of
from ops.matrix import ROWS, SAMPLED, SAMPLES

import rushlight as torch

pytorch = pytest.importorskip("torch")

INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
WIDE = ["uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = ["bool", *INTEGERS, "float16", "bfloat16", "float32", "float64", *COMPLEX]


# What we refuse, by the name of the op: grids and states of integers, whose parts would be cut off.
REFUSED = dict.fromkeys(
    [
        "affine_grid_generator", "rnn_relu.data", "rnn_relu.input", "rnn_relu_cell",
        "rnn_tanh_cell",
    ],
    INTEGERS,
)  # fmt: skip


def outcome(call):
    """The dtypes that a call returns, or "raises"."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call()
    except (RuntimeError, TypeError, IndexError, ValueError):
        return "raises"
    return kinds(result)


def kinds(result):
    if isinstance(result, (list, tuple)):
        return tuple(kinds(r) for r in result)
    return str(result.dtype) if hasattr(result, "dtype") else type(result).__name__


def differs(ours, theirs):
    """Whether PyTorch's outcome is one that we should have."""
    return theirs not in (ours, "raises") and "complex32" not in str(theirs)


# One dtype


def tensor_of(library, array, dtype):
    """An array as a tensor; one of float64 in another dtype, as small whole numbers."""
    if array.dtype != np.float64:
        return library.from_numpy(array.copy())
    if dtype in ("bool", *INTEGERS, *WIDE):
        array = np.round(np.abs(np.where(np.isfinite(array), array, 0)) * 2)
        array = array % (2 if dtype == "bool" else 3)
    return library.tensor(np.array(array)).to(getattr(library, dtype))


COMPARED = [
    name
    for name in SAMPLED
    if any(a.dtype == np.float64 for a in SAMPLES[name].all[0].arrays())
    and function_of(pytorch, ROWS[name]) is not None
]


@pytest.mark.parametrize("name", COMPARED)
def test_dtypes_of_an_op_are_those_of_pytorch(name) -> None:
    sample = SAMPLES[name].all[0]

    def run(library, dtype):
        filled = sample.map(lambda array: tensor_of(library, array, dtype))
        function = function_of(library, ROWS[name])
        return outcome(lambda: function(*filled.args, **filled.kwargs))

    results = {dtype: (run(torch, dtype), run(pytorch, dtype)) for dtype in [*DTYPES, *WIDE]}
    refused = REFUSED.get(name, ())
    assert all(results[dtype][0] == "raises" for dtype in refused)
    wrong = {d: pair for d, pair in results.items() if d not in refused and differs(*pair)}
    assert not wrong, "ours, PyTorch's"


# Two dtypes

BINARY = [
    "add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder", "fmod", "pow", "rsub",
    "float_power", "atan2", "hypot", "maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt", "le",
    "gt", "ge", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "xlogy", "logaddexp", "logaddexp2",
    "copysign", "heaviside", "nextafter", "gcd", "lcm", "ldexp", "isclose", "igamma", "igammac",
    "clamp", "clamp_min", "clamp_max", "polar", "complex", "result_type", "dot",
]  # fmt: skip
OF_SPECIAL = ["xlog1py", "zeta", "chebyshev_polynomial_t"]
FORMS = {
    **{name: lambda lib, a, b, name=name: getattr(lib, name)(a, b) for name in BINARY},
    **{name: lambda lib, a, b, name=name: getattr(lib.special, name)(a, b) for name in OF_SPECIAL},
    **{
        f"{name}_": lambda lib, a, b, name=name: getattr(a.clone(), f"{name}_")(b)
        for name in BINARY
        if hasattr(pytorch.Tensor, f"{name}_")
    },
    "where": lambda lib, a, b: lib.where(lib.tensor([True, False]), a, b),
    "where of one": lambda lib, a, b: lib.where(lib.tensor(True), a, b),
    "addcmul": lambda lib, a, b: lib.addcmul(a, b, b),
    "addcdiv": lambda lib, a, b: lib.addcdiv(a, b, b),
    "lerp to": lambda lib, a, b: lib.lerp(a, b, 0.5),
    "lerp by": lambda lib, a, b: lib.lerp(a, a, b),
    "masked_fill": lambda lib, a, b: a.masked_fill(lib.tensor([True, False]), b),
    "cat": lambda lib, a, b: lib.cat([a, b]),
    "stack": lambda lib, a, b: lib.stack([a, b]),
}


def operands(library):
    """What may stand on either side: vectors, 0-d tensors and numbers."""
    for dtype in DTYPES:
        yield dtype, library.tensor([1, 1], dtype=getattr(library, dtype))
    for dtype in DTYPES:
        yield f"{dtype} 0-d", library.tensor(1, dtype=getattr(library, dtype))
    yield from [("True", True), ("2", 2), ("2.5", 2.5), ("2j", 2j)]


@pytest.mark.parametrize("form", FORMS)
def test_two_operands_promote_as_in_pytorch(form) -> None:
    wrong: dict[tuple[str, str], tuple] = {}
    pairs = itertools.product(operands(torch), repeat=2)
    for ((left, a), (right, b)), ((_, x), (_, y)) in zip(
        pairs, itertools.product(operands(pytorch), repeat=2), strict=True
    ):
        if not isinstance(a, torch.Tensor) and (
            form.endswith("_") or form == "masked_fill" or not hasattr(b, "dtype")
        ):
            continue
        if form == "masked_fill" and ("complex" in right or right == "2j"):
            continue  # PyTorch drops the imaginary part
        ours = outcome(lambda: FORMS[form](torch, a, b))  # noqa: B023
        theirs = outcome(lambda: FORMS[form](pytorch, x, y))  # noqa: B023
        if differs(ours, theirs):
            wrong[left, right] = ours, theirs
    assert not wrong, "ours, PyTorch's"


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("wide", ["float16", "bfloat16", "float32", "float64"])
def test_8_bit_floats_have_the_same_codes(name: str, wide: str) -> None:
    numbers = np.random.default_rng(0).normal(size=100_000) * np.logspace(-9, 9, 100_000, base=4)
    numbers = np.concatenate([numbers, [0.0, -0.0, np.inf, -np.inf, np.nan]])

    def codes(library):
        x = library.from_numpy(numbers).to(getattr(library, wide)).to(getattr(library, name))
        return x.view(library.uint8).tolist()

    def values(library):
        x = library.arange(256).to(library.uint8).view(getattr(library, name))
        return x.to(getattr(library, wide)).double().tolist()

    assert codes(torch) == codes(pytorch)
    np.testing.assert_array_equal(values(torch), values(pytorch))
