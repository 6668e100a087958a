"""ZeroRedundancyOptimizer: each process keeps the state of, and updates, its own parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook
from rushlight.distributed.groups import default_group
from rushlight.distributed.utils import Parcel, in_parcels
from rushlight.optim import Optimizer
from rushlight.optim.optimizer import ParamsT

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Divides the work and memory of an optimizer among processes.

    All processes have all parameters and the same gradients, as of DistributedDataParallel. Each
    updates its share of the parameters, which it then sends to the others (Rajbhandari et al. 2020,
    ZeRO, stage 1). The parameters become what optimizer_class alone would make of them.

    Args:
        params: as for optimizer_class; the same in all processes.
        optimizer_class: the optimizer.
        process_group: the processes; all of them unless given.
        parameters_as_bucket_view: make the parameters views of the memory that is sent, which saves
            a copy of them.
        overlap_with_ddp: not available.
        **defaults: options of optimizer_class.

    Raises:
        NotImplementedError: with overlap_with_ddp.

    Example:
        >>> import rushlight.distributed as dist
        >>> from rushlight.distributed.optim import ZeroRedundancyOptimizer
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = ZeroRedundancyOptimizer([weight], torch.optim.SGD, lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight.tolist()
        [0.5, 0.5]
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: ParamsT,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp=True is not available. Leave it out: "
                "the steps are the same."
            )
        self.process_group = process_group or default_group()
        self.world_size = dist.get_world_size(self.process_group)
        self.rank = dist.get_rank(self.process_group)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._owners: dict[Tensor, int] = {}  # the rank that updates a parameter
        self._sizes = [0] * self.world_size  # elements that each rank updates
        self._all_state: dict[int, Any] | None = None  # by position, where it was gathered
        self.optim: Optimizer | None = None
        Joinable.__init__(self)
        Optimizer.__init__(self, params, defaults)
        self.optim = optimizer_class([self._share_of(g) for g in self.param_groups], **defaults)
        self._arrange()

    # Shares

    def _share_of(self, group: dict[str, Any]) -> dict[str, Any]:
        """A group with those of its parameters that this process updates."""
        # The largest ones first, each to the process that has least, makes shares about equal.
        for param in sorted(group["params"], key=lambda param: -param.numel()):
            owner = self._sizes.index(min(self._sizes))
            self._owners[param] = owner
            self._sizes[owner] += param.numel()
        own = [param for param in group["params"] if self._owners[param] == self.rank]
        return {**group, "params": own}

    def _arrange(self) -> None:
        """Takes over the options of the local optimizer, and makes the parcels that are sent."""
        _copy_options(self._local.param_groups, self.param_groups)
        self._parcels: list[tuple[Parcel, int]] = []  # with the rank that sends
        for rank in range(self.world_size):
            share = [param for param, owner in self._owners.items() if owner == rank]
            self._parcels += [(parcel, rank) for parcel in in_parcels(share)]
        if self.parameters_as_bucket_view:
            for parcel, _ in self._parcels:
                parcel.become_memory()

    @property
    def _local(self) -> Optimizer:
        assert self.optim is not None  # since __init__
        return self.optim

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters with options of its own, in all processes.

        Args:
            param_group: "params" and options, as for other optimizers.
        """
        super().add_param_group(param_group)
        if self.optim is not None:
            self.optim.add_param_group(self._share_of(self.param_groups[-1]))
            self._arrange()

    # Steps

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Updates the parameters of this process and receives those of the others.

        Args:
            closure: function that computes the gradients anew and returns the loss.
            **kwargs: handed to the step of optimizer_class.

        Returns:
            What the closure returned, or None.
        """
        Join.notify_join_context(self)
        _copy_options(self.param_groups, self._local.param_groups)
        arguments = () if closure is None else (closure,)  # a step of one's own may take none
        loss = self._local.step(*arguments, **kwargs)
        _copy_options(self._local.param_groups, self.param_groups)
        for parcel, sender in self._parcels:
            parcel.broadcast(self.process_group, sender)
        return loss

    # State

    def _own_positions(self) -> list[int]:
        """Where in all parameters those of the local optimizer are, in its order."""
        params = [param for group in self.param_groups for param in group["params"]]
        return [i for i, param in enumerate(params) if self._owners[param] == self.rank]

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gathers the state of all processes in one, for state_dict. All must call it.

        Args:
            to: the rank, in the group, of the process that gets it.
        """
        positions = self._own_positions()
        states = self._local.state_dict()["state"]
        own = {positions[i]: state for i, state in states.items()}
        shares: list[Any] | None = [None] * self.world_size if self.rank == to else None
        target = dist.get_global_rank(self.process_group, to)
        dist.gather_object(own, shares, target, self.process_group)
        if shares is not None:
            self._all_state = {i: state for share in shares for i, state in share.items()}

    def state_dict(self) -> dict[str, Any]:
        """Returns what optimizer_class alone would, where consolidate_state_dict gathered it.

        Raises:
            RuntimeError: elsewhere, and before that.
        """
        if self._all_state is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer.state_dict: Optimizer state has not been consolidated on "
                "this rank. Please call `consolidate_state_dict(to=...)` on all ranks beforehand "
                "if you meant to save the global state."
            )
        result = super().state_dict()
        result["state"] = dict(sorted(self._all_state.items()))
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the state and options of the whole optimizer; each process keeps its share.

        Args:
            state_dict: what state_dict returned, with any number of processes, or what
                optimizer_class returned for the same parameters.
        """
        super().load_state_dict({**state_dict, "state": {}})  # the options
        states = state_dict["state"]
        own = {i: states[p] for i, p in enumerate(self._own_positions()) if p in states}
        groups = self._local.state_dict()["param_groups"]
        _copy_options(self.param_groups, groups)
        self._local.load_state_dict({"state": own, "param_groups": groups})
        self._all_state = None

    # Uneven inputs

    @property
    def join_device(self) -> rl.device:
        return next(iter(self._owners)).device

    @property
    def join_process_group(self) -> Any:
        return self.process_group

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Returns what a process does that is out of batches: it goes on to update its share."""
        return _StandIn(self)


class _StandIn(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        self.optimizer.step()


def _copy_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
    for from_group, to_group in zip(source, target, strict=True):
        to_group.update({key: value for key, value in from_group.items() if key != "params"})
