"""What goes from stage to stage: activations forward, their gradients backward.

Owns the messages between ranks, and what the receiver must know of them: the first microbatch of
a step comes with shapes and dtypes, all others are like it. Nothing here waits for a receiver
before the step ends, so ranks that send to each other do not block each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed import Work
from rushlight.distributed.calls import DTYPE_NUMBERS, DTYPES
from rushlight.distributed.pipelining.stage import PipelineStage

__all__ = ["Messages"]

_FIRST_TAG = 1 << 40  # above those of programs that send messages in the same group
_SHAPES, _FORWARD, _BACKWARD = range(3)


class _Kind(NamedTuple):
    """What a tensor is like."""

    shape: tuple[int, ...]
    dtype: rl.dtype
    requires_grad: bool

    def __str__(self) -> str:
        return f"{self.shape} of {self.dtype}"


class Messages:
    """The messages of a rank.

    Args:
        stages: those of this rank, by index.
        rank_of: the rank of each stage.
        n_microbatches: of a step.
    """

    def __init__(
        self, stages: dict[int, PipelineStage], rank_of: dict[int, int], n_microbatches: int
    ) -> None:
        self._stages = stages
        self._rank_of = rank_of
        self._count = n_microbatches
        self._group: Any = next(iter(stages.values())).group
        self._sent: dict[int, list[_Kind]] = {}  # by the stage that returned such tensors
        self._received: dict[int, list[_Kind]] = {}  # by the stage that gets them
        self.begin()

    def begin(self) -> None:
        """Begins a step."""
        self._told: set[int] = set()  # receivers whose shapes were told or heard in this step
        self._coming: dict[tuple[int, int, int], tuple[list[Tensor], list[Work]]] = {}
        self._going: deque[Work] = deque()

    def end(self) -> None:
        """Waits until all has been sent."""
        while self._going:
            self._going.popleft().wait()

    # Forward

    def send_outputs(self, stage: int, i: int, outputs: Sequence[Tensor], trains: bool) -> None:
        """Sends what a stage returned for microbatch i to the next one."""
        kinds = [_Kind(tuple(t.shape), t.dtype, t.requires_grad and trains) for t in outputs]
        receiver = stage + 1
        if receiver in self._stages:
            self._sent[stage] = self._received[receiver] = kinds
            copies = [output.detach() for output in outputs]
            self._coming[receiver, _FORWARD, i] = copies, []
            return
        if receiver not in self._told:
            self._told.add(receiver)
            self._tell(receiver, kinds, self._sent.get(stage) == kinds)
            self._sent[stage] = kinds
        elif kinds != self._sent[stage]:
            raise ValueError(
                f"step: stage {stage} returns {', '.join(map(str, kinds))} for microbatch {i}, but "
                f"{', '.join(map(str, self._sent[stage]))} for the first. All microbatches of a "
                "step must have the same shapes and dtypes. Give batches that the number of "
                f"microbatches, {self._count}, divides."
            )
        self._send(receiver, _FORWARD, i, outputs)

    def expect_inputs(self, stage: int, i: int) -> None:
        """Begins to receive what a stage gets for microbatch i."""
        if stage not in self._told:
            self._told.add(stage)
            self._hear(stage)
        self._receive(stage, stage - 1, _FORWARD, i, self._received[stage])

    def inputs(self, stage: int, i: int) -> list[Tensor]:
        """Waits for what a stage gets for microbatch i: leaves."""
        tensors = self._take(stage, _FORWARD, i)
        for tensor, kind in zip(tensors, self._received[stage], strict=True):
            tensor.requires_grad_(kind.requires_grad)
        return tensors

    # Backward

    def send_input_grads(self, stage: int, i: int, grads: Sequence[Tensor]) -> None:
        """Sends the gradients of those inputs of a stage that require them to the one before."""
        if stage - 1 in self._stages:
            self._coming[stage - 1, _BACKWARD, i] = list(grads), []
        else:
            self._send(stage - 1, _BACKWARD, i, grads)

    def expect_output_grads(self, stage: int, i: int) -> None:
        """Begins to receive the gradients of what a stage returned for microbatch i."""
        kinds = [kind for kind in self._sent[stage] if kind.requires_grad]
        self._receive(stage, stage + 1, _BACKWARD, i, kinds)

    def output_grads(self, stage: int, i: int) -> list[Tensor]:
        """Waits for the gradients of those outputs of a stage that require them."""
        return self._take(stage, _BACKWARD, i)

    # Messages

    def _tag(self, receiver: int, what: int, i: int) -> int:
        return _FIRST_TAG + (receiver * 3 + what) * self._count + i

    def _send(self, receiver: int, what: int, i: int, tensors: Sequence[Tensor]) -> None:
        tag, rank = self._tag(receiver, what, i), self._rank_of[receiver]
        for tensor in tensors:
            work = dist.isend(tensor, group=self._group, tag=tag, group_dst=rank)
            assert work is not None
            self._going.append(work)
        while self._going and self._going[0].is_completed():
            self._going.popleft().wait()  # lets go of the tensor, or raises

    def _receive(
        self, receiver: int, sender: int, what: int, i: int, kinds: Sequence[_Kind]
    ) -> None:
        tag, rank = self._tag(receiver, what, i), self._rank_of[sender]
        device = self._stages[receiver].device
        tensors = [rl.empty(kind.shape, dtype=kind.dtype, device=device) for kind in kinds]
        works = [
            dist.irecv(tensor, group=self._group, tag=tag, group_src=rank) for tensor in tensors
        ]
        self._coming[receiver, what, i] = tensors, [work for work in works if work is not None]

    def _take(self, receiver: int, what: int, i: int) -> list[Tensor]:
        tensors, works = self._coming.pop((receiver, what, i))
        for work in works:
            work.wait()
        return tensors

    def _tell(self, receiver: int, kinds: Sequence[_Kind], is_known: bool) -> None:
        """Sends the next stage what tensors will come: how many numbers, 0 for as before."""
        numbers: list[int] = []
        for shape, dtype, requires_grad in () if is_known else kinds:
            numbers += [DTYPE_NUMBERS[dtype], requires_grad, len(shape), *shape]
        messages = [rl.tensor([len(numbers)]), rl.tensor(numbers, dtype=rl.int64)]
        self._send(receiver, _SHAPES, 0, messages[: 1 if is_known else 2])

    def _hear(self, stage: int) -> None:
        """Receives what _tell has sent."""
        tag, rank = self._tag(stage, _SHAPES, 0), self._rank_of[stage - 1]
        count = rl.empty(1, dtype=rl.int64)
        dist.recv(count, group=self._group, tag=tag, group_src=rank)
        if not count.item():
            return
        numbers = rl.empty(int(count.item()), dtype=rl.int64)
        dist.recv(numbers, group=self._group, tag=tag, group_src=rank)
        left = deque(numbers.tolist())
        kinds = self._received[stage] = []
        while left:
            dtype, requires_grad, dims = (left.popleft() for _ in range(3))
            shape = tuple(left.popleft() for _ in range(dims))
            kinds.append(_Kind(shape, DTYPES[dtype], bool(requires_grad)))
