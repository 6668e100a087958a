"""ctc_loss on CUDA in the sizes that take other paths of its kernels: more states than a block has
threads or than shared memory holds, repeated labels, and samples that end early.
"""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as rl
from rushlight.nn import functional as F

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")


def batch(times: int, samples: int, classes: int, labels: int, dtype: Any = rl.float32) -> Any:
    generator = rl.Generator().manual_seed(times)
    logits = rl.randn((times, samples, classes), generator=generator, dtype=rl.float64)
    targets = rl.randint(1, classes, (samples, labels), generator=generator)
    return logits.to(dtype), targets


def run(device: str, logits: Any, targets: Any, *args: Any, **how: Any) -> list[Any]:
    point = logits.to(device).detach().requires_grad_()
    loss = F.ctc_loss(point.log_softmax(-1), targets.to(device), *args, reduction="none", **how)
    weights = rl.arange(1, loss.numel() + 1, dtype=loss.dtype).to(device)
    return [loss, *rl.autograd.grad(loss, point, weights)]


def check(logits: Any, targets: Any, *args: Any, tolerance: float = 1e-10, **how: Any) -> None:
    """Losses and gradients against those of the CPU in float64."""
    expected = run("cpu", logits.double(), targets, *args, **how)
    for mine, reference in zip(run("cuda", logits, targets, *args, **how), expected, strict=True):
        assert mine.device.type == "cuda"
        assert mine.dtype is logits.dtype
        rl.testing.assert_close(mine.cpu().double(), reference, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(rl.float64, 1e-10), (rl.float32, 1e-4)])
@pytest.mark.parametrize(("times", "labels"), [(7, 2), (40, 15), (90, 40)])
def test_ctc_loss_of_several_warps(times: int, labels: int, dtype: Any, tolerance: float) -> None:
    logits, targets = batch(times, 3, 37, labels, dtype)
    check(logits, targets, (times, times - 5, times), (labels, labels, 1), tolerance=tolerance)


def test_labels_that_come_again_are_summed_once() -> None:
    logits, targets = batch(50, 4, 3, 20, rl.float64)
    check(logits, targets, (50, 50, 45, 50), (20, 19, 20, 0))
    # The blank may stand among the labels.
    check(logits, targets, (50, 50, 45, 50), (20, 19, 20, 0), blank=2)


def test_more_states_than_threads() -> None:
    logits, targets = batch(530, 1, 700, 515, rl.float64)
    check(logits, targets, (530,), (515,))


def test_more_states_than_shared_memory_holds() -> None:
    logits, targets = batch(6, 2, 9, 4000, rl.float64)
    check(logits, targets, (6, 5), (2, 3))  # rows of the longest target, used or not
    check(logits, targets, (6, 5), (4000, 3), zero_infinity=True)


def test_samples_without_a_way_and_without_times() -> None:
    logits, targets = batch(6, 4, 5, 9, rl.float64)
    for zero_infinity in (False, True):
        how = {"zero_infinity": zero_infinity}
        losses, grads = run("cuda", logits, targets, (6, 6, 0, 0), (9, 2, 0, 3), **how)
        expected, expected_grads = run("cpu", logits, targets, (6, 6, 0, 0), (9, 2, 0, 3), **how)
        rl.testing.assert_close(losses.cpu(), expected)
        rl.testing.assert_close(grads.cpu(), expected_grads, equal_nan=True)


def test_targets_in_a_row_and_lengths_on_the_device() -> None:
    logits, targets = batch(12, 3, 6, 4, rl.float64)
    lengths, times = rl.tensor([4, 1, 3]), rl.tensor([12, 9, 12])
    row = rl.cat([targets[n, : int(length)] for n, length in enumerate(lengths)])
    check(logits, row, times, lengths)
    for how in ("mean", "sum"):
        mine, reference = (
            F.ctc_loss(
                logits.to(device).log_softmax(-1),
                *(t.to(device) for t in (row, times, lengths)),
                reduction=how,
            )
            for device in ("cuda", "cpu")
        )
        rl.testing.assert_close(mine.cpu(), reference)


def test_arguments_are_checked() -> None:
    logits, targets = batch(6, 2, 5, 3)
    x = logits.cuda()
    with pytest.raises(RuntimeError, match="value at most 6, but got value 7"):
        F.ctc_loss(x, targets.cuda(), rl.tensor([7, 6]).cuda(), rl.tensor([3, 3]).cuda())
    with pytest.raises(RuntimeError, match="or longer rows for these target_lengths"):
        F.ctc_loss(x, targets.cuda(), (6, 6), (3, 4))
    with pytest.raises(RuntimeError, match="expected the sum of target_lengths, 6"):
        F.ctc_loss(x, targets.cuda()[0], (6, 6), (3, 3))
    # A label would have to be waited for.
    losses, grads = run("cuda", logits, rl.tensor([[1, 9, 2], [1, 3, 2]]), (6, 6), (3, 3))
    assert losses.isnan().tolist() == [True, False]
    assert grads.isnan().any((0, 2)).tolist() == [True, False]
