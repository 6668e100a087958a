"""Processes of DistributedDataParallel that are out of batches: how they take part until the end.

In each iteration the processes agree whether gradients are averaged, and whose buffers count; both
sides of that are here. What the others do in between is in distributed.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import distributed as dist
from rushlight.distributed import utils
from rushlight.distributed.algorithms.join import JoinHook

if TYPE_CHECKING:
    from rushlight.nn.parallel.distributed import DistributedDataParallel


def anyone_averages(ddp: DistributedDataParallel[Any], this_one: bool) -> bool:
    """Whether the processes that still have batches average in this iteration."""
    flag = rl.tensor([float(this_one)], device=ddp.device)
    dist.all_reduce(flag, group=ddp.process_group)
    return flag.item() > 0


def last_rank(ddp: DistributedDataParallel[Any], counts: bool) -> int:
    """The last of the processes that count, as its rank in the group."""
    rank = dist.get_rank(ddp.process_group) if counts else -1
    found = rl.tensor([rank], device=ddp.device)
    dist.all_reduce(found, dist.ReduceOp.MAX, ddp.process_group)
    return int(found.item())


class StandIn(JoinHook):
    """Takes part in the iterations of the other processes, call by call."""

    def __init__(self, ddp: DistributedDataParallel[Any]) -> None:
        self.ddp = ddp

    def main_hook(self) -> None:
        ddp = self.ddp
        ddp.reducer.divisor = None if ddp._divide_by_initial_world_size else 1  # of zeros
        averages = anyone_averages(ddp, False)
        if averages:
            ddp.reducer.rearrange_if_due()
        if ddp.will_sync_module_buffers():
            ddp._sync_buffers(False)
        ddp.require_forward_param_sync = averages
        if averages:
            ddp.reducer.stand_by()

    def post_hook(self, is_last_joiner: bool) -> None:
        ddp = self.ddp
        utils._sync_module_states(
            ddp.module,
            ddp.process_group,
            src=last_rank(ddp, is_last_joiner),
            params_and_buffers_to_ignore=ddp.parameters_to_ignore,
            broadcast_buffers=ddp.broadcast_buffers,
        )
