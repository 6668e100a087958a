"""linear_cross_entropy part by part equals it as a whole; adaptive softmax is a distribution."""

import itertools
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

rng = np.random.default_rng(5)
X, W, B = rng.normal(size=(9, 4)), rng.normal(size=(30, 4)), rng.normal(size=30)
Y = np.array([3, 29, 0, 7, -100, 7, 12, 3, 1])
CLASS_WEIGHT = rng.uniform(0.5, 2.0, 30)


def results(options: Any, dtype: torch.dtype = torch.float64, **how: Any) -> list[np.ndarray]:
    x, w, b = (torch.from_numpy(a).to(dtype).requires_grad_() for a in (X, W, B))
    scale = torch.from_numpy(CLASS_WEIGHT).to(dtype) if how.pop("weighted", False) else None
    target = torch.from_numpy(Y)
    loss = F.linear_cross_entropy(x, w, target, linear_bias=b, weight=scale, options=options, **how)
    loss.backward(torch.arange(1.0, loss.numel() + 1).reshape(loss.shape).to(dtype))
    return [t.detach().double().numpy() for t in (loss, x.grad, w.grad, b.grad)]


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 4, 9, 100, None])
def test_parts_give_what_the_whole_gives(reduction: str, weighted: bool, rows: int | None) -> None:
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=rows)
    whole = results(None, reduction=reduction, weighted=weighted)
    parts = results(options, reduction=reduction, weighted=weighted)
    for mine, theirs in zip(parts, whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


def test_half_types_add_up_in_float32() -> None:
    exact = results(None)
    for dtype in (torch.float16, torch.bfloat16):
        parts = results(nn.LinearCrossEntropyOptions(batch_chunk_size=2), dtype)
        for mine, theirs in zip(parts, exact, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=0.1, atol=0.05)


def test_only_wanted_gradients_are_made() -> None:
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    x, w, y = torch.from_numpy(X), torch.from_numpy(W), torch.from_numpy(Y)
    assert not F.linear_cross_entropy(x, w, y, options=options).requires_grad
    x.requires_grad_()
    F.linear_cross_entropy(x, w, y, options=options).backward()
    assert x.grad is not None and w.grad is None


def test_unbatched_input_and_nothing_at_all() -> None:
    options = nn.LinearCrossEntropyOptions()
    w = torch.from_numpy(W)
    for reduction in ("none", "mean"):
        one = F.linear_cross_entropy(
            torch.from_numpy(X[0]), w, torch.tensor(3), reduction=reduction, options=options
        )
        assert one.shape == ()
    none = F.linear_cross_entropy(
        torch.zeros(0, 4), w.float(), torch.zeros(0, dtype=torch.int64), options=options
    )
    assert none.isnan()


def test_a_second_backward_needs_allow_retain_graph() -> None:
    for allow in (False, True):
        options = nn.LinearCrossEntropyOptions(allow_retain_graph=allow)
        x = torch.from_numpy(X).requires_grad_()
        loss = F.linear_cross_entropy(x, torch.from_numpy(W), torch.from_numpy(Y), options=options)
        loss.backward(retain_graph=True)
        first = x.grad.clone()
        if allow:
            loss.backward()
            np.testing.assert_allclose(x.grad.numpy(), 2 * first.numpy())
        else:
            with pytest.raises(RuntimeError, match="allow_retain_graph"):
                loss.backward()


def test_options_that_do_not_apply_are_ignored_with_a_warning() -> None:
    options = nn.LinearCrossEntropyOptions()
    x, w, y = torch.from_numpy(X), torch.from_numpy(W), torch.from_numpy(Y)
    with pytest.warns(UserWarning, match="options.* ignored"):
        F.linear_cross_entropy(x, w, y, label_smoothing=0.1, options=options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"acc_policy": "fast"},
        {"chunking_method": "halves"},
        {"chunking_method": "aspect_ratio:0"},
        {"batch_chunk_size": 0},
        {"acc_dtype": torch.int64},
    ],
)
def test_unknown_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="invalid|must be"):
        nn.LinearCrossEntropyOptions(**wrong)


def test_two_ways_to_split_must_agree() -> None:
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=3, chunking_method="aspect_ratio")
    with pytest.raises(ValueError, match="different chunk sizes"):
        F.linear_cross_entropy(
            torch.from_numpy(X), torch.from_numpy(W), torch.from_numpy(Y), options=options
        )


def test_adaptive_softmax_is_a_distribution_and_agrees_with_itself() -> None:
    torch.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0).double()
    x = torch.randn(20, 8, dtype=torch.float64)
    log_p = layer.log_prob(x)
    np.testing.assert_allclose(log_p.exp().sum(1).detach().numpy(), np.ones(20))
    target = torch.arange(20)
    output, loss = layer(x, target)
    np.testing.assert_allclose(
        output.detach().numpy(), log_p.gather(1, target.unsqueeze(1)).squeeze(1).detach().numpy()
    )
    assert loss.item() == pytest.approx(-output.mean().item())
    assert torch.equal(layer.predict(x), log_p.argmax(1))
    assert torch.autograd.gradcheck(lambda t: layer(t, target).loss, x.requires_grad_())


def test_adaptive_softmax_refuses_what_does_not_fit() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)
    x = torch.randn(3, 8)
    for target in (torch.tensor([0, 1, 20]), torch.tensor([0, -1, 2])):
        with pytest.raises(RuntimeError, match="Target values should be in"):
            layer(x, target)
    for target in (torch.tensor([0, 1]), torch.tensor(1), torch.zeros(3, 1, dtype=torch.int64)):
        with pytest.raises(RuntimeError):
            layer(x, target)
    for cutoffs in ([], [10, 4], [0, 4], [4, 4], [4, 20], [1.5]):
        with pytest.raises(ValueError, match="cutoffs"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)


def test_grouped_products_are_those_of_the_groups() -> None:
    a, b = torch.randn(8, 6), torch.randn(3, 6, 4)
    ends = torch.tensor([2, 2, 7], dtype=torch.int32)
    out = F.grouped_mm(a, b, offs=ends)
    starts = [0, 2, 2, 7]
    for g, (start, end) in enumerate(itertools.pairwise(starts)):
        torch.testing.assert_close(out[start:end], a[start:end] @ b[g])
    assert out.shape == (8, 4) and not out[7:].any()
    columns = F.grouped_mm(torch.randn(3, 5, 8), torch.randn(8, 9), offs=ends)
    assert columns.shape == (5, 9)
    summed = F.grouped_mm(a.t(), torch.randn(8, 5), offs=ends)
    assert summed.shape == (3, 6, 5) and not summed[1].any()
    wrong: list[dict[str, Any]] = [
        {}, {"offs": ends[:2]}, {"offs": ends.long()}, {"offs": ends + 5}, {"offs": ends.flip(0)},
        {"offs": ends, "bias": torch.ones(4)}, {"offs": ends, "out_dtype": torch.float16},
    ]  # fmt: skip
    for how in wrong:
        with pytest.raises(RuntimeError):
            F.grouped_mm(a, b, **how)


def test_gumbel_softmax_draws_classes_by_their_probability() -> None:
    torch.manual_seed(0)
    p = torch.tensor([0.1, 0.3, 0.6])
    logits = p.log().expand(20000, 3).requires_grad_()
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    np.testing.assert_allclose(hard.detach().sort(1)[0].numpy(), [[0, 0, 1]] * 20000, atol=1e-6)
    np.testing.assert_allclose(hard.mean(0).detach().numpy(), p.numpy(), atol=0.015)
    soft = F.gumbel_softmax(logits, tau=2.0)
    np.testing.assert_allclose(soft.sum(1).detach().numpy(), np.ones(20000), rtol=1e-5)
    assert torch.autograd.grad((hard * p).sum(), logits)[0].any()
