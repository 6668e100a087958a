"""Dropout layers: the share, the scale, and what is dropped together."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_dropout_zeroes_its_share_and_scales_the_rest() -> None:
    y = nn.Dropout(0.75)(torch.ones(10_000)).numpy()
    assert set(y.tolist()) == {0.0, 4.0}
    assert (y == 0).mean() == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize(
    ("layer", "shape", "kept_shape"),
    [
        (nn.Dropout1d(0.5), (4, 50, 7), (4, 50)),
        (nn.Dropout1d(0.5), (50, 7), (50,)),
        (nn.Dropout2d(0.5), (4, 50, 3, 2), (4, 50)),
        (nn.Dropout2d(0.5), (4, 50, 7), (4, 50)),
        (nn.Dropout3d(0.5), (4, 50, 2, 3, 2), (4, 50)),
        (nn.Dropout3d(0.5), (50, 2, 3, 2), (50,)),
    ],
)
def test_channels_are_dropped_whole(layer, shape, kept_shape) -> None:
    y = layer(torch.ones(shape)).numpy().reshape(*kept_shape, -1)
    assert (y == y[..., :1]).all()
    assert set(y.ravel().tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("cls", [nn.Dropout, nn.Dropout1d, nn.Dropout2d])
def test_evaluation_passes_the_input_on(cls) -> None:
    x = torch.randn(2, 3, 4)
    assert cls(0.9).eval()(x).tolist() == x.tolist()


@pytest.mark.parametrize("cls", [nn.Dropout, nn.Dropout1d, nn.Dropout2d])
def test_inplace_overwrites_the_input(cls) -> None:
    x = torch.ones(2, 30, 4)
    y = cls(0.5, inplace=True)(x)
    assert y.tolist() == x.tolist()
    assert set(x.flatten().tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("cls", [nn.Dropout, nn.Dropout1d, nn.Dropout2d])
def test_gradients_pass_where_values_do(cls) -> None:
    x = torch.ones(2, 30, 4, requires_grad=True)
    y = cls(0.5)(x)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


@pytest.mark.parametrize("cls", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_alpha_dropout_keeps_mean_and_variance(cls) -> None:
    y = cls(0.3)(torch.randn(300, 300)).numpy()
    assert y.mean() == pytest.approx(0, abs=0.05)
    assert y.var() == pytest.approx(1, abs=0.05)
    _, counts = np.unique(y, return_counts=True)
    assert counts.max() / y.size == pytest.approx(0.3, abs=0.02)  # all dropped ones are equal
    x = torch.randn(2, 3)
    assert cls(0.3).eval()(x).tolist() == x.tolist()


def test_feature_alpha_dropout_drops_whole_channels() -> None:
    y = nn.FeatureAlphaDropout(0.5)(torch.ones(4, 50, 3)).numpy()
    assert (y == y[..., :1]).all()
    assert len(np.unique(y)) == 2


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_probability_must_be_one(p) -> None:
    with pytest.raises(ValueError, match="has to be between 0 and 1, but got"):
        nn.Dropout(p)


def test_channel_dropout_needs_channels() -> None:
    with pytest.raises(RuntimeError, match="Expected 2D or 3D input, but received a 1D input"):
        nn.Dropout1d()(torch.ones(3))


def test_repr() -> None:
    assert repr(nn.Dropout2d(0.25, True)) == "Dropout2d(p=0.25, inplace=True)"


@pytest.mark.parametrize("drop", [F.dropout, F.alpha_dropout, F.feature_alpha_dropout])
def test_inplace_has_the_gradient_of_a_copy(drop) -> None:
    grads = []
    for inplace in (False, True):
        torch.manual_seed(0)
        x = torch.ones(2, 3, 4, requires_grad=True)
        drop(x * 1, 0.5, True, inplace).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)
