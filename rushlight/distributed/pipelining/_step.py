"""One step of a pipeline: a rank does what an order of _orders.py says.

Owns step and eval: the arguments' way into the first stage, the losses, and the results' way out of
the last. stage.py computes, _messages.py carries, schedules.py has the orders by their names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor
from rushlight.autograd.profiler import record_function
from rushlight.distributed.pipelining import _orders
from rushlight.distributed.pipelining._messages import Messages
from rushlight.distributed.pipelining._orders import _Action, _ComputationType
from rushlight.distributed.pipelining.microbatch import (
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from rushlight.distributed.pipelining.stage import PipelineStage
from rushlight.utils._pytree import tree_map_only

__all__ = ["_PipelineSchedule"]


class _PipelineSchedule(ABC):
    """What all schedules have in common; the order is that of _get_pipeline_order.

    Attributes:
        pipeline_order: what each rank does, printed as 2F0: stage 2, forward, microbatch 0; or B,
            backward; or I and W, the gradients of inputs and those of parameters.
        stage_index_to_group_rank: the rank of each stage.
    """

    def __init__(
        self,
        stages: Sequence[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None,
        args_chunk_spec: tuple[Any, ...] | None,
        kwargs_chunk_spec: dict[str, Any] | None,
        output_merge_spec: Any,
        scale_grads: bool,
    ) -> None:
        if n_microbatches < 1:
            raise ValueError(
                f"{type(self).__name__}: n_microbatches is {n_microbatches}. It is at least 1."
            )
        self._stages = {stage.stage_index: stage for stage in stages}
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self._args_chunk_spec = args_chunk_spec
        self._kwargs_chunk_spec = kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self.scale_grads = scale_grads
        self.rank = stages[0].group_rank
        self.pp_group_size = stages[0].group_size
        self._num_stages = stages[0].num_stages
        self.stage_index_to_group_rank = self._get_stage_ranks()
        mine = {s for s, rank in self.stage_index_to_group_rank.items() if rank == self.rank}
        if mine != set(self._stages):
            raise ValueError(
                f"{type(self).__name__}: rank {self.rank} of {self.pp_group_size} gives the stages "
                f"{sorted(self._stages)} of {self._num_stages}, but it has {sorted(mine)}."
            )
        self.pipeline_order = self._get_pipeline_order()
        self._plans = {
            True: self._plan(_orders.with_whole_backwards(self.pipeline_order)),
            False: self._plan(_orders.forwards_of(self.pipeline_order)),
        }
        self._messages = Messages(self._stages, self.stage_index_to_group_rank, n_microbatches)

    def _get_stage_ranks(self) -> dict[int, int]:
        """The rank of each stage."""
        return _orders.loop_of(self._num_stages, self.pp_group_size)

    @abstractmethod
    def _get_pipeline_order(self) -> dict[int, list[_Action]]:
        """What each rank does, in this order."""

    def _plan(self, orders: dict[int, list[_Action]]) -> list[_Action]:
        """What this rank does, with the receives."""
        return _orders.with_receives(orders, self.stage_index_to_group_rank)[self.rank]

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Tensor] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        arg_mbs: list[tuple[Any, ...]] | None = None,
        kwarg_mbs: list[dict[str, Any]] | None = None,
        target_mbs: list[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Takes a batch through the network; with a loss_fn, its gradients into .grad, too.

        All ranks of the pipeline call it. A batch is cut into microbatches, or comes in them:
        arg_mbs, kwarg_mbs and target_mbs are lists with an entry for each.

        Args:
            args: of the first stage, for the whole batch; ignored by ranks without it.
            target: of the loss, for the whole batch; needed by the rank with the last stage.
            losses: gets the loss of each microbatch on the rank with the last stage.
            return_outputs: whether to keep the results.
            loss_kwargs: more arguments of loss_fn.
            arg_mbs, kwarg_mbs, target_mbs: tuples instead of args, dicts instead of kwargs, and
                targets instead of target.
            kwargs: of this rank's stages, for the whole batch.

        Returns:
            What the network returns, without history, on the rank with the last stage; None on
            others.

        Raises:
            RuntimeError: where gradients are off, but there is a loss_fn; see eval.
            TypeError: if microbatches are no list, of tuples and of dicts.
            ValueError: if microbatches differ in shape, or are too few, the batch has too few
                rows, or there are both a batch and microbatches.
            DistError: if another rank ends or does not send in time.
        """
        if self._loss_fn is not None and not rl.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not "
                "be used under torch.no_grad() context. Please call eval() instead."
            )
        given = arg_mbs, kwarg_mbs, target_mbs
        if all(parts is None for parts in given):
            parts = self._split(args, kwargs, target)
        elif args or kwargs or target is not None:
            raise ValueError(
                "step: there are microbatches, and args, kwargs or target of a whole batch. Pass "
                "all in arg_mbs, kwarg_mbs and target_mbs."
            )
        else:
            parts = _Microbatches.of(self._n_microbatches, *given)
        return self._run(self._loss_fn is not None, parts, losses, return_outputs, loss_kwargs)

    def eval(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Tensor] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Takes a batch through the network forward only; losses are computed if there is a target.

        See step for the arguments. It does not change the mode of the modules, nor turn gradients
        off.
        """
        parts = self._split(args, kwargs, target)
        return self._run(False, parts, losses, return_outputs, loss_kwargs)

    def _run(
        self,
        trains: bool,
        parts: _Microbatches,
        losses: list[Tensor] | None,
        return_outputs: bool,
        loss_kwargs: dict[str, Any] | None,
    ) -> Any:
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        last = self._stages.get(self._num_stages - 1)
        if trains and last is not None and parts.targets is None:
            raise ValueError("step: there is a loss_fn, but no target. The last stage needs it.")
        step = _Step(self, trains, parts, loss_kwargs or {}, return_outputs)
        self._messages.begin()
        for stage in self._stages.values():
            stage.begin_step(self._n_microbatches if trains else 0)
        for action in self._plans[trains]:
            try:
                with record_function(f"PP:{action}"):
                    step.perform(action)
            except Exception as error:
                error.add_note(f"{type(self).__name__}: rank {self.rank} was at {action}.")
                raise
        self._messages.end()
        if last is None:
            return None
        if losses is not None:
            losses[:] = step.in_order(step.losses)
        if not return_outputs:
            return None
        return merge_chunks(step.in_order(step.outputs), self._output_merge_spec)

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any) -> _Microbatches:
        count = self._n_microbatches
        calls = (None, None)
        if args or kwargs:
            specs = self._args_chunk_spec, self._kwargs_chunk_spec
            calls = split_args_kwargs_into_chunks(args, kwargs, count, *specs)
        targets = None
        if target is not None:
            parts, _ = split_args_kwargs_into_chunks((target,), {}, count)
            targets = [part for (part,) in parts]
        return _Microbatches.of(count, *calls, targets)


class _Microbatches(NamedTuple):
    """The arguments and targets of each microbatch; no targets where a rank needs none."""

    args: list[tuple[Any, ...]]
    kwargs: list[dict[str, Any]]
    targets: list[Any] | None

    @classmethod
    def of(cls, count: int, args: Any, kwargs: Any, targets: Any) -> _Microbatches:
        """Returns so many of them, with empty arguments in place of None.

        Raises:
            TypeError: if they are no lists, of tuples and of dicts.
            ValueError: if there are more or fewer.
        """
        return cls(
            _checked("arg_mbs", args, tuple, count) or [()] * count,
            _checked("kwarg_mbs", kwargs, dict, count) or [{}] * count,
            _checked("target_mbs", targets, object, count),
        )


def _checked(name: str, parts: Any, kind: type, count: int) -> list[Any] | None:
    if parts is None:
        return None
    if not isinstance(parts, list):
        raise TypeError(f"{name} must be a list but got a {type(parts)}")
    if len(parts) != count:
        raise ValueError(
            f"Expecting {count} {name} but got {len(parts)}: the batch has too few rows, or was "
            f"not cut into {count} microbatches."
        )
    for i, part in enumerate(parts):
        if not isinstance(part, kind):
            raise TypeError(
                f"{name} must be a list of {kind.__name__}s, but {name}[{i}] is a {type(part)}"
            )
    return parts


class _Step:
    """One run of a schedule on this rank."""

    def __init__(
        self,
        schedule: _PipelineSchedule,
        trains: bool,
        parts: _Microbatches,
        loss_kwargs: dict[str, Any],
        keeps_outputs: bool,
    ) -> None:
        self._schedule = schedule
        self._messages = schedule._messages
        self._trains = trains
        self._args, self._kwargs, self._targets = parts
        self._loss_kwargs = loss_kwargs
        self._keeps_outputs = keeps_outputs
        self.losses: dict[int, Tensor] = {}
        self.outputs: dict[int, Any] = {}

    def in_order(self, values: dict[int, Any]) -> list[Any]:
        """Values by microbatch as a list."""
        return [_detached(values[i]) for i in sorted(values)]

    def perform(self, action: _Action) -> None:
        """Does one action."""
        number, kind, i = action
        stage = self._schedule._stages[number]
        if kind is _ComputationType.RECV_F:
            self._messages.expect_inputs(number, i)
        elif kind is _ComputationType.RECV_B:
            self._messages.expect_output_grads(number, i)
        elif kind is _ComputationType.FORWARD:
            self._forward(stage, i)
        elif kind is _ComputationType.BACKWARD_WEIGHT:
            stage.backward_weight_one_chunk(i)
        else:
            self._backward(stage, i, kind is _ComputationType.FULL_BACKWARD)

    def _forward(self, stage: PipelineStage, i: int) -> None:
        number = stage.stage_index
        args = self._args[i] if stage.is_first else self._messages.inputs(number, i)
        output = stage.forward_one_chunk(i, args, self._kwargs[i])
        if not stage.is_last:
            outputs = output if isinstance(output, list | tuple) else (output,)
            self._messages.send_outputs(number, i, outputs, self._trains)
            return
        if self._schedule._loss_fn is not None and self._targets is not None:
            self.losses[i] = self._schedule._loss_fn(output, self._targets[i], **self._loss_kwargs)
        if self._keeps_outputs:
            self.outputs[i] = _detached(output)

    def _backward(self, stage: PipelineStage, i: int, full: bool) -> None:
        number = stage.stage_index
        if stage.is_last:
            loss, self.losses[i] = self.losses[i], self.losses[i].detach()
            if loss.numel() != 1:
                raise ValueError(
                    f"step: loss_fn returned a tensor of shape {tuple(loss.shape)}. The loss of a "
                    "microbatch is one number. Take the mean, or the sum with scale_grads=False."
                )
            # So gradients become those of the mean; those that were there before stay as they are.
            share = 1 / self._schedule._n_microbatches if self._schedule.scale_grads else 1.0
            grads = stage.backward_one_chunk(i, [loss], [rl.full_like(loss, share)], full)
        else:
            grads = stage.backward_one_chunk(i, None, self._messages.output_grads(number, i), full)
        if not stage.is_first:
            self._messages.send_input_grads(number, i, grads)


def _detached(value: Any) -> Any:
    return tree_map_only(Tensor, Tensor.detach, value)
