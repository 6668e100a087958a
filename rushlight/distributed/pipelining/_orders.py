"""What each rank of a pipeline does in which order.

Owns the orders of the schedules, and the check that ranks which follow them never wait for each
other in a circle. It knows nothing of tensors: stages and microbatches are numbers here.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import NamedTuple

Orders = dict[int, list["_Action"]]  # by rank

__all__ = [
    "_Action",
    "_ComputationType",
    "forwards_of",
    "interleaved",
    "loop_of",
    "looped_breadth_first",
    "one_forward_one_backward",
    "v_of",
    "with_receives",
    "with_whole_backwards",
    "zero_bubble_v",
]


class _ComputationType(StrEnum):
    """What is done: compute, or begin to receive."""

    FORWARD = "F"
    FULL_BACKWARD = "B"
    BACKWARD_INPUT = "I"  # the gradients of a stage's inputs, which the stage before waits for
    BACKWARD_WEIGHT = "W"  # those of its parameters, which nobody waits for
    RECV_F = "RECV_F"
    RECV_B = "RECV_B"


F = _ComputationType.FORWARD
B = _ComputationType.FULL_BACKWARD
I = _ComputationType.BACKWARD_INPUT  # noqa: E741, as papers call it
W = _ComputationType.BACKWARD_WEIGHT
RECV_F = _ComputationType.RECV_F
RECV_B = _ComputationType.RECV_B


class _Action(NamedTuple):
    """One thing that a stage does with one microbatch, printed as 2F0: stage 2, microbatch 0."""

    stage_index: int
    computation_type: _ComputationType
    microbatch_index: int

    def __str__(self) -> str:
        return f"{self.stage_index}{self.computation_type}{self.microbatch_index}"

    __repr__ = __str__


# Which rank has which stages


def loop_of(num_stages: int, size: int) -> dict[int, int]:
    """Returns the rank of each stage: the stages go round the ranks."""
    return {stage: stage % size for stage in range(num_stages)}


def v_of(num_stages: int) -> dict[int, int]:
    """Returns the rank of each stage: the stages go to the last rank and back, in a V."""
    return {stage: min(stage, num_stages - 1 - stage) for stage in range(num_stages)}


# Orders


def one_forward_one_backward(
    forwards: Iterable[_Action], backwards: Iterable[_Action], warmup: int
) -> list[_Action]:
    """Returns `warmup` forwards, then forwards and backwards in turn, and the backwards left."""
    forwards = list(forwards)
    pairs = zip_longest(forwards[warmup:], backwards)
    return forwards[:warmup] + [action for pair in pairs for action in pair if action is not None]


def looped_breadth_first(stages: Sequence[int], n_microbatches: int) -> list[_Action]:
    """Returns the order of a rank that takes all microbatches through one stage after another."""
    forwards = [_Action(stage, F, i) for stage in stages for i in range(n_microbatches)]
    return forwards + [_Action(stage, B, i) for stage, _, i in reversed(forwards)]


def interleaved(
    stages: Sequence[int], rank: int, size: int, n_microbatches: int, splits_backward: bool
) -> list[_Action]:
    """Returns the order of a rank with several stages (Narayanan et al. 2021).

    The microbatches go through the stages of a rank in rounds of about `size`.

    Args:
        stages: those of the rank.
        rank: in the group.
        size: of the group.
        n_microbatches: a multiple of the number of rounds.
        splits_backward: whether the gradients of parameters wait until there is time for them
            (Qi et al. 2024, ZB1P).
    """
    per_round = n_microbatches // max(1, n_microbatches // size)
    rounds = [range(i, i + per_round) for i in range(0, n_microbatches, per_round)]
    forwards = [_Action(s, F, i) for part in rounds for s in stages for i in part]
    kind = I if splits_backward else B
    backwards = [_Action(s, kind, i) for part in rounds for s in reversed(stages) for i in part]
    distance = size - 1 - rank  # to the last rank, where backward begins
    warmup = (len(stages) - 1) * per_round + distance * (1 if splits_backward else 2)
    order = one_forward_one_backward(forwards, backwards, min(warmup, len(forwards)))
    return _with_late_weights(order, rank) if splits_backward else order


def _with_late_weights(order: list[_Action], lag: int) -> list[_Action]:
    """Adds the gradients of parameters, each after `lag` more of those of inputs."""
    result: list[_Action] = []
    waiting: deque[_Action] = deque()
    for action in order:
        result.append(action)
        if action.computation_type is I:
            waiting.append(action._replace(computation_type=W))
            if len(waiting) > lag:
                result.append(waiting.popleft())
    return result + list(waiting)


def zero_bubble_v(rank: int, size: int, n_microbatches: int) -> list[_Action]:
    """Returns the order of a rank with the stages `rank` and 2 * size - 1 - rank.

    It is that of Qi et al. 2024, section 6, for forward, the gradients of inputs and those of
    parameters taking equally long: first as many forwards as memory for one microbatch of all
    stages allows, then backwards and forwards in turn, then the backwards left.
    """
    down, up = rank, 2 * size - 1 - rank
    count = max(n_microbatches, 2 * size - 1)  # what fills the pipeline; those too many are dropped
    order: list[_Action] = []
    done: Counter[tuple[int, _ComputationType]] = Counter()

    def add(stage: int, *kinds: _ComputationType) -> None:
        for kind in kinds:
            order.append(_Action(stage, kind, done[stage, kind]))
            done[stage, kind] += 1

    for _ in range(2 * (size - rank) - 1):
        add(down, F)
    for _ in range(rank):
        add(up, F)
        add(down, F)
    for _ in range(size - rank):
        add(up, F, I, W)
    while done[up, F] < count:
        if done[down, F] < count:
            add(down, F)
        add(down, I, W)
        add(up, F, I, W)
    for _ in range(rank):
        add(down, I)
        add(up, I)
    for _ in range(size - rank):
        add(down, I, W)
    for stage in (up, down):
        while done[stage, W] < count:
            add(stage, W)
    return [action for action in order if action.microbatch_index < n_microbatches]


def forwards_of(orders: Orders) -> Orders:
    """Returns the orders without backward."""
    return {
        rank: [action for action in order if action.computation_type is F]
        for rank, order in orders.items()
    }


def with_whole_backwards(orders: Orders) -> Orders:
    """Returns the orders with one backward where both parts of one follow each other."""
    result: Orders = {rank: [] for rank in orders}
    for rank, order in orders.items():
        mine = result[rank]
        for action in order:
            if action.computation_type is W and mine[-1] == action._replace(computation_type=I):
                mine[-1] = action._replace(computation_type=B)
            else:
                mine.append(action)
    return result


# Messages


def _before(action: _Action, last_stage: int) -> list[tuple[int, str, int]]:
    """What must be done before, on this rank or another; I counts as B."""
    stage, kind, i = action
    if kind is F:
        return [(stage - 1, "F", i)] if stage else []
    if kind is W:
        return [(stage, "B", i)]
    return [(stage, "F", i)] + ([(stage + 1, "B", i)] if stage < last_stage else [])


def with_receives(orders: Orders, rank_of: dict[int, int]) -> Orders:
    """Returns the orders with a receive where a message from another rank is first to be expected.

    They are played through, one action of each rank at a time. As both ends of a message then stand
    in the order in which they were played, two ranks exchange theirs in the same order.

    Args:
        orders: by rank.
        rank_of: the rank of each stage.

    Raises:
        ValueError: if a stage is missing, or ranks wait for each other in a circle.
    """
    last = len(rank_of) - 1
    left = {rank: deque(order) for rank, order in orders.items()}
    result: Orders = {rank: [] for rank in orders}
    done: set[tuple[int, str, int]] = set()
    while any(left.values()):
        has_moved = False
        for rank, waiting in left.items():
            if not waiting or not done.issuperset(_before(waiting[0], last)):
                continue
            has_moved = True
            action = waiting.popleft()
            stage, kind, i = action
            result[rank].append(action)
            done.add((stage, "B" if kind is I else kind.value, i))
            receiver = {F: stage + 1, B: stage - 1, I: stage - 1}.get(kind, -1)
            if rank_of.get(receiver, rank) != rank:
                receive = _Action(receiver, RECV_F if kind is F else RECV_B, i)
                result[rank_of[receiver]].append(receive)
        if not has_moved:
            heads = {rank: waiting[0] for rank, waiting in left.items() if waiting}
            raise ValueError(
                f"pipeline_order: nobody can go on: {heads} by rank wait for each other, or for "
                "what no rank does. A stage takes a microbatch forward after the stage before has, "
                "and backward after the stage behind."
            )
    return result
