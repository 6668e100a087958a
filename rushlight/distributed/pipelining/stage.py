"""One stage of a pipeline: a module, and what it keeps of microbatches until their backward."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight import distributed as dist
from rushlight.distributed import ProcessGroup
from rushlight.distributed.fsdp import FSDPModule
from rushlight.distributed.pipelining._backward import SplitBackward

__all__ = ["PipelineStage"]


@dataclass
class _Chunk:
    """A microbatch between forward and backward."""

    inputs: list[Tensor]  # those of the stage before that require grad
    outputs: list[Tensor]  # that require grad


class PipelineStage:
    """A part of a network, that one rank of a pipeline runs.

    Stage 0 gets the arguments of step, each other one what the stage before returns: a tensor, or a
    tuple of tensors, as positional arguments. Keyword arguments of step go to the stages of the
    rank that gives them. The module may be in DistributedDataParallel or sharded by fully_shard,
    over other ranks than those of the pipeline; gradients are averaged once a step.

    Args:
        submodule: the part, on `device`.
        stage_index: which part it is, from 0.
        num_stages: how many there are.
        device: where tensors that are received go.
        input_args, output_args, output_grads, input_grads: accepted for PyTorch's sake; shapes are
            told with the first microbatch of each step.
        group: the ranks of the pipeline; all by default.
        dw_builder: called after each backward of the module, if that leaves gradients of
            parameters out; returns a function that computes them.
        get_mesh: accepted for PyTorch's sake; what goes between stages are plain tensors.

    Attributes:
        submod: the part.
        group_rank, group_size: this rank in the group, and how many there are.

    Raises:
        ValueError: if there is no such stage.
        RuntimeError: if the group has more ranks than there are stages.
    """

    def __init__(
        self,
        submodule: nn.Module,
        stage_index: int,
        num_stages: int,
        device: rl.device | str,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: ProcessGroup | None = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
        get_mesh: Any = None,
    ) -> None:
        if not 0 <= stage_index < num_stages:
            raise ValueError(
                f"Stage index {stage_index} is out of range of {num_stages}: stages are counted "
                f"from 0 to {num_stages - 1}."
            )
        self.submod = submodule
        self.stage_index = stage_index
        self.num_stages = num_stages
        self.device = rl.device(device)
        self.group = group
        self.group_rank = dist.get_rank(group)
        self.group_size = dist.get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages "
                f"{num_stages}. Each rank has a stage; pass the pipeline's ranks as group."
            )
        self.dw_builder = dw_builder
        self._chunks: dict[int, _Chunk] = {}
        self._late: dict[int, Callable[..., None]] = {}  # gradients of parameters to compute
        self.begin_step(0)

    @property
    def is_first(self) -> bool:
        """Whether it gets the arguments of step."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it returns the results."""
        return self.stage_index == self.num_stages - 1

    @property
    def has_backward(self) -> bool:
        """Whether there are microbatches whose backward is to come."""
        return self._backwards_left > 0

    def begin_step(self, backwards: int) -> None:
        """Forgets the microbatches of a step before.

        Args:
            backwards: how many there will be in this one.
        """
        self._chunks.clear()
        self._late.clear()
        self._backwards_left = backwards
        kind = nn.parallel.DistributedDataParallel
        self._averaged = self.submod if isinstance(self.submod, kind) else None
        self._sharded = [part for part in self.submod.modules() if isinstance(part, FSDPModule)]
        if backwards > 1:
            self._average_shards(False)

    def _average_shards(self, averages: bool) -> None:
        """Sets whether the next backward averages the gradients of sharded parameters."""
        for module in self._sharded:
            module.set_requires_gradient_sync(averages, recurse=False)
            module.set_reshard_after_backward(averages, recurse=False)

    # Forward

    def forward_one_chunk(
        self, fwd_chunk_id: int, args: Sequence[Any], kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Returns what the module does with a microbatch.

        Args:
            fwd_chunk_id: its number.
            args: those of step for the first stage; what the stage before returned for others.
            kwargs: those of step.

        Raises:
            TypeError: if others than the last stage return something else than tensors.
        """
        with self._averaged.no_sync() if self._averaged else contextlib.nullcontext():
            output = self.submod(*args, **(kwargs or {}))
        if not self.is_last:
            self.check_output(output)
        if self.has_backward:
            self._chunks[fwd_chunk_id] = _Chunk(
                [] if self.is_first else [t for t in args if t.requires_grad],
                [t for t in _as_tuple(output) if isinstance(t, Tensor) and t.requires_grad],
            )
        return output

    def check_output(self, output: Any) -> None:
        """Raises a TypeError unless what the module returned can be sent to the next stage."""
        for value in _as_tuple(output):
            if type(value) not in (Tensor, nn.Parameter):
                raise TypeError(
                    f"PipelineStage: stage {self.stage_index} returns a {type(value).__name__}. "
                    "All stages but the last return a tensor or a tuple of tensors."
                )

    # Backward

    def backward_one_chunk(
        self,
        bwd_chunk_id: int,
        roots: Sequence[Tensor] | None,
        grads: Sequence[Tensor],
        full_backward: bool = True,
    ) -> list[Tensor]:
        """Runs backward for a microbatch, and returns the gradients of the inputs that want them.

        Args:
            bwd_chunk_id: its number.
            roots: the loss for the last stage; None for what this one returned, as far as that
                requires grad.
            grads: the gradients of the roots.
            full_backward: whether the gradients of parameters are computed, too; if not,
                backward_weight_one_chunk does, later. Under DistributedDataParallel and
                fully_shard they always are.
        """
        chunk = self._chunks.pop(bwd_chunk_id)
        self._backwards_left -= 1
        if not self._backwards_left:
            self._average_shards(True)
            if self._averaged:
                self._averaged._expect_backward(chunk.outputs)
        pairs = zip(chunk.outputs if roots is None else roots, grads, strict=True)
        wanted = [(root, grad) for root, grad in pairs if root.requires_grad]
        roots, grads = [root for root, _ in wanted], [grad for _, grad in wanted]
        if full_backward or self.dw_builder or self._averaged or self._sharded:
            rl.autograd.backward(roots, grads)
            found = [tensor.grad for tensor in chunk.inputs]
            late = self.dw_builder() if self.dw_builder is not None else None
        elif chunk.inputs and roots:
            backward = SplitBackward(roots, grads, chunk.inputs)
            found = backward.input_grads
            late = backward.run_rest
        else:  # nobody waits for anything
            found = [None] * len(chunk.inputs)
            late = lambda: rl.autograd.backward(roots, grads)  # noqa: E731
        if late is not None:
            if full_backward:
                late()
            else:
                self._late[bwd_chunk_id] = late
        return [
            rl.zeros_like(tensor) if grad is None else grad
            for tensor, grad in zip(chunk.inputs, found, strict=True)
        ]

    def backward_weight_one_chunk(self, bwd_chunk_id: int) -> None:
        """Computes what backward_one_chunk(full_backward=False) has left out."""
        late = self._late.pop(bwd_chunk_id, None)
        if late is not None:
            late()


def _as_tuple(output: Any) -> tuple[Any, ...]:
    return tuple(output) if isinstance(output, list | tuple) else (output,)
