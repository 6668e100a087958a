"""Linear, Bilinear and Identity."""

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn


def test_linear_is_the_affine_map() -> None:
    layer, x = nn.Linear(3, 4), torch.randn(2, 5, 3)
    expected = x.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_linear_without_bias() -> None:
    layer = nn.Linear(3, 4, bias=False)
    assert layer.bias is None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    assert layer(torch.zeros(1, 3)).tolist() == [[0.0] * 4]


def test_linear_starts_within_its_bound() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(100, 200)
    for tensor in (layer.weight, layer.bias):
        largest = tensor.abs().max().item()
        assert 0.09 < largest <= 1 / math.sqrt(100)
    before = layer.weight.tolist()
    layer.reset_parameters()
    assert layer.weight.tolist() != before


def test_linear_refuses_inputs_of_another_width() -> None:
    with pytest.raises(RuntimeError):
        nn.Linear(3, 4)(torch.zeros(2, 5))


def test_dtype_is_that_of_the_parameters() -> None:
    layer = nn.Linear(3, 4, dtype=torch.float64)
    assert layer.weight.dtype == layer.bias.dtype == torch.float64


def test_gradients_reach_weight_bias_and_input() -> None:
    layer, x = nn.Linear(2, 3), torch.tensor([[1.0, 2.0]], requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 2]] * 3
    assert layer.bias.grad.tolist() == [1, 1, 1]
    np.testing.assert_allclose(x.grad.numpy()[0], layer.weight.detach().numpy().sum(0), rtol=1e-6)


@pytest.mark.parametrize("leading", [(), (5,), (5, 2)])
def test_bilinear_is_the_bilinear_form(leading) -> None:
    layer = nn.Bilinear(2, 3, 4)
    x1, x2 = torch.randn(*leading, 2), torch.randn(*leading, 3)
    expected = np.einsum(
        "...i,kij,...j->...k", x1.numpy(), layer.weight.detach().numpy(), x2.numpy()
    )
    expected = expected + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(x1, x2).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_bilinear_checks_its_sizes() -> None:
    with pytest.raises(ValueError, match="in1_features must be > 0"):
        nn.Bilinear(0, 1, 1)
    with pytest.raises(RuntimeError, match=r"have 5 and 3 features, but weight .* takes 2 and 3"):
        nn.Bilinear(2, 3, 4)(torch.zeros(1, 5), torch.zeros(1, 3))


def test_identity_returns_its_input() -> None:
    x = torch.ones(2)
    assert nn.Identity("any", argument=1)(x) is x


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Linear(2, 3), "Linear(in_features=2, out_features=3, bias=True)"),
        (
            nn.Bilinear(1, 2, 3, bias=False),
            "Bilinear(in1_features=1, in2_features=2, out_features=3, bias=False)",
        ),
        (nn.Identity(), "Identity()"),
    ],
)
def test_repr(layer, text) -> None:
    assert repr(layer) == text
