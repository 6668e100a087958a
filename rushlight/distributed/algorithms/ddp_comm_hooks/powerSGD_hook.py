"""PowerSGD: sends low-rank approximations of gradients (Vogels et al. 2019).

A matrix M (n, m) of gradients becomes P Q^T, where P (n, r) and Q (m, r) are averaged instead of M:
one step of the power iteration, with orthonormal P. What is lost is added to the next gradient.
"""
# ruff: noqa: N999 (PyTorch's name)

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import _average
from rushlight.distributed.grad_bucket import GradBucket
from rushlight.distributed.groups import default_group
from rushlight.futures import Future

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What powerSGD_hook keeps between iterations, and its options.

    Args:
        process_group: the processes; None for all.
        matrix_approximation_rank: r, small: 1 to 4 as a rule.
        start_powerSGD_iter: before this iteration gradients are averaged as they are; at least 2
            with error feedback or warm start, because buckets change after the first.
        min_compression_rate: matrices of which less would be saved are sent as they are.
        use_error_feedback: add what was lost to the next gradient.
        warm_start: begin with the Q of the iteration before.
        orthogonalization_epsilon: no effect; QR decompositions need none.
        random_seed: of the first Q; the same in all processes.
        compression_stats_logging_frequency: no effect.
        batch_tensors_with_same_shape: no effect.

    Raises:
        ValueError: if start_powerSGD_iter is too small.
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.generator = rl.Generator().manual_seed(random_seed)
        self.error_dict: dict[int, Tensor] = {}  # by bucket
        self.q_memory_dict: dict[tuple[int, int], Tensor] = {}  # by bucket and matrix
        self.iter = 0

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__, generator=self.generator.get_state())
        del state["process_group"]  # processes of another run
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, process_group=default_group())
        self.generator = rl.Generator()
        self.generator.set_state(state["generator"])

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts an iteration, at its last bucket."""
        self.iter += bucket.is_last()

    def _saves_enough(self, n: int, m: int) -> bool:
        """Whether P and Q are sufficiently smaller than the matrix."""
        rank = min(n, m, self.matrix_approximation_rank)
        return (n + m) * rank * self.min_compression_rate < n * m

    def _factor(self, key: tuple[int, int], like: Tensor) -> Tensor:
        """The Q to begin with, (m, r), for a matrix (n, m); the same in all processes."""
        n, m = like.shape
        rank = min(n, m, self.matrix_approximation_rank)
        kept = self.q_memory_dict.get(key)
        if self.warm_start and kept is not None and kept.shape == (m, rank):
            return kept
        return rl.randn(m, rank, generator=self.generator).to(like)


def _average_all(state: PowerSGDState, tensors: Sequence[Tensor]) -> None:
    """Averages tensors over the processes, in place."""
    flat = rl.cat([tensor.reshape(-1) for tensor in tensors])
    _average(state.process_group, flat).wait()
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view(tensor.shape))


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Averages each matrix of gradients by its low-rank approximation, vectors as they are.

    Tensors of more dims are matrices of their first dim and all others.

    Args:
        state: options, and what is kept between iterations.
        bucket: the gradients.

    Returns:
        The future of the averages.

    Example:
        >>> from rushlight.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD
        >>> state = powerSGD.PowerSGDState(None, start_powerSGD_iter=2)
        >>> # ddp.register_comm_hook(state, powerSGD.powerSGD_hook)
    """
    buffer = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _average(state.process_group, buffer)
    lost = state.error_dict.get(bucket.index())
    if state.use_error_feedback and lost is not None:
        buffer += lost
    wanted = buffer.clone()
    plain, matrices = [], []
    for grad in bucket.gradients():
        is_matrix = grad.dim() > 1 and grad.numel() > 0
        matrix = grad.flatten(1) if is_matrix else grad
        if is_matrix and state._saves_enough(*matrix.shape):
            matrices.append((grad, matrix))
        else:
            plain.append(grad)
    if plain:
        _average_all(state, plain)
    keys = [(bucket.index(), i) for i in range(len(matrices))]
    ps, qs = [], []
    if matrices:
        for key, (_, matrix) in zip(keys, matrices, strict=True):
            qs.append(rl.qr(state._factor(key, matrix))[0])
            ps.append(matrix @ qs[-1])
        _average_all(state, ps)
        ps = [rl.qr(p)[0] for p in ps]
        qs = [matrix.t() @ p for (_, matrix), p in zip(matrices, ps, strict=True)]
        _average_all(state, qs)
    for key, (grad, matrix), p, q in zip(keys, matrices, ps, qs, strict=True):
        grad.copy_((p @ q.t()).view(matrix.shape).view(grad.shape))
        state.q_memory_dict[key] = q
    if state.use_error_feedback:  # what plain gradients lost adds up to 0 over the processes
        state.error_dict[bucket.index()] = wanted - buffer
    state.maybe_increase_iter(bucket)
    done = Future()
    done.set_result(buffer)
    return done


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Averages the gradients of a bucket as one square matrix, by its low-rank approximation.

    This is faster than powerSGD_hook, and loses more.

    Args:
        state: options, and what is kept between iterations.
        bucket: the gradients.

    Returns:
        The future of the averages.
    """
    buffer = bucket.buffer()
    count = buffer.numel()
    side = math.isqrt(count - 1) + 1
    padded = buffer.new_zeros(side * side)
    padded[:count] = buffer
    square = GradBucket(bucket.index(), padded, [padded.view(side, side)], bucket.is_last())
    averaged = powerSGD_hook(state, square)
    return averaged.then(lambda done: buffer.copy_(done.value()[:count]))
