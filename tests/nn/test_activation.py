"""Nonlinear layers against their formulas in NumPy."""

import numpy as np
import pytest
from scipy import special

import rushlight as torch
from rushlight import nn

X = np.linspace(-7, 7, 57, dtype=np.float32).reshape(3, 19)


def sigmoid(x):
    return special.expit(x)


def softplus(x):
    return np.logaddexp(x, 0)


CASES = [
    (nn.ReLU(), lambda x: np.maximum(x, 0)),
    (nn.ReLU6(), lambda x: np.clip(x, 0, 6)),
    (nn.LeakyReLU(0.1), lambda x: np.where(x > 0, x, 0.1 * x)),
    (nn.PReLU(init=0.3), lambda x: np.where(x > 0, x, 0.3 * x)),
    (nn.RReLU(0.1, 0.5).eval(), lambda x: np.where(x > 0, x, 0.3 * x)),
    (nn.ELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    (nn.CELU(2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    (
        nn.SELU(),
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    ),
    (nn.GELU(), lambda x: x * special.ndtr(x)),
    (
        nn.GELU("tanh"),
        lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    (nn.SiLU(), lambda x: x * sigmoid(x)),
    (nn.Mish(), lambda x: x * np.tanh(softplus(x))),
    (nn.Hardtanh(-2.0, 3.0), lambda x: np.clip(x, -2, 3)),
    (nn.Hardsigmoid(), lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    (nn.Hardswish(), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (nn.Hardshrink(0.7), lambda x: np.where(np.abs(x) > 0.7, x, 0)),
    (nn.Softshrink(0.7), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.7, 0)),
    (nn.Tanhshrink(), lambda x: x - np.tanh(x)),
    (nn.Threshold(1.0, 9.0), lambda x: np.where(x > 1, x, 9)),
    (nn.Sigmoid(), sigmoid),
    (nn.LogSigmoid(), lambda x: -softplus(-x)),
    (nn.Tanh(), np.tanh),
    (nn.Softplus(2.0), lambda x: softplus(2 * x) / 2),
    (nn.Softsign(), lambda x: x / (1 + np.abs(x))),
]


@pytest.mark.parametrize(("layer", "formula"), CASES, ids=lambda case: type(case).__name__)
def test_layer_follows_its_formula(layer, formula) -> None:
    expected = formula(X.astype(np.float64))
    result = layer(torch.from_numpy(X.copy())).detach().numpy()
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    "make",
    [
        nn.ReLU,
        nn.ReLU6,
        nn.LeakyReLU,
        nn.RReLU,
        nn.ELU,
        nn.CELU,
        nn.SELU,
        nn.SiLU,
        nn.Mish,
        nn.Hardtanh,
        nn.Hardsigmoid,
        nn.Hardswish,
        lambda inplace: nn.Threshold(1.0, 9.0, inplace),
    ],
)
def test_inplace_overwrites_the_input(make) -> None:
    plain, inplace = make(inplace=False).eval(), make(inplace=True).eval()
    x = torch.from_numpy(X.copy())
    y = inplace(x)
    assert x.tolist() == y.tolist() == plain(torch.from_numpy(X.copy())).tolist()
    assert "inplace=True" in repr(inplace) or type(plain) in (nn.Threshold, nn.Hardswish)
    assert "inplace" not in repr(plain)


def test_prelu_learns_one_slope_for_each_channel() -> None:
    layer = nn.PReLU(2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([0.5, 0.25]))
    x = torch.full((1, 2, 3), -4.0)
    y = layer(x)
    assert y.tolist() == [[[-2] * 3, [-1] * 3]]
    y.sum().backward()
    assert layer.weight.grad.tolist() == [-12, -12]


def test_rrelu_draws_slopes_within_its_bounds_in_training() -> None:
    torch.manual_seed(0)
    x = torch.full((1000,), -1.0, requires_grad=True)
    y = nn.RReLU(0.25, 0.75)(x)
    slopes = -y.detach().numpy()
    assert 0.25 <= slopes.min() < 0.3
    assert 0.7 < slopes.max() <= 0.75
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-6)


def test_glu_gates_one_half_by_the_other() -> None:
    x = torch.randn(3, 4, 5)
    a, b = np.split(x.numpy(), 2, axis=1)
    np.testing.assert_allclose(nn.GLU(1)(x).numpy(), a * sigmoid(b), rtol=1e-5)
    with pytest.raises(RuntimeError, match="Halving dimension must be even, but dimension -1 is"):
        nn.GLU()(x)


def test_hardtanh_takes_its_bounds_by_their_former_names() -> None:
    with pytest.warns(FutureWarning, match="`min_value` is deprecated and renamed to `min_val`"):
        layer = nn.Hardtanh(min_value=-2)
    assert (layer.min_val, layer.max_val) == (-2, 1)
    with pytest.warns(FutureWarning, match="`max_value` is deprecated and renamed to `max_val`"):
        layer = nn.Hardtanh(max_value=3)
    assert (layer.min_val, layer.max_val) == (-1, 3)


def test_hardtanh_needs_bounds_in_order() -> None:
    with pytest.raises(ValueError, match=r"max_val \(1.0\) must be larger than min_val \(2.0\)"):
        nn.Hardtanh(2.0, 1.0)


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.ReLU(True), "ReLU(inplace=True)"),
        (nn.LeakyReLU(0.1, True), "LeakyReLU(negative_slope=0.1, inplace=True)"),
        (nn.PReLU(3), "PReLU(num_parameters=3)"),
        (nn.RReLU(0.1, 0.2), "RReLU(lower=0.1, upper=0.2)"),
        (nn.ELU(), "ELU(alpha=1.0)"),
        (nn.CELU(), "CELU(alpha=1.0)"),
        (nn.GELU("tanh"), "GELU(approximate='tanh')"),
        (nn.Hardtanh(-2.0, 2.0, True), "Hardtanh(min_val=-2.0, max_val=2.0, inplace=True)"),
        (nn.Hardshrink(), "Hardshrink(0.5)"),
        (nn.Softshrink(), "Softshrink(0.5)"),
        (nn.Threshold(1, 2), "Threshold(threshold=1, value=2)"),
        (nn.Softplus(), "Softplus(beta=1.0, threshold=20.0)"),
        (nn.GLU(), "GLU(dim=-1)"),
        (nn.Tanh(), "Tanh()"),
    ],
)
def test_repr(layer, text) -> None:
    assert repr(layer) == text


def test_threshold_of_integers_cuts_its_numbers() -> None:
    x = torch.arange(-2, 3)
    assert torch.threshold(x, 0.5, 1.7).tolist() == [1, 1, 1, 1, 2]
    assert torch.threshold(x.to(torch.int8), -1.5, -3.9).tolist() == [-3, -3, 0, 1, 2]
    with pytest.raises(RuntimeError, match="uint8 without overflow: -2"):
        torch.threshold(x.to(torch.uint8), 0.3, -2.0)
