"""Post-local SGD: after a while gradients are averaged within machines only (Lin et al. 2018).

What the machines then learn apart, a PeriodicModelAverager brings together; see model_averaging.
"""
# ruff: noqa: N999 (PyTorch's name)

from __future__ import annotations

from typing import Any

from rushlight.distributed import new_subgroups
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import _average
from rushlight.distributed.grad_bucket import GradBucket
from rushlight.futures import Future

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The options of post_localSGD_hook, and how far it is.

    Args:
        process_group: the processes among which gradients are averaged first; None for all.
        subgroup: those among which they are averaged then; None for those of a machine.
        start_localSGD_iter: the iteration from which on that is so.
        post_local_gradient_allreduce: whether gradients are averaged then at all.
    """

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts an iteration with its last bucket."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future:
    """Averages over all processes before start_localSGD_iter, and within the subgroup afterwards.

    Args:
        state: options, and the number of the iteration.
        bucket: the gradients.

    Returns:
        The future of the averages.

    Example:
        >>> from rushlight.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as hooks
        >>> state = hooks.PostLocalSGDState(None, None, start_localSGD_iter=100)
        >>> # ddp.register_comm_hook(state, hooks.post_localSGD_hook)
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return _average(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        unchanged = Future()
        unchanged.set_result(bucket.buffer())
        return unchanged
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return _average(state.subgroup, bucket.buffer())
