"""Samples of losses over classes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.special

from samples import Sample, integers, normal, samples, uniform


def class_axis(x: np.ndarray) -> int:
    return 0 if x.ndim == 1 else 1


def nll_ref(
    x: np.ndarray,
    target: np.ndarray,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> np.ndarray:
    axis = class_axis(x)
    kept = target != ignore_index
    classes = np.where(kept, target, 0)
    picked = np.take_along_axis(x, np.expand_dims(classes, axis), axis).squeeze(axis)
    scale = (np.ones(x.shape[axis]) if weight is None else weight)[classes] * kept
    loss = -picked * scale
    if reduction == "none":
        return loss
    return loss.sum() / scale.sum() if reduction == "mean" else loss.sum()


def cross_entropy_ref(
    x: np.ndarray, target: np.ndarray, weight: Any = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> np.ndarray:  # fmt: skip
    axis = class_axis(x)
    log_probs = scipy.special.log_softmax(x, axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    weights = (np.ones(x.shape[axis]) if weight is None else weight).reshape(shape)
    count = x.shape[axis]
    if target.dtype == np.float64:
        mixed = target * (1 - label_smoothing) + label_smoothing / count
        loss = -(log_probs * mixed * weights).sum(axis)
        return {"none": loss, "sum": loss.sum(), "mean": loss.sum() / loss.size}[reduction]
    kept = target != ignore_index
    hard = nll_ref(log_probs, target, weight, ignore_index, reduction)
    uniform = -(log_probs * weights).sum(axis) * kept
    if reduction == "sum":
        uniform = uniform.sum()
    if reduction == "mean":
        scale = weights.reshape(-1)[np.where(kept, target, 0)] * kept
        uniform = uniform.sum() / scale.sum()
    return hard * (1 - label_smoothing) + uniform * label_smoothing / count


def class_samples() -> Iterator[Any]:
    yield normal(4, 3), integers(0, 3, 4)
    yield Sample(normal(4, 3), np.array([0, 2, -100, 1]), uniform(3, low=0.5, high=2.0))
    yield Sample(normal(2, 3, 4), integers(0, 3, 2, 4), reduction="sum")
    yield Sample(normal(2, 3, 2, 2), integers(0, 3, 2, 2, 2), reduction="none")
    yield Sample(normal(4, 3), np.array([0, 1, 1, 2]), ignore_index=1)
    yield normal(3), np.array(2)


samples("nn.functional.nll_loss", ref=nll_ref, constant=(2,))(class_samples)


@samples("nn.functional.cross_entropy", ref=cross_entropy_ref, constant=(2,))
def cross_entropy() -> Iterator[Any]:
    yield from class_samples()
    yield Sample(normal(4, 3), np.array([0, 2, -100, 1]), label_smoothing=0.2)
    yield Sample(
        normal(4, 3), integers(0, 3, 4), uniform(3, low=0.5, high=2.0), label_smoothing=0.1
    )
    yield Sample(normal(4, 3), scipy.special.softmax(normal(4, 3), 1), reduction="mean")
    yield Sample(
        normal(2, 3, 2), scipy.special.softmax(normal(2, 3, 2), 1), uniform(3), reduction="none"
    )
