"""Functions of torch that nn.functional has with other arguments."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F

x = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 6, 5)).astype(np.float32))
weight, bias = torch.arange(6.0), torch.ones(6)


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b)


def test_norms_take_their_arguments_in_pytorchs_order() -> None:
    mean, var = torch.zeros(6), torch.ones(6)
    for training in (True, False):
        stats = mean.clone(), var.clone()
        ours = torch.batch_norm(x, weight, bias, *stats, training, 0.1, 1e-5, True)
        others = mean.clone(), var.clone()
        close(ours, F.batch_norm(x, *others, weight, bias, training, 0.1, 1e-5))
        close(stats[0], others[0])
    close(
        torch.instance_norm(x, weight, bias, None, None, True, 0.1, 1e-5, True),
        F.instance_norm(x, None, None, weight, bias),
    )
    close(torch.layer_norm(x, (5,), None, None, 1e-3, False), F.layer_norm(x, (5,), eps=1e-3))
    close(torch.group_norm(x, 3, weight, bias), F.group_norm(x, 3, weight, bias))
    close(torch.rms_norm(x, (5,)), F.rms_norm(x, (5,)))


def test_native_norms_return_their_statistics() -> None:
    out, mean, scale = torch.native_layer_norm(x, (6, 5), None, None, 1e-5)
    close(out, F.layer_norm(x, (6, 5)))
    close(mean, x.mean((1, 2), keepdim=True))
    close(scale, (x.var((1, 2), correction=0, keepdim=True) + 1e-5).rsqrt())
    out, mean, scale = torch.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5)
    close(mean, x.mean((0, 2)))
    stats = torch.zeros(6), torch.ones(6)
    assert torch.native_batch_norm(x, weight, bias, *stats, False, 0.1, 1e-5)[1].numel() == 0
    out, mean, scale = torch.native_group_norm(x, weight, bias, 4, 6, 5, 2, 1e-5)
    close(out, F.group_norm(x, 2, weight, bias))
    assert mean.shape == scale.shape == (4, 2)


def test_dropouts_write_in_place_or_not() -> None:
    ones = torch.ones(100, 20)
    for name in ("dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"):
        y = ones.clone()
        assert getattr(torch, name)(y, 0.5, True) is y and not torch.equal(y, ones)
        assert torch.equal(getattr(torch, name)(ones.clone(), 0.5, False), ones)
    for name in ("alpha_dropout", "feature_dropout", "feature_alpha_dropout"):
        y = getattr(torch, name)(ones, 0.5, True)
        assert not torch.equal(y, ones) and torch.equal(ones, torch.ones(100, 20))
    channels = torch.feature_dropout(torch.ones(10, 20, 3), 0.5, True)
    assert (channels == channels[:, :, :1]).all() and set(channels.unique().tolist()) == {0, 2}
    assert not torch.feature_dropout(ones, 1.0, True).any()
    with pytest.raises(RuntimeError, match="at least 2 dim"):
        torch.feature_dropout(torch.ones(3), 0.5, True)
    out, mask = torch.native_dropout(ones, 0.25, True)
    assert mask.dtype is torch.bool and torch.equal(out, mask * (1 / 0.75))
    assert torch.native_dropout(ones, 0.25, False)[1].all()


def test_losses_take_numbers_for_reductions() -> None:
    a, b = torch.rand(4, 3), torch.rand(4, 3)
    sign = torch.tensor([1.0, -1.0, 1.0, -1.0])
    for number, word in enumerate(("none", "mean", "sum")):
        close(
            torch.kl_div(a, b, number, log_target=True),
            F.kl_div(a, b, reduction=word, log_target=True),
        )
        close(
            torch.margin_ranking_loss(a[:, 0], b[:, 0], sign, 0.5, number),
            F.margin_ranking_loss(a[:, 0], b[:, 0], sign, 0.5, reduction=word),
        )
        close(
            torch.hinge_embedding_loss(a[:, 0], sign, 2.0, number),
            F.hinge_embedding_loss(a[:, 0], sign, 2.0, reduction=word),
        )
        close(
            torch.cosine_embedding_loss(a, b, sign, 0.1, number),
            F.cosine_embedding_loss(a, b, sign, 0.1, reduction=word),
        )
        close(
            torch.binary_cross_entropy_with_logits(a, b, None, None, number),
            F.binary_cross_entropy_with_logits(a, b, reduction=word),
        )
        close(
            torch.poisson_nll_loss(a, b, True, True, 1e-8, number),
            F.poisson_nll_loss(a, b, True, True, reduction=word),
        )


def test_the_others_do_what_their_namesakes_do() -> None:
    rows = torch.arange(6.0).view(3, 2)
    assert torch.embedding(rows, torch.tensor([2, 0])).tolist() == [[4, 5], [0, 1]]
    assert torch.adaptive_max_pool1d(x, 2)[1].dtype is torch.int64
    assert torch.constant_pad_nd(torch.ones(1), [1, 0], 2).tolist() == [2, 1]
    assert torch.rrelu(torch.tensor([-1.0]), 0.5, 0.5).item() == -0.5
    y = torch.tensor([-1.0])
    assert torch.rrelu_(y, 0.5, 0.5) is y and y.item() == -0.5
    kernel = torch.ones(2, 6, 3)
    close(
        torch.convolution(x, kernel, None, [1], [1], [1], False, [0], 1),
        F.conv1d(x, kernel, padding=1),
    )
    close(
        torch.convolution(x, torch.ones(6, 2, 3), None, [2], [1], [1], True, [1], 1),
        F.conv_transpose1d(x, torch.ones(6, 2, 3), stride=2, padding=1, output_padding=1),
    )
    with pytest.raises(NotImplementedError, match="there is no conv7d"):
        torch.convolution(x, torch.ones((1,) * 9), None, [1], [0], [1], False, [0], 1)
    close(
        torch.conv_tbc(x, torch.ones(3, 5, 2), torch.zeros(2), 1).permute(1, 2, 0),
        F.conv1d(x.permute(1, 2, 0), torch.ones(2, 5, 3), padding=1),
    )
    v = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    assert torch.norm_except_dim(v, 2, 1).shape == (1, 2)
    assert torch.norm_except_dim(v, 2, -1).shape == ()
