"""The group of the backend "fake": one process plays a rank of a job; the others do not exist.

What the others would bring is what this rank brings. So shapes, memory and the order of calls are
those of the real job, the numbers are not.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.backend import Backend
from rushlight.distributed.process_group import ProcessGroup
from rushlight.distributed.work import Work

__all__ = ["FakeGroup"]


def _done() -> Work:
    work = Work()
    work.set_result([])
    return work


class FakeGroup(ProcessGroup):
    """A group whose collectives end at once; see Backend.FAKE."""

    def getBackendName(self) -> str:
        """Returns "fake"."""
        return Backend.FAKE

    def _nothing(self, *args: Any, **kwargs: Any) -> Any:
        """Leaves the tensors as they are."""
        return _done()

    allreduce = broadcast = reduce = send = recv = recv_anysource = barrier = _nothing
    monitored_barrier = _nothing

    @rl.no_grad()
    def allgather(
        self, output_tensors: list[list[Tensor]], input_tensors: list[Tensor], opts: Any = None
    ) -> Work:
        """Fills all places with the tensor of this rank."""
        for output in output_tensors[0]:
            output.copy_(input_tensors[0])
        return _done()

    @rl.no_grad()
    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        output.view(self.size(), *input.shape).copy_(input)
        return _done()

    def gather(
        self, output_tensors: list[list[Tensor]], input_tensors: list[Tensor], opts: Any = None
    ) -> Work:
        """Fills all places of the root with the tensor of this rank."""
        return self.allgather(output_tensors, input_tensors) if output_tensors else _done()

    def gather_single(self, output: Tensor, input: Tensor, opts: Any = 0) -> Work:
        return self._allgather_base(output, input) if output.numel() else _done()

    gather_into_tensor = gather_single

    @rl.no_grad()
    def scatter(
        self, output_tensors: list[Tensor], input_tensors: list[list[Tensor]], opts: Any = None
    ) -> Work:
        """Fills the tensor of the root with its part; others keep theirs."""
        if input_tensors:
            output_tensors[0].copy_(input_tensors[0][self.rank()])
        return _done()

    reduce_scatter = scatter

    @rl.no_grad()
    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        output.copy_(input.view(self.size(), *output.shape)[self.rank()])
        return _done()

    @rl.no_grad()
    def alltoall(
        self, output_tensors: list[Tensor], input_tensors: list[Tensor], opts: Any = None
    ) -> Work:
        """Fills each place with what this rank has for it."""
        for output, part in zip(output_tensors, input_tensors, strict=True):
            output.copy_(part)
        return _done()

    @rl.no_grad()
    def alltoall_base(self, output: Tensor, input: Tensor, *lengths_and_opts: Any) -> Work:
        """Fills the output with the rows of the input, again and again if it is longer."""
        if input.shape[0] and output.shape[0]:
            places = rl.arange(output.shape[0], device=input.device) % input.shape[0]
            output.copy_(input[places])
        return _done()
