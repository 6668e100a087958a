"""Losses against their formulas in NumPy, in every reduction."""

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from grouping import each
from scipy import special

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 4, 3)) * 2
P, Q = rng.uniform(0.05, 0.95, (2, 4, 3))
SIGNS = np.where(rng.uniform(size=(4, 3)) > 0.5, 1.0, -1.0)
WEIGHT = rng.uniform(0.5, 2, 3)
D = np.abs(A - B)


def bce(p, y):
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


def weights(values):
    return torch.from_numpy(np.array(values))


def cosine(a, b):
    return (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)


# (what makes the loss for a reduction, arguments, losses of the elements)
CASES = {
    "l1": (lambda r: nn.L1Loss(reduction=r), (A, B), D),
    "mse": (lambda r: nn.MSELoss(reduction=r), (A, B), D**2),
    "smooth_l1": (
        lambda r: nn.SmoothL1Loss(reduction=r, beta=1.5),
        (A, B),
        np.where(D < 1.5, D**2 / 3, D - 0.75),
    ),
    "huber": (
        lambda r: nn.HuberLoss(reduction=r, delta=1.5),
        (A, B),
        np.where(D < 1.5, D**2 / 2, 1.5 * (D - 0.75)),
    ),
    "bce": (lambda r: nn.BCELoss(reduction=r), (P, Q), bce(P, Q)),
    "bce_weighted": (
        lambda r: nn.BCELoss(weights(WEIGHT), reduction=r),
        (P, Q),
        bce(P, Q) * WEIGHT,
    ),
    "bce_with_logits": (
        lambda r: nn.BCEWithLogitsLoss(reduction=r),
        (A, Q),
        bce(special.expit(A), Q),
    ),
    "bce_with_logits_weighted": (
        lambda r: nn.BCEWithLogitsLoss(
            weights(WEIGHT), reduction=r, pos_weight=weights(2 * WEIGHT)
        ),
        (A, Q),
        WEIGHT * -(2 * WEIGHT * Q * special.log_expit(A) + (1 - Q) * special.log_expit(-A)),
    ),
    "kl_div": (
        lambda r: nn.KLDivLoss(reduction=r),
        (np.log(P), Q),
        Q * (np.log(Q) - np.log(P)),
    ),
    "kl_div_log_target": (
        lambda r: nn.KLDivLoss(reduction=r, log_target=True),
        (np.log(P), np.log(Q)),
        Q * (np.log(Q) - np.log(P)),
    ),
    "hinge_embedding": (
        lambda r: nn.HingeEmbeddingLoss(margin=1.5, reduction=r),
        (A, SIGNS),
        np.where(SIGNS == 1, A, np.maximum(0, 1.5 - A)),
    ),
    "margin_ranking": (
        lambda r: nn.MarginRankingLoss(margin=0.5, reduction=r),
        (A, B, SIGNS),
        np.maximum(0, -SIGNS * (A - B) + 0.5),
    ),
    "cosine_embedding": (
        lambda r: nn.CosineEmbeddingLoss(margin=0.1, reduction=r),
        (A, B, SIGNS[:, 0]),
        np.where(SIGNS[:, 0] == 1, 1 - cosine(A, B), np.maximum(0, cosine(A, B) - 0.1)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_loss_follows_its_formula_in_every_reduction(name) -> None:
    make, arguments, expected = CASES[name]
    tensors = [torch.from_numpy(np.ascontiguousarray(a)) for a in arguments]
    for reduction, value in (
        ("none", expected),
        ("sum", expected.sum()),
        ("mean", expected.mean()),
    ):
        np.testing.assert_allclose(make(reduction)(*tensors).numpy(), value, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        make("average")(*tensors)


@pytest.mark.parametrize(
    ("input_shape", "target_shape", "error"),
    [
        ((3, 4), (2,), ValueError),
        ((3, 4, 5), (2, 5), ValueError),
        ((), (1,), ValueError),
        ((3, 4), (3, 2), RuntimeError),
        ((3, 4), (), ValueError),
        ((4,), (2,), ValueError),
        ((3, 4, 5), (3,), RuntimeError),
        ((3, 4, 5, 5), (3, 5, 6), RuntimeError),
    ],
)
def test_targets_of_other_shapes_are_refused(input_shape, target_shape, error) -> None:
    with pytest.raises(error, match="nll_loss: ") as caught:
        F.nll_loss(torch.zeros(input_shape), torch.zeros(target_shape, dtype=torch.long))
    assert type(caught.value) is error


def test_kl_div_batchmean_divides_by_the_batch_size() -> None:
    loss = nn.KLDivLoss(reduction="batchmean")
    expected = (Q * (np.log(Q) - np.log(P))).sum() / 4
    assert loss(torch.from_numpy(np.log(P)), torch.from_numpy(Q)).item() == pytest.approx(expected)


TARGET = np.array([2, 0, 1, 0])


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("ignore_index", [-100, 0])
def test_classification_losses_weigh_and_ignore_classes(weight, ignore_index) -> None:
    log_p = special.log_softmax(A, 1)
    counts = (np.ones(3) if weight is None else weight)[TARGET] * (ignore_index != TARGET)
    expected = -log_p[np.arange(4), TARGET] * counts
    settings = {
        "weight": None if weight is None else weights(weight),
        "ignore_index": ignore_index,
    }
    target = torch.from_numpy(TARGET)
    for loss, values in ((nn.NLLLoss, log_p), (nn.CrossEntropyLoss, A)):
        for reduction, value in (
            ("none", expected),
            ("sum", expected.sum()),
            ("mean", expected.sum() / counts.sum()),
        ):
            result = loss(reduction=reduction, **settings)(torch.from_numpy(values), target)
            np.testing.assert_allclose(result.numpy(), value, rtol=1e-6)


def test_cross_entropy_smooths_labels_and_takes_probabilities() -> None:
    log_p = special.log_softmax(A, 1)
    probabilities = Q / Q.sum(1, keepdims=True)
    smoothed = 0.7 * np.eye(3)[TARGET] + 0.3 / 3
    logits = torch.from_numpy(A.copy())
    loss = nn.CrossEntropyLoss(label_smoothing=0.3)(logits, torch.from_numpy(TARGET))
    assert loss.item() == pytest.approx(-(smoothed * log_p).sum(1).mean())
    loss = nn.CrossEntropyLoss()(logits, torch.from_numpy(probabilities))
    assert loss.item() == pytest.approx(-(probabilities * log_p).sum(1).mean())


def test_class_weights_move_with_the_module() -> None:
    loss = nn.CrossEntropyLoss(weight=torch.ones(3))
    assert loss.double().weight.dtype == torch.float64
    assert list(loss.state_dict()) == ["weight"]
    assert list(nn.BCEWithLogitsLoss(pos_weight=torch.ones(3)).state_dict()) == ["pos_weight"]


def test_shapes_that_do_not_fit_are_errors() -> None:
    F = nn.functional
    with pytest.raises(RuntimeError, match="should have same dimension but got sizes"):
        F.margin_ranking_loss(torch.zeros(2, 3), torch.zeros(3), torch.zeros(3))
    with pytest.raises(RuntimeError, match="do not fit target"):
        F.cosine_embedding_loss(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(2, 3))


def test_repr() -> None:
    assert repr(nn.CrossEntropyLoss(label_smoothing=0.1)) == "CrossEntropyLoss()"


def test_multilabel_margin_loss_takes_memory_for_scores_only() -> None:
    # Pairs of 2000 classes would take 32 MB, the scores take 16 KB.
    program = """if True:
        import rushlight as torch
        x = torch.randn(2, 2000, requires_grad=True)
        y = torch.full((2, 2000), -1)
        y[:, :5] = torch.arange(5)
        torch.nn.functional.multilabel_margin_loss(x, y).backward()
        print(torch._C._memory_stats()["peak"])
    """
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 2e6


def test_multilabel_margin_loss_inside_vmap() -> None:
    loss = torch.nn.functional.multilabel_margin_loss
    x = torch.randn(3, 2, 4, dtype=torch.float64)
    y = torch.tensor([[[3, 0, -1, 1], [-1, 2, 2, 2]], [[0, 1, 2, 3]] * 2, [[1, -1, 0, 0]] * 2])
    together = torch.vmap(torch.func.grad(loss))(x, y)
    for sample, target, grad in zip(x, y, together, strict=True):
        assert torch.allclose(torch.func.grad(loss)(sample, target), grad)


@each("loss", [nn.CrossEntropyLoss, nn.MSELoss, nn.BCELoss, nn.SoftMarginLoss])
def test_a_loss_made_of_tensors_says_how_it_is_called(loss: type[nn.Module]) -> None:
    message = f"{loss.__name__}: size_average is a tensor.*{loss.__name__}\\(\\)\\(input, target\\)"
    weight = [torch.ones(2)] if issubclass(loss, nn.modules.loss._WeightedLoss) else []
    with pytest.raises(RuntimeError, match=message):
        loss(*weight, torch.ones(2, 3))


def test_broadcast_targets_warn_with_their_sizes() -> None:
    with pytest.warns(UserWarning, match=r"target size \(2,\) that .* input size \(2, 1\)\. This"):
        F.mse_loss(torch.ones(2, 1), torch.ones(2))


@pytest.mark.parametrize(
    "loss",
    [F.mse_loss, F.l1_loss, F.smooth_l1_loss, partial(F.smooth_l1_loss, beta=0.0), torch.dist],
)
def test_integers_are_compared_with_floats_as_floats(loss: Any) -> None:
    whole, floats = torch.tensor([1, 2, 3]), torch.tensor([1.5, 0.25, 3.0], dtype=torch.float64)
    floats.requires_grad_()
    for pair in ((whole, floats), (floats, whole)):
        result = loss(*pair)
        assert torch.equal(result, loss(whole.double(), floats))
        (gradient,) = torch.autograd.grad(result, floats)
        assert torch.equal(gradient, torch.autograd.grad(loss(whole.double(), floats), floats)[0])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int64])
def test_the_targets_of_the_soft_margin_may_be_of_any_dtype(dtype: torch.dtype) -> None:
    x, target = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1, 1, 0])
    assert torch.equal(
        F.soft_margin_loss(x, target.to(dtype)), F.soft_margin_loss(x, target.float())
    )


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, partial(F.smooth_l1_loss, beta=0)])
def test_truth_values_are_compared_with_floats_as_floats(loss: Any) -> None:
    mask, floats = torch.tensor([True, False]), torch.tensor([0.5, 0.25], dtype=torch.bfloat16)
    assert torch.equal(loss(mask, floats), loss(mask.bfloat16(), floats))
    with pytest.raises(RuntimeError):
        loss(mask, mask)
    x = torch.tensor([0.5, 0.25], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: loss(x, mask), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_losses_of_halves_are_halves_next_to_wider_targets_and_weights(dtype: torch.dtype) -> None:
    x = torch.tensor([0.5, 0.25, 1.0], dtype=dtype)
    wide, whole = torch.tensor([1.0, 0.0, 1.0]), torch.tensor([1, 0, 4])
    halves = wide.to(dtype)
    for losses in (
        F.huber_loss(x, wide, reduction="none"),
        F.soft_margin_loss(x, wide, reduction="none"),
        F.binary_cross_entropy(x, halves, wide, reduction="none"),
        F.binary_cross_entropy_with_logits(x, halves, wide, reduction="none"),
        F.binary_cross_entropy_with_logits(x, halves, pos_weight=wide, reduction="none"),
        F.binary_cross_entropy_with_logits(wide, x, reduction="none"),
        F.poisson_nll_loss(x, whole, full=True, reduction="none"),
        F.margin_ranking_loss(x, x, whole, reduction="none"),
    ):
        assert losses.dtype is dtype
    assert F.binary_cross_entropy_with_logits(x, wide).dtype is torch.float32


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss])
def test_a_target_without_dims_counts_for_the_dtype_as_others_do(loss: Any) -> None:
    x, target = (
        torch.tensor([0.5, 2.0], dtype=torch.bfloat16, requires_grad=True),
        torch.tensor(1.0),
    )
    result = loss(x, target, reduction="none")
    assert result.dtype is torch.float32
    assert torch.equal(result, loss(x.float(), target.expand(2), reduction="none"))
    assert loss(target, x).dtype is torch.float32
    assert F.huber_loss(x, target).dtype is torch.bfloat16
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert gradient.dtype is torch.bfloat16 and gradient.abs().sum() > 0
