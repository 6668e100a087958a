"""Every activation does what PyTorch's does: extreme values, in place, half types, dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

rng = np.random.default_rng(8)
PLAIN = rng.normal(size=(3, 4, 6)) * 3
EXTREME = np.array([
    0.0, -0.0, 1e-30, -1e-30, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, -6.0, 20.0, -20.0, 21.0, 88.0,
    -88.0, 104.0, -104.0, 1e4, -1e4, np.inf, -np.inf, np.nan,
]).reshape(1, 4, 6)  # fmt: skip

FUNCTIONS: dict[str, list[dict[str, Any]]] = {
    "relu": [{}], "relu6": [{}], "elu": [{}, {"alpha": 0.5}], "selu": [{}],
    "celu": [{}, {"alpha": 0.5}], "leaky_relu": [{}, {"negative_slope": 0.2}],
    "gelu": [{}, {"approximate": "tanh"}], "silu": [{}], "mish": [{}],
    "softplus": [{}, {"beta": 2.0, "threshold": 5.0}], "softsign": [{}], "tanhshrink": [{}],
    "hardtanh": [{}, {"min_val": -2.0, "max_val": 0.5}], "hardsigmoid": [{}], "hardswish": [{}],
    "hardshrink": [{}, {"lambd": 1.5}], "softshrink": [{}, {"lambd": 1.5}],
    "threshold": [{"threshold": 0.1, "value": 20.0}], "logsigmoid": [{}], "sigmoid": [{}],
    "tanh": [{}], "glu": [{}, {"dim": 1}], "rrelu": [{}, {"lower": 0.2, "upper": 0.4}],
    "softmax": [{"dim": -1}, {"dim": 1}, {"dim": 0}], "softmin": [{"dim": 2}],
    "log_softmax": [{"dim": -1}, {"dim": 1}, {"dim": 0}],
}  # fmt: skip
CASES = [(name, how) for name, settings in FUNCTIONS.items() for how in settings]
IN_PLACE = (
    "relu", "relu6", "elu", "selu", "celu", "leaky_relu", "silu", "mish", "hardtanh",
    "hardsigmoid", "hardswish", "threshold", "rrelu",
)  # fmt: skip
UNDERSCORED = ("relu_", "elu_", "selu_", "celu_", "leaky_relu_", "hardtanh_", "rrelu_")
MODULES = [
    "ReLU()", "ReLU6()", "ELU(0.5)", "SELU()", "CELU(0.5)", "LeakyReLU(0.2)", "GELU('tanh')",
    "SiLU()", "Mish()", "Softplus(2, 5)", "Softsign()", "Tanhshrink()", "Hardtanh(-2, 0.5)",
    "Hardsigmoid()", "Hardswish()", "Hardshrink(1.5)", "Softshrink(1.5)", "Threshold(0.1, 20)",
    "LogSigmoid()", "Sigmoid()", "Tanh()", "GLU(1)", "RReLU(0.2, 0.4).eval()", "Softmax(1)",
    "Softmax2d()", "Softmin(1)", "LogSoftmax(1)", "PReLU()", "PReLU(4)", "ReLU(inplace=True)",
]  # fmt: skip


def run(library: Any, function: Any, array: np.ndarray, dtype: str, **how: Any) -> Any:
    """The result and the gradient in float64 with their dtypes, or the error."""
    x = library.from_numpy(array.copy()).to(getattr(library, dtype)).requires_grad_()
    try:
        result = function(x, **how)
        slopes = library.linspace(1, 2, result.numel(), dtype=library.float64)
        result.backward(slopes.reshape(result.shape).to(result.dtype))
    except Exception as error:
        return error
    kinds = [str(t.dtype).rpartition(".")[2] for t in (result, x.grad)]
    return kinds, [t.detach().double().numpy() for t in (result, x.grad)]


def close(mine: np.ndarray, other: np.ndarray, array: np.ndarray, tolerance: float) -> None:
    """Equal but where PyTorch's vectors and single numbers differ: what a NaN or infinity gives."""
    if mine.shape == array.shape:
        vague = np.isnan(array) | (np.isinf(array) & np.isnan(other))
        mine, other = mine[~vague], other[~vague]
    np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def compare(ours: Any, theirs: Any, array: np.ndarray, tolerance: float) -> None:
    if isinstance(theirs, NotImplementedError):
        return  # PyTorch has no kernels for some halves
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), f"{ours!r} instead of {theirs!r}"
        return
    assert ours[0] == theirs[0]
    for mine, other in zip(ours[1], theirs[1], strict=True):
        close(mine, other, array, tolerance)


def function_of(library: Any, name: str) -> Any:
    return getattr(library.nn.functional, name)


TOLERANCE = {"float64": 1e-8, "float32": 3e-6, "float16": 4e-3, "bfloat16": 3e-2}


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("array", [PLAIN, EXTREME], ids=["plain", "extreme"])
@pytest.mark.parametrize(("name", "how"), CASES)
def test_functions(name: str, how: dict[str, Any], array: np.ndarray, dtype: str) -> None:
    ours = run(torch, function_of(torch, name), array, dtype, **how)
    theirs = run(pytorch, function_of(pytorch, name), array, dtype, **how)
    compare(ours, theirs, array, TOLERANCE[dtype])


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_arguments(name: str) -> None:
    how = FUNCTIONS[name][-1]
    for array in (PLAIN, EXTREME):
        results = []
        for library in (torch, pytorch):
            x = library.from_numpy(array.copy())
            assert function_of(library, name)(x, **how, inplace=True) is x
            results.append(x.numpy())
            base = library.from_numpy(array.copy()).requires_grad_()
            y = base * 1
            function_of(library, name)(y, **how, inplace=True)
            y.sum().backward()
            results.append(base.grad.numpy())
        for mine, other in zip(results[:2], results[2:], strict=True):
            close(mine, other, array, 1e-8)


@pytest.mark.parametrize("name", UNDERSCORED)
def test_underscored_functions(name: str) -> None:
    results = []
    for library in (torch, pytorch):
        x = library.from_numpy(PLAIN.copy())
        assert function_of(library, name)(x) is x
        results.append(x.numpy())
    np.testing.assert_allclose(*results, rtol=1e-12)


@pytest.mark.parametrize("text", MODULES)
def test_modules(text: str) -> None:
    results, layers = [], []
    for library in (torch, pytorch):
        layer = eval(f"nn.{text}", {"nn": library.nn}).double()
        layers.append(layer)
        leaf = library.from_numpy(PLAIN.copy()).requires_grad_()
        out = layer(leaf * 1)
        out.sum().backward()
        gradients = [p.grad.numpy() for p in layer.parameters()]
        results.append([out.detach().numpy(), leaf.grad.numpy(), *gradients])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-8)
    assert repr(layers[0]) == repr(layers[1])
    own, others = ({k for k in vars(layer) if k[0] != "_"} for layer in layers)
    assert others <= own


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool"])
@pytest.mark.parametrize("asked", [None, "float32", "float64", "bfloat16", "int64"])
def test_softmax_dtypes(name: str, dtype: str, asked: str | None) -> None:
    found = []
    for library in (torch, pytorch):
        x = library.from_numpy(PLAIN.copy()).to(getattr(library, dtype))
        how = {} if asked is None else {"dtype": getattr(library, asked)}
        try:
            result = function_of(library, name)(x, dim=1, **how)
            found.append((str(result.dtype).rpartition(".")[2], result.double().numpy()))
        except Exception as error:
            found.append(error)
    ours, theirs = found
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert isinstance(ours, type(theirs)), f"{ours!r} instead of {theirs!r}"
        return
    assert ours[0] == theirs[0]
    np.testing.assert_allclose(ours[1], theirs[1], rtol=TOLERANCE.get(ours[0], 0), atol=1e-3)


WRONG = [
    ("glu", {"dim": 5}, PLAIN), ("glu", {}, PLAIN[:, :, :5]), ("glu", {}, np.array(1.0)),
    ("softmax", {"dim": 3}, PLAIN), ("softmax", {"dim": -4}, PLAIN),
    ("log_softmax", {"dim": 7}, PLAIN),
    ("softshrink", {"lambd": -1.0}, PLAIN), ("gelu", {"approximate": "none of these"}, PLAIN),
    ("hardtanh", {"min_val": 2.0, "max_val": 1.0}, PLAIN), ("celu", {"alpha": 0.0}, PLAIN),
    ("rrelu", {"lower": 2.0, "upper": 1.0}, PLAIN),
]  # fmt: skip


@pytest.mark.parametrize(("name", "how", "array"), WRONG)
def test_errors(name: str, how: dict[str, Any], array: np.ndarray) -> None:
    ours = run(torch, function_of(torch, name), array, "float64", **how)
    theirs = run(pytorch, function_of(pytorch, name), array, "float64", **how)
    compare(ours, theirs, array, 1e-12)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("glu", "softmin")])
def test_integers_work_or_raise_alike(name: str) -> None:
    found = []
    for library in (torch, pytorch):
        x = library.tensor([[3, -2], [0, 7]])
        try:
            how = {"threshold": 1, "value": 20} if name == "threshold" else FUNCTIONS[name][0]
            found.append(function_of(library, name)(x, **how).double().numpy())
        except Exception as error:
            found.append(error)
    ours, theirs = found
    if isinstance(theirs, Exception):
        assert isinstance(ours, (NotImplementedError, RuntimeError)), f"PyTorch: {theirs!r}"
        return
    assert not isinstance(ours, Exception), repr(ours)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
