"""Every loss does what PyTorch's does: values, gradients, dtypes, warnings, classes of errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from compat.libraries import IS_LATER

import rushlight as torch

pytorch = pytest.importorskip("torch")

rng = np.random.default_rng(3)
X, Y, Z = rng.normal(size=(3, 4, 5)) * 1.5
P, Q = rng.uniform(0.02, 0.98, (2, 4, 5))
SIGNS = np.where(rng.normal(size=(4, 5)) > 0, 1.0, -1.0)
W = rng.uniform(0.5, 2.0, (4, 5))
W5 = W[0]
C4 = np.array([0, 4, 2, 2])
IGNORED = np.array([0, -100, 2, 4])
IMAGES, LABELS = rng.normal(size=(2, 5, 3, 4)), rng.integers(0, 5, (2, 3, 4))
SOFT = np.exp(Y) / np.exp(Y).sum(1, keepdims=True)
SOFT_IMAGES = np.exp(IMAGES) / np.exp(IMAGES).sum(1, keepdims=True)
NAMED = np.array([[3, 0, -1, 1, 1], [-1, 2, 2, 2, 4], [0, 1, 2, 3, 4], [1, 1, -1, -1, -1]])
EXTREME = np.array([0.0, -0.0, 1e-30, 30.0, -30.0, 100.0, -100.0, np.inf, -np.inf, np.nan])
EMPTY, EMPTY_CLASSES = np.zeros((0, 5)), np.zeros(0, np.int64)
LOG_P = X - np.log(np.exp(X).sum(1, keepdims=True))
TIMES = rng.normal(size=(7, 3, 5))
TIMES = TIMES - np.log(np.exp(TIMES).sum(2, keepdims=True))
TEXTS = np.array([[1, 2, 2], [3, 3, 4], [4, 1, 3]])

REDUCTIONS = ({"reduction": "none"}, {"reduction": "sum"}, {})


class Case:
    def __init__(self, name: str, *args: Any, **how: Any) -> None:
        self.name, self.args, self.how = name, args, how

    def __repr__(self) -> str:
        shapes = [a.shape if isinstance(a, np.ndarray) else a for a in self.args]
        how = {k: v.shape if isinstance(v, np.ndarray) else v for k, v in self.how.items()}
        return f"{self.name}{shapes}{how}".replace(" ", "")


def each(name: str, *args: Any, **how: Any) -> Iterator[Case]:
    for reduction in REDUCTIONS:
        yield Case(name, *args, **reduction, **how)


def of_elements() -> Iterator[Case]:
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        yield from each(name, X, Y)
        yield from each(name, X, Y[0])  # broadcast, with a warning
        yield from each(name, X[:, :1], Y[:1])
        yield from each(name, EMPTY, EMPTY)
        yield from each(name, X[0, 0], Y[0, 0])
        yield Case(name, X, Y[:3, :3])
        yield Case(name, X.astype(np.int64), Y.astype(np.int64), reduction="sum")
        yield Case(name, X, Y.astype(np.int64))
        yield Case(name, X, Y, reduction="other")
        yield Case(name, EXTREME, EXTREME[::-1].copy(), reduction="none")
        if name != "smooth_l1_loss":
            yield from each(name, X, Y, weight=W)
            yield Case(name, X, Y, weight=W5)
    yield from each("smooth_l1_loss", X, Y, beta=0.3)
    yield from each("smooth_l1_loss", X, Y, beta=0.0)
    yield Case("smooth_l1_loss", X, Y, beta=-1.0)
    yield from each("huber_loss", X, Y, delta=0.3)
    yield Case("huber_loss", X, Y, delta=0.0)


def of_probabilities() -> Iterator[Case]:
    yield from each("binary_cross_entropy", P, Q)
    yield from each("binary_cross_entropy", P, Q, W)
    yield from each("binary_cross_entropy", P, Q, W5)
    yield from each("binary_cross_entropy", EMPTY, EMPTY)
    yield Case("binary_cross_entropy", P, Q[0])
    yield Case("binary_cross_entropy", P + 1, Q)
    yield Case("binary_cross_entropy", P, Q, np.ones(3))
    yield Case("binary_cross_entropy", np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    bce = "binary_cross_entropy_with_logits"
    yield from each(bce, X, Q)
    yield from each(bce, X, Q, W5)
    yield from each(bce, X, Q, pos_weight=W5)
    yield from each(bce, X, Q, W, pos_weight=W5)
    yield from each(bce, EMPTY, EMPTY)
    yield Case(bce, X, Q[0])
    yield Case(bce, X, Q, pos_weight=np.ones(3))
    yield Case(bce, EXTREME[3:7], np.array([0.0, 1.0, 0.0, 1.0]), reduction="none")
    yield Case(bce, EXTREME[3:7], np.array([1.0, 0, 0.5, 1]), pos_weight=np.array(3.0))
    for log_target in (False, True):
        target = np.log(Q) if log_target else Q
        yield from each("kl_div", LOG_P, target, log_target=log_target)
        yield Case("kl_div", LOG_P, target, log_target=log_target, reduction="batchmean")
        yield Case("kl_div", LOG_P[0, 0], target[0, 0], log_target=log_target)
    yield Case("kl_div", LOG_P, np.zeros((4, 5)), reduction="sum")
    yield Case("kl_div", LOG_P, Q, reduction="other")
    yield from each("soft_margin_loss", X, SIGNS)
    yield Case("soft_margin_loss", X * 100, SIGNS)
    yield Case("soft_margin_loss", X, SIGNS[:, :3])
    for how in ({}, {"log_input": False}, {"full": True}, {"log_input": False, "full": True}):
        yield from each("poisson_nll_loss", Q + 0.5, np.floor(W * 3), **how)
    yield Case("poisson_nll_loss", Q, W, reduction="other")
    for full in (False, True):
        yield from each("gaussian_nll_loss", X, Y, W, full=full)
    yield from each("gaussian_nll_loss", X, Y, W[:, :1])
    yield from each("gaussian_nll_loss", X, Y, W[:, 0])
    yield from each("gaussian_nll_loss", X, Y, 0.5)
    yield from each("gaussian_nll_loss", X, Y, W * 1e-9)
    yield Case("gaussian_nll_loss", X, Y, -W)
    yield Case("gaussian_nll_loss", X, Y, -1.0)
    yield Case("gaussian_nll_loss", X, Y, W[:2])
    yield Case("gaussian_nll_loss", X, Y, W, reduction="other")


def of_margins() -> Iterator[Case]:
    yield from each("hinge_embedding_loss", X, SIGNS)
    yield from each("hinge_embedding_loss", X, SIGNS, margin=0.3)
    yield Case("hinge_embedding_loss", X, SIGNS * 0)
    yield from each("margin_ranking_loss", X, Y, SIGNS)
    if IS_LATER:  # before PyTorch 2.14, losses at their bound had gradients
        yield from each("margin_ranking_loss", X, X, SIGNS)
        yield from each("cosine_embedding_loss", X * 0, Y, SIGNS[:, 0])
    yield from each("margin_ranking_loss", X, Y, SIGNS, margin=0.5)
    yield Case("margin_ranking_loss", X, Y, SIGNS[0])
    yield from each("cosine_embedding_loss", X, Y, SIGNS[:, 0])
    yield from each("cosine_embedding_loss", X, Y, SIGNS[:, 0], margin=0.5)
    yield from each("cosine_embedding_loss", X[0], Y[0], np.array(-1))
    yield Case("cosine_embedding_loss", X, Y, SIGNS[:, 0] * 0)
    yield Case("cosine_embedding_loss", X, Y, np.array(1))
    yield Case("cosine_embedding_loss", X, Y[:, :3], SIGNS[:, 0])
    for how in ({}, {"swap": True}, {"p": 1.0, "margin": 2.0}, {"p": 3.0, "eps": 0.1}):
        yield from each("triplet_margin_loss", X, Y, Z, **how)
        if set(how) <= {"swap", "margin"}:
            yield from each("triplet_margin_with_distance_loss", X, Y, Z, **how)
    yield from each("triplet_margin_loss", X[0], Y[0], Z[0])
    yield Case("triplet_margin_loss", X, Y, Z, margin=0)
    yield Case("triplet_margin_loss", X, Y, Z[0])
    yield Case("triplet_margin_with_distance_loss", X, Y, Z, margin=-1.0)
    yield Case("triplet_margin_with_distance_loss", X, Y, Z, reduction="other")
    for how in ({}, {"p": 2}, {"margin": 0.5}, {"weight": W5}):
        yield from each("multi_margin_loss", X, C4, **how)
    yield from each("multi_margin_loss", X[0], np.array(2))
    yield from each("multi_margin_loss", X[0], np.array([2]))
    yield from each("multi_margin_loss", X[:1], np.array(2))
    yield Case("multi_margin_loss", EMPTY, EMPTY_CLASSES, reduction="none")
    yield Case("multi_margin_loss", X, C4, p=3)
    yield Case("multi_margin_loss", X, C4[:3])
    yield Case("multi_margin_loss", X, C4 + 3)
    yield Case("multi_margin_loss", X, C4 - 1)
    yield Case("multi_margin_loss", X, C4.astype(np.float64))
    yield Case("multi_margin_loss", X, C4, weight=np.ones(3))
    yield Case("multi_margin_loss", X, C4, weight=np.ones((5, 1)))
    yield from each("multilabel_margin_loss", X, NAMED)
    yield from each("multilabel_margin_loss", X[0], NAMED[0])
    yield Case("multilabel_margin_loss", X[0, 0], np.array(0))
    yield Case("multilabel_margin_loss", X, NAMED[0])
    yield Case("multilabel_margin_loss", X, NAMED + 2)
    yield Case("multilabel_margin_loss", X, NAMED - 1)
    yield Case("multilabel_margin_loss", X, SIGNS)
    yield from each("multilabel_soft_margin_loss", X, Q)
    yield from each("multilabel_soft_margin_loss", X, Q, W5)
    yield from each("multilabel_soft_margin_loss", X[0], Q[0])
    yield Case("multilabel_soft_margin_loss", X[0, 0], Q[0, 0])


def of_classes() -> Iterator[Case]:
    for name in ("nll_loss", "cross_entropy"):
        for how in ({}, {"weight": W5}, {"ignore_index": 2}, {"weight": W5, "ignore_index": 2}):
            yield from each(name, X, C4, **how)
            yield from each(name, IMAGES, LABELS, **how)
            yield from each(name, X[0], np.array(3), **how)
        yield from each(name, X, IGNORED)
        yield from each(name, X, IGNORED * 0 - 100)
        yield from each(name, EMPTY, EMPTY_CLASSES)
        yield from each(name, X[:, :1], C4 * 0)
        yield Case(name, X, C4 + 1)
        yield Case(name, X, C4 - 1)
        yield Case(name, X, C4[:3])
        yield Case(name, X, LABELS)
        yield Case(name, X, C4, weight=np.ones(4))
        yield Case(name, X, C4, weight=W)
        yield Case(name, X, C4.astype(np.int32))
        yield Case(name, X, C4.astype(np.uint8))
        yield Case(name, X, C4.astype(np.float64))
        yield Case(name, X, C4, reduction="other")
        yield Case(name, X[0, 0], C4[0])
        yield Case(name, X.astype(np.int64), C4)
    for how in ({"label_smoothing": 0.1}, {"label_smoothing": 1.0}):
        for more in ({}, {"weight": W5}, {"weight": W5, "ignore_index": 2}):
            yield from each("cross_entropy", X, C4, **how, **more)
            yield from each("cross_entropy", IMAGES, LABELS, **how, **more)
            yield from each("cross_entropy", X, SOFT, **how, **more)
        yield from each("cross_entropy", X[0], np.array(3), **how)
        yield from each("cross_entropy", X, IGNORED, **how)
        yield from each("cross_entropy", IMAGES, SOFT_IMAGES, **how)
    yield from each("cross_entropy", X, SOFT)
    yield from each("cross_entropy", X, SOFT, weight=W5)
    yield from each("cross_entropy", X[0], SOFT[0])
    yield from each("cross_entropy", EMPTY, EMPTY)
    yield from each("cross_entropy", X * 1000, C4)
    yield Case("cross_entropy", X, C4, label_smoothing=-0.1)
    yield Case("cross_entropy", X, C4, label_smoothing=1.5)
    yield Case("cross_entropy", X, SOFT[:3])
    yield Case("cross_entropy", X, SOFT, ignore_index=1)
    yield Case("cross_entropy", X, SOFT, weight=np.ones(3))
    yield Case("cross_entropy", X, NAMED)


def of_sequences() -> Iterator[Case]:
    full, texts = np.array([7, 7, 7]), np.array([3, 3, 3])
    some, short = np.array([7, 5, 3]), np.array([2, 3, 1])
    for zero_infinity in (False, True):
        how: dict[str, Any] = {"zero_infinity": zero_infinity}
        yield from each("ctc_loss", TIMES, TEXTS, full, texts, **how)
        yield from each("ctc_loss", TIMES, TEXTS, some, short, **how)
        yield from each("ctc_loss", TIMES, TEXTS, np.array([7, 2, 3]), texts, **how)
        yield from each("ctc_loss", TIMES, TEXTS, np.array([7, 0, 0]), np.array([0, 3, 0]), **how)
    yield from each("ctc_loss", TIMES, 4 - TEXTS % 4 - 1, full, texts, blank=4)
    yield from each("ctc_loss", TIMES, TEXTS.reshape(-1)[:6], some, short)
    yield from each("ctc_loss", TIMES, TEXTS.reshape(-1)[:6], (7, 5, 3), (2, 3, 1))
    yield from each("ctc_loss", TIMES, TEXTS, [7, 5, 3], [2, 3, 1])
    yield from each("ctc_loss", TIMES[:, 0], TEXTS[0], np.array(7), np.array(3))
    yield from each("ctc_loss", TIMES[:, 0], TEXTS[0], np.array([7]), np.array([2]))
    yield from each("ctc_loss", TIMES, TEXTS.astype(np.int32), some.astype(np.int32), short)
    yield Case("ctc_loss", TIMES, TEXTS, np.array([8, 7, 7]), texts)
    yield Case("ctc_loss", TIMES, TEXTS, np.array([-1, 7, 7]), texts)
    yield Case("ctc_loss", TIMES, TEXTS, full, np.array([4, 3, 3]))
    yield Case("ctc_loss", TIMES, TEXTS, full, np.array([-1, 3, 3]))
    yield Case("ctc_loss", TIMES, TEXTS, full[:2], texts)
    yield Case("ctc_loss", TIMES, TEXTS, full, texts[:2])
    yield Case("ctc_loss", TIMES, TEXTS, full.astype(np.float64), texts)
    yield Case("ctc_loss", TIMES, TEXTS.reshape(-1), full, short)
    yield Case("ctc_loss", TIMES, TEXTS[:2], full, texts)
    yield Case("ctc_loss", TIMES, TEXTS[None], full, texts)
    yield Case("ctc_loss", TIMES[0, 0], TEXTS[0], full, texts)
    yield Case("ctc_loss", TIMES, TEXTS, full, texts, blank=5)
    yield Case("ctc_loss", TIMES, TEXTS, full, texts, blank=-1)
    yield Case("ctc_loss", TIMES, TEXTS, full, texts, reduction="other")
    yield Case("ctc_loss", TIMES[:0], TEXTS, full * 0, texts * 0)
    yield Case("ctc_loss", TIMES[:, :0], TEXTS[:0], full[:0], texts[:0])


def of_linear() -> Iterator[Case]:
    weight, bias = rng.normal(size=(6, 5)), rng.normal(size=6)
    for how in ({}, {"linear_bias": bias}, {"weight": W[:, :1].repeat(6, 1)[0]}):
        yield from each("linear_cross_entropy", X, weight, C4, **how)
    yield from each("linear_cross_entropy", X, weight, C4, label_smoothing=0.2, ignore_index=2)
    yield from each("linear_cross_entropy", X[0], weight, np.array(3))
    yield from each("linear_cross_entropy", X, weight, np.full((4, 6), 1 / 6))
    places = rng.normal(size=(6, 2, 5))
    yield from each("linear_cross_entropy", X, places, np.array([[0, 1], [2, 3], [4, 5], [0, 0]]))
    yield Case("linear_cross_entropy", X, weight[:, :3], C4)
    yield Case("linear_cross_entropy", X, bias, C4)
    yield Case("linear_cross_entropy", X[0], places, C4)
    yield Case("linear_cross_entropy", X, weight, C4, linear_bias=bias[:3])
    yield Case("linear_cross_entropy", X, weight, np.full((4, 6), 0.1), ignore_index=1)
    yield Case("linear_cross_entropy", IMAGES, weight, C4)


CASES = [
    *of_elements(), *of_probabilities(), *of_margins(), *of_classes(), *of_sequences(),
    *of_linear(),
]  # fmt: skip


def outcome(library: Any, case: Case, dtype: str = "float64", functional: bool = True) -> Any:
    """(values, gradients, texts of warnings), or the error."""
    leaves: list[Any] = []

    def tensor(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype != np.float64:
            return library.from_numpy(value.copy())
        made = library.from_numpy(value.copy()).to(getattr(library, dtype))
        leaves.append(made.requires_grad_(len(leaves) == 0 or case.name in TARGETS_WITH_GRADIENT))
        return made

    args = [tensor(a) for a in case.args]
    how = {name: tensor(value).detach() if isinstance(value, np.ndarray) else value
           for name, value in case.how.items()}  # fmt: skip
    home = library.nn.functional if functional else library
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            loss = getattr(home, case.name)(*args, **how)
            if loss.requires_grad:
                slopes = library.linspace(1, 2, loss.numel(), dtype=library.float64)
                loss.backward(slopes.reshape(loss.shape).to(loss.dtype))
        except Exception as error:
            return error
    found = [loss.detach(), *(leaf.grad for leaf in leaves)]
    numbers = [None if t is None else t.double().numpy() for t in found]
    kinds = sorted({str(w.message)[:20] for w in caught if w.category is UserWarning})
    return numbers, (str(loss.dtype).rpartition(".")[2], tuple(loss.shape)), kinds


TARGETS_WITH_GRADIENT = {
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "gaussian_nll_loss", "linear_cross_entropy",
    "margin_ranking_loss", "cosine_embedding_loss", "kl_div",
}  # fmt: skip

# What PyTorch leaves to chance or refuses without need, by the start of a case.
DIFFERENT = {
    "huber_loss[(4,5),(4,5)]{}1": "PyTorch has no gradient for integer targets",
    "cross_entropy[(4,5),(4,)]{'label_smoothing':-0.1}": "PyTorch ignores negative smoothing",
    "soft_margin_loss[(4,5),(4,5)]{}1": "PyTorch overflows",
    "multi_margin_loss[(0,5)": "PyTorch's mean of nothing is not initialized",
}


def compare(ours: Any, theirs: Any, tolerance: float) -> None:
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"PyTorch raises {theirs!r}"
        assert isinstance(theirs, Exception), f"Rushlight raises {ours!r}"
        same = type(ours) is type(theirs) or isinstance(ours, type(theirs))
        assert same, f"{ours!r} instead of {theirs!r}"
        return
    assert ours[1] == theirs[1]
    assert ours[2] == theirs[2]
    for mine, other in zip(ours[0], theirs[0], strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def skip_different(request: pytest.FixtureRequest) -> None:
    for name, reason in DIFFERENT.items():
        if f"[{name}" in request.node.name:
            pytest.skip(reason)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_values_gradients_warnings_and_errors_are_pytorchs(
    case: Case, request: pytest.FixtureRequest
) -> None:
    skip_different(request)
    compare(outcome(torch, case), outcome(pytorch, case), 1e-8)


HALVES = [
    case for case in CASES
    if case.name != "ctc_loss" and case.how.get("reduction") != "other" and len(case.args) > 1
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("case", HALVES, ids=repr)
def test_smaller_dtypes_are_as_close_as_their_digits(
    case: Case, dtype: str, request: pytest.FixtureRequest
) -> None:
    theirs = outcome(pytorch, case, dtype)
    ours = outcome(torch, case, dtype)
    if isinstance(theirs, NotImplementedError):
        return  # PyTorch has no kernels for some halves on the CPU
    skip_different(request)
    compare(ours, theirs, {"float16": 2e-2, "bfloat16": 1.5e-1, "float32": 2e-5}[dtype])


LEGACY = [
    ("mse_loss", X, Y), ("l1_loss", X, Y), ("smooth_l1_loss", X, Y), ("kl_div", LOG_P, Q),
    ("binary_cross_entropy", P, Q), ("binary_cross_entropy_with_logits", X, Q),
    ("soft_margin_loss", X, SIGNS), ("poisson_nll_loss", X, Q),
    ("hinge_embedding_loss", X, SIGNS), ("margin_ranking_loss", X, Y, SIGNS),
    ("cosine_embedding_loss", X, Y, SIGNS[:, 0]), ("triplet_margin_loss", X, Y, Z),
    ("multi_margin_loss", X, C4), ("multilabel_margin_loss", X, NAMED),
    ("multilabel_soft_margin_loss", X, Q), ("nll_loss", X, C4), ("cross_entropy", X, C4),
]  # fmt: skip
FLAGS = [(a, b) for a in (None, True, False) for b in (None, True, False)]


@pytest.mark.parametrize("case", LEGACY, ids=lambda case: case[0])
def test_former_arguments_choose_the_reduction_and_warn(case: tuple[Any, ...]) -> None:
    for size_average, reduce in FLAGS:
        how = {"size_average": size_average, "reduce": reduce}
        call = Case(*case, **how)
        compare(outcome(torch, call), outcome(pytorch, call), 1e-9)


LOSSES = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss",
    "HingeEmbeddingLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
    "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
]  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_modules_take_former_arguments(name: str) -> None:
    for size_average, reduce in FLAGS:
        results = []
        for library in (torch, pytorch):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                loss = getattr(library.nn, name)(size_average=size_average, reduce=reduce)
            results.append((loss.reduction, [str(w.message) for w in caught]))
        assert results[0] == results[1]


def test_positions_of_arguments_are_pytorchs() -> None:
    for library in (torch, pytorch):
        x, y = library.from_numpy(X), library.from_numpy(Y)
        with pytest.warns(UserWarning, match="reduction='sum'"):
            total = library.nn.functional.mse_loss(x, y, False)
        np.testing.assert_allclose(total.item(), ((X - Y) ** 2).sum())
        with pytest.warns(UserWarning, match="reduction='none'"):
            assert library.nn.CrossEntropyLoss(None, None, -100, False).reduction == "none"


MODULES: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    ("CTCLoss", {"blank": 0, "zero_infinity": True}, (TIMES, TEXTS, (7, 5, 3), (2, 3, 1))),
    ("GaussianNLLLoss", {"full": True, "eps": 1e-3}, (X, Y, W)),
    ("MultiLabelMarginLoss", {"reduction": "sum"}, (X, NAMED)),
    ("MultiLabelSoftMarginLoss", {"weight": W5}, (X, Q)),
    ("MultiMarginLoss", {"p": 2, "margin": 0.5, "weight": W5}, (X, C4)),
    ("PoissonNLLLoss", {"log_input": False, "full": True, "eps": 1e-3}, (P, W)),
    ("SoftMarginLoss", {"reduction": "none"}, (X, SIGNS)),
    ("TripletMarginLoss", {"p": 1.0, "swap": True}, (X, Y, Z)),
    ("TripletMarginWithDistanceLoss", {"margin": 2.0, "swap": True}, (X, Y, Z)),
    ("HuberLoss", {"delta": 0.5}, (X, Y)),
    ("CrossEntropyLoss", {"weight": W5, "label_smoothing": 0.1, "ignore_index": 2}, (X, C4)),
    ("BCEWithLogitsLoss", {"weight": W5, "pos_weight": W5}, (X, Q)),
    ("KLDivLoss", {"log_target": True, "reduction": "batchmean"}, (LOG_P, LOG_P)),
    ("LinearCrossEntropyLoss", {"in_features": 5, "num_classes": 6, "bias": True}, (X, C4)),
    ("AdaptiveLogSoftmaxWithLoss", {"in_features": 5, "n_classes": 9, "cutoffs": [2, 4],
                                    "div_value": 2.0, "head_bias": True}, (X, C4)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "inputs"), MODULES, ids=[m[0] for m in MODULES])
def test_modules_are_pytorchs(name: str, settings: dict[str, Any], inputs: tuple[Any, ...]) -> None:
    results, modules = [], []
    for library in (torch, pytorch):
        made = {
            k: library.from_numpy(v) if isinstance(v, np.ndarray) else v
            for k, v in settings.items()
        }
        module = getattr(library.nn, name)(**made).double()
        modules.append(module)
        state = {k: v.numpy().copy() for k, v in modules[0].state_dict().items()}
        module.load_state_dict({k: library.from_numpy(v) for k, v in state.items()})
        tensors = [library.from_numpy(i.copy()) if isinstance(i, np.ndarray) else i for i in inputs]
        tensors[0].requires_grad_()
        out = module(*tensors)
        loss = out if isinstance(out, library.Tensor) else out.loss
        loss.sum().backward()
        gradients = [p.grad.numpy() for p in module.parameters()]
        results.append([loss.detach().numpy(), tensors[0].grad.numpy(), *gradients])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    own = [m.__dict__.keys() - m._parameters.keys() for m in modules]
    assert {k for k in own[1] if k[0] != "_"} <= {k for k in own[0] if k[0] != "_"}
    assert repr(modules[0]) == repr(modules[1])
