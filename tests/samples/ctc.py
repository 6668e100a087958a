"""Samples of ctc_loss: the reference adds up the probabilities of all sequences that read so."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.special

from samples import Sample, normal, samples


def reads(sequence: tuple[int, ...], blank: int) -> tuple[int, ...]:
    return tuple(c for c, _ in itertools.groupby(sequence) if c != blank)


def loss_of(log_probs: np.ndarray, target: np.ndarray, blank: int) -> float:
    times, classes = log_probs.shape
    ways = [
        sum(log_probs[t, c] for t, c in enumerate(sequence))
        for sequence in itertools.product(range(classes), repeat=times)
        if reads(sequence, blank) == tuple(target)
    ]
    return float(-scipy.special.logsumexp(ways)) if ways else np.inf


def ctc_ref(
    logits: np.ndarray, targets: np.ndarray, input_lengths: Any, target_lengths: Any,
    blank: int = 0, reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    log_probs = scipy.special.log_softmax(logits, -1)
    batched = log_probs.ndim == 3
    log_probs = log_probs if batched else log_probs[:, None]
    times, lengths = np.atleast_1d(input_lengths), np.atleast_1d(target_lengths)
    starts = np.cumsum([0, *lengths[:-1]])
    losses = []
    for n in range(log_probs.shape[1]):
        row = targets[n] if targets.ndim == 2 else targets[starts[n] :]
        losses.append(loss_of(log_probs[: times[n], n], row[: lengths[n]], blank))
    result = np.array(losses)
    if zero_infinity:
        result[np.isinf(result)] = 0
    if reduction == "mean":
        return (result / np.maximum(lengths, 1)).mean()
    if reduction == "sum":
        return result.sum()
    return result if batched else result[0]


def of_logits(op: Any, logits: Any, *args: Any, **how: Any) -> Any:
    return op(logits.log_softmax(-1), *args, **how)


def rows() -> Iterator[Sample]:
    targets = np.array([[1, 2], [2, 2], [1, 0]])
    lengths = np.array([5, 4, 3]), np.array([2, 2, 1])
    for reduction in ("none", "mean", "sum"):
        yield Sample(normal(5, 3, 3), targets, *lengths, reduction=reduction)
    yield Sample(normal(5, 3, 3), targets % 2, *lengths, blank=2)
    yield Sample(normal(4, 2, 3), np.array([1, 2, 1]), np.array([4, 3]), np.array([1, 2]))
    yield Sample(normal(4, 2, 3), np.array([[1], [2]]), np.array([4, 3]), np.array([0, 1]))
    yield Sample(
        normal(4, 2, 3), np.array([[1, 1], [2, 1]]), np.array([4, 1]), np.array([2, 2]),
        zero_infinity=True,
    )  # fmt: skip
    yield Sample(normal(4, 3), np.array([1, 2]), np.array(4), np.array(2), reduction="none")


HOW: dict[str, Any] = {
    "ref": ctc_ref, "constant": (1, 2, 3), "seen_as": of_logits, "second": False,
}  # fmt: skip


@samples("nn.functional.ctc_loss", **HOW)
def ctc_loss() -> Iterator[Sample]:
    yield from rows()


@samples("nn.functional.ctc_loss.IntList", **HOW)
def ctc_loss_of_ints() -> Iterator[Sample]:
    yield Sample(normal(4, 2, 3), np.array([[1, 1], [2, 1]]), (4, 3), (2, 1))
    yield Sample(normal(4, 3), np.array([1, 2]), [4], [2], reduction="sum")
