"""Softmax layers against SciPy."""

import numpy as np
import pytest
from scipy import special

import rushlight as torch
from rushlight import nn


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize(
    ("cls", "reference"),
    [
        (nn.Softmax, special.softmax),
        (nn.LogSoftmax, special.log_softmax),
        (nn.Softmin, lambda x, dim: special.softmax(-x, dim)),
    ],
)
def test_layer_follows_its_formula(cls, reference, dim) -> None:
    x = torch.randn(3, 4, 5) * 5
    expected = reference(x.numpy().astype(np.float64), dim)
    np.testing.assert_allclose(cls(dim)(x).numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 4, 5)])
def test_softmax2d_sums_to_one_over_channels(shape) -> None:
    x = torch.randn(*shape)
    np.testing.assert_allclose(nn.Softmax2d()(x).numpy(), special.softmax(x.numpy(), -3), rtol=1e-5)
    with pytest.raises(ValueError, match=r"expected input to be 3D or 4D \(got 2D\)"):
        nn.Softmax2d()(torch.zeros(2, 2))


def test_repr() -> None:
    assert repr(nn.Softmax(1)) == "Softmax(dim=1)"
    assert repr(nn.LogSoftmax()) == "LogSoftmax(dim=None)"
