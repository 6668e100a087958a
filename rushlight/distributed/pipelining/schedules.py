"""The schedules of a pipeline: in which order ranks take microbatches through their stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rushlight import Tensor
from rushlight.distributed.pipelining import _orders
from rushlight.distributed.pipelining._orders import _Action, _ComputationType
from rushlight.distributed.pipelining._step import _PipelineSchedule
from rushlight.distributed.pipelining.stage import PipelineStage

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "get_schedule_class",
]

F = _ComputationType.FORWARD
B = _ComputationType.FULL_BACKWARD


class PipelineScheduleSingle(_PipelineSchedule):
    """A schedule with one stage on each rank.

    One of your own defines _get_pipeline_order(), which returns what each rank does, by rank.

    Args:
        stage: that of this rank; the stage of rank i is stage i.
        n_microbatches: the parts that batches are cut into.
        loss_fn: called on the last stage as loss_fn(output, target) for each microbatch; returns a
            tensor of one element. All ranks give one, or none if there is no backward.
        args_chunk_spec, kwargs_chunk_spec: how arguments are cut, see
            split_args_kwargs_into_chunks.
        output_merge_spec: how results are put together, see merge_chunks.
        scale_grads: whether gradients are divided by n_microbatches: yes if the loss is a mean over
            rows, no if it is a sum.

    Raises:
        ValueError: if there are more stages than ranks, or this stage is another rank's.
    """

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            [stage],
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )

    def _rank_order(self, rank: int, warmup: int) -> list[_Action]:
        """So many forwards, then forwards and backwards in turn."""
        numbers = range(self._n_microbatches)
        return _orders.one_forward_one_backward(
            [_Action(rank, F, i) for i in numbers], [_Action(rank, B, i) for i in numbers], warmup
        )


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forward, then all backward (Huang et al. 2019).

    The arguments are those of PipelineScheduleSingle. Each rank keeps what all microbatches need
    for backward.

    Example:
        >>> from rushlight.distributed.pipelining import PipelineStage, ScheduleGPipe
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> part = torch.nn.Linear(2, 1, bias=False)
        >>> stage = PipelineStage(part, 0, 1, "cpu")
        >>> schedule = ScheduleGPipe(stage, 2, loss_fn=torch.nn.functional.mse_loss)
        >>> losses = []
        >>> schedule.step(torch.ones(4, 2), target=torch.zeros(4, 1), losses=losses).shape
        torch.Size([4, 1])
        >>> len(losses), part.weight.grad.shape
        (2, torch.Size([1, 2]))
        >>> torch.distributed.destroy_process_group()
    """

    def _get_pipeline_order(self) -> dict[int, list[_Action]]:
        count = self._n_microbatches
        return {rank: self._rank_order(rank, count) for rank in range(self.pp_group_size)}


class Schedule1F1B(PipelineScheduleSingle):
    """Forward and backward in turn as soon as possible (Narayanan et al. 2019).

    The arguments are those of PipelineScheduleSingle. It takes as long as ScheduleGPipe, but a rank
    keeps as many microbatches as there are stages from it on, at most.

    Raises:
        ValueError: for fewer microbatches than stages.
    """

    def _get_pipeline_order(self) -> dict[int, list[_Action]]:
        size = self._num_stages
        if self._n_microbatches < size:
            raise ValueError(
                f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to "
                f"the number of stages ({size})."
            )
        return {rank: self._rank_order(rank, size - 1 - rank) for rank in range(size)}


class PipelineScheduleMulti(_PipelineSchedule):
    """A schedule with several stages on each rank.

    One of your own defines _get_pipeline_order(), which returns what each rank does, by rank.

    Args:
        stages: those of this rank: rank, rank + size and so on, where size is that of the group.
        n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads:
            see PipelineScheduleSingle.
        use_full_backward, backward_requires_autograd, defer_pp_recv: accepted for PyTorch's sake.

    Raises:
        ValueError: if these are not the stages of this rank.
    """

    def __init__(
        self,
        stages: Sequence[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        use_full_backward: bool | None = None,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )

    def _stages_of(self, rank: int) -> list[int]:
        return [s for s, owner in self.stage_index_to_group_rank.items() if owner == rank]


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All microbatches through one stage after another (Lamy-Poirier 2022, breadth first).

    The arguments are those of PipelineScheduleMulti. It does least often what belongs to a stage as
    a whole, such as gathering its parameters under fully_shard.
    """

    def __init__(
        self,
        stages: Sequence[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            output_merge_spec=output_merge_spec,
            scale_grads=scale_grads,
        )

    def _get_pipeline_order(self) -> dict[int, list[_Action]]:
        return {
            rank: _orders.looped_breadth_first(self._stages_of(rank), self._n_microbatches)
            for rank in range(self.pp_group_size)
        }


class _RoundSchedule(PipelineScheduleMulti):
    """A schedule that takes microbatches through the stages of a rank in rounds."""

    splits_backward: ClassVar[bool]

    def _get_pipeline_order(self) -> dict[int, list[_Action]]:
        count, size = self._n_microbatches, self.pp_group_size
        rounds = max(1, count // size)
        if count % rounds:
            raise ValueError(
                f"{type(self).__name__} requires the number of microbatches to be a multiple of "
                f"the number of rounds ({rounds}), but got {count}."
            )
        return {
            rank: _orders.interleaved(
                self._stages_of(rank), rank, size, count, self.splits_backward
            )
            for rank in range(size)
        }


class ScheduleInterleaved1F1B(_RoundSchedule):
    """Forward and backward in turn, with several stages on each rank (Narayanan et al. 2021).

    The arguments are those of PipelineScheduleMulti. Ranks wait less than with Schedule1F1B, the
    less the more stages they have, and send more.

    Raises:
        ValueError: if n_microbatches is no multiple of n_microbatches // size, the rounds.
    """

    splits_backward = False


class ScheduleInterleavedZeroBubble(_RoundSchedule):
    """As ScheduleInterleaved1F1B, with the gradients of parameters put off (Qi et al. 2024, ZB1P).

    Ranks compute them while they would wait for others.
    """

    splits_backward = True


class ScheduleZBVZeroBubble(PipelineScheduleMulti):
    """Two stages on each rank, on the way down and on the way back (Qi et al. 2024, ZB-V).

    The arguments are those of PipelineScheduleMulti; the stages of a rank are rank and
    2 * size - 1 - rank, so the first rank has the first stage and the last. No rank waits once the
    pipeline is full, if forward and the two parts of backward take equally long.

    Raises:
        ValueError: unless each rank has two stages.
    """

    def _get_stage_ranks(self) -> dict[int, int]:
        if len(self._stages) != 2 or self._num_stages != 2 * self.pp_group_size:
            raise ValueError(
                f"ZBV requires exactly 2 stages per rank, but got {len(self._stages)} of "
                f"{self._num_stages} on {self.pp_group_size} ranks."
            )
        return _orders.v_of(self._num_stages)

    def _get_pipeline_order(self) -> dict[int, list[_Action]]:
        size = self.pp_group_size
        return {
            rank: _orders.zero_bubble_v(rank, size, self._n_microbatches) for rank in range(size)
        }


def get_schedule_class(schedule_name: str) -> type[_PipelineSchedule]:
    """Returns a schedule by its name, that of the class without Schedule, in any case.

    Args:
        schedule_name: such as "1F1B".

    Raises:
        ValueError: if there is none.

    Example:
        >>> torch.distributed.pipelining.schedules.get_schedule_class("gpipe").__name__
        'ScheduleGPipe'
    """
    found: dict[str, type[_PipelineSchedule]] = {
        each.__name__.removeprefix("Schedule"): each
        for each in (
            Schedule1F1B,
            ScheduleInterleaved1F1B,
            ScheduleGPipe,
            ScheduleLoopedBFS,
            ScheduleInterleavedZeroBubble,
            PipelineScheduleSingle,
            PipelineScheduleMulti,
            ScheduleZBVZeroBubble,
        )
    }
    for name, each in found.items():
        if name.lower() == schedule_name.lower():
            return each
    raise ValueError(
        f"Unknown schedule name '{schedule_name}'. The valid options are {list(found)}"
    )
