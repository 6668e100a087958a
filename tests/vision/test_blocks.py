"""Blocks that vision models share: frozen norms, squeeze-excitation, stochastic depth."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.vision.ops.misc import (
    MLP,
    Conv2dNormActivation,
    Conv3dNormActivation,
    ConvNormActivation,
    FrozenBatchNorm2d,
    Permute,
    SqueezeExcitation,
)
from rushlight.vision.ops.stochastic_depth import StochasticDepth, stochastic_depth


def test_frozen_norm_uses_its_buffers_and_learns_nothing():
    rng = np.random.default_rng(0)
    norm = FrozenBatchNorm2d(3, eps=0.1)
    for buffer in norm.buffers():
        buffer.copy_(torch.from_numpy(rng.random(3).astype(np.float32) + 0.5))
    x = rng.normal(size=(2, 3, 4, 4)).astype(np.float32)
    w, b, mean, var = (buffer.numpy()[:, None, None] for buffer in norm.buffers())
    np.testing.assert_allclose(
        norm.train()(torch.from_numpy(x)).numpy(),
        (x - mean) / np.sqrt(var + 0.1) * w + b,
        atol=1e-5,
    )
    assert list(norm.parameters()) == []
    assert repr(norm) == "FrozenBatchNorm2d(3, eps=0.1)"


def test_frozen_norm_loads_a_batch_norm():
    norm = nn.BatchNorm2d(3)
    nn.init.normal_(norm.weight)
    frozen = FrozenBatchNorm2d(3)
    frozen.load_state_dict(norm.state_dict())
    assert torch.equal(frozen.weight, norm.weight)


def test_padding_keeps_the_size():
    x = torch.zeros(1, 2, 12, 12)
    for options in ({}, {"kernel_size": (3, 5)}, {"dilation": 2}, {"dilation": (2, 1)}):
        assert Conv2dNormActivation(2, 4, **options)(x).shape == (1, 4, 12, 12)
    assert Conv3dNormActivation(2, 4, (1, 3, 3))(x[:, :, None]).shape == (1, 4, 1, 12, 12)


def test_layers_of_a_block_are_those_asked_for():
    kinds = [type(layer).__name__ for layer in Conv2dNormActivation(2, 4)]
    assert kinds == ["Conv2d", "BatchNorm2d", "ReLU"]
    bare = Conv2dNormActivation(2, 4, norm_layer=None, activation_layer=None)
    assert len(bare) == 1 and bare[0].bias is not None and bare.out_channels == 4
    assert Conv2dNormActivation(2, 4)[0].bias is None
    assert not Conv2dNormActivation(2, 4, inplace=None)[2].inplace
    with pytest.warns(UserWarning, match="Don't use ConvNormActivation directly"):
        ConvNormActivation(2, 4)


def test_squeeze_excitation_weighs_channels():
    torch.manual_seed(0)
    block = SqueezeExcitation(4, 2)
    x = torch.randn(2, 4, 3, 3)
    w1, b1 = block.fc1.weight.detach().numpy()[..., 0, 0], block.fc1.bias.detach().numpy()
    w2, b2 = block.fc2.weight.detach().numpy()[..., 0, 0], block.fc2.bias.detach().numpy()
    hidden = np.maximum(x.numpy().mean((2, 3)) @ w1.T + b1, 0)
    scale = 1 / (1 + np.exp(-(hidden @ w2.T + b2)))
    want = x.numpy() * scale[:, :, None, None]
    np.testing.assert_allclose(block(x).detach().numpy(), want, atol=1e-5)


def test_mlp_and_permute():
    mlp = MLP(4, [8, 2], norm_layer=nn.LayerNorm, activation_layer=nn.GELU, dropout=0.5, bias=False)
    kinds = [type(layer).__name__ for layer in mlp]
    assert kinds == ["Linear", "LayerNorm", "GELU", "Dropout", "Linear", "Dropout"]
    assert mlp[0].bias is None and mlp[5].p == 0.5
    x = torch.arange(6).view(1, 2, 3)
    assert torch.equal(Permute([2, 0, 1])(x), x.permute(2, 0, 1))


def test_stochastic_depth_zeroes_rows_and_keeps_the_mean():
    torch.manual_seed(0)
    x = torch.ones(4000, 3)
    rows = stochastic_depth(x, 0.25, "row")
    kept = rows[:, 0] > 0
    np.testing.assert_allclose(rows[kept].numpy(), 4 / 3, rtol=1e-6)
    assert torch.equal(rows, rows[:, :1].expand(-1, 3))
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.03)
    batches = {stochastic_depth(x, 0.5, "batch").sum().item() for _ in range(20)}
    assert batches == {0.0, 24000.0}


def test_stochastic_depth_is_the_identity_in_evaluation():
    layer = StochasticDepth(0.9, "row")
    x = torch.randn(2, 3)
    assert layer.eval()(x) is x
    assert repr(layer) == "StochasticDepth(p=0.9, mode=row)"
    with pytest.raises(ValueError, match="between 0 and 1, but got 1.5"):
        stochastic_depth(x, 1.5, "row")
    with pytest.raises(ValueError, match="either 'batch' or 'row', but got column"):
        stochastic_depth(x, 0.5, "column")
