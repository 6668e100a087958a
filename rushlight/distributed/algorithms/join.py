"""Join: lets processes with fewer batches take part in the collectives of the others."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import distributed as dist
from rushlight.distributed import Work

__all__ = ["Join", "JoinHook", "Joinable"]

_WARN_AFTER = 1000  # more batches than the others suggests a mistake


class JoinHook:
    """What a process does that is out of batches, for one Joinable; by itself nothing."""

    def main_hook(self) -> None:
        """Takes part in one iteration of the processes that still have batches."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Is called when no process has batches any more.

        Args:
            is_last_joiner: whether this is one of those that had the most batches.
        """


class Joinable(ABC):
    """What uses collectives in each iteration and can say how to stand by in them.

    In each iteration, before its collectives, it calls Join.notify_join_context(self).
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Returns what to do when this process is out of batches; kwargs are those of Join."""

    @property
    @abstractmethod
    def join_device(self) -> rl.device:
        """Where tensors of collectives must be."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class _JoinConfig(NamedTuple):
    """What a Joinable is told by the Join that it is in."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """The config outside of a Join."""
        return _JoinConfig(False, False, False)


class Join:
    """Lets processes loop over different numbers of batches, in the scope of a `with`.

    A process that is out of batches stands by: it takes part in the collectives of the others
    until all are done.

    Args:
        joinables: what uses collectives in the loop, in the order of its use; of one group.
        enable: False if all processes have the same number of batches: then this does nothing.
        throw_on_early_termination: raise in all processes as soon as one is out of batches.
        **kwargs: handed to the join_hook of each.

    Raises:
        ValueError: if there are no joinables, or groups or devices differ.
        TypeError: if one is no Joinable.
        RuntimeError: with throw_on_early_termination, as soon as one process has no batch left.
    """

    def __init__(
        self,
        joinables: list[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        for joinable in joinables:
            if not isinstance(joinable, Joinable):
                raise TypeError(
                    f"Join: expected a Joinable, but got {type(joinable).__name__}. Inherit from "
                    "Joinable."
                )
        first = joinables[0]
        for joinable in joinables:
            if joinable.join_process_group is not first.join_process_group:
                raise ValueError("Using join context manager with multiple process groups")
            if joinable.join_device != first.join_device:
                raise ValueError("Using join context manager with multiple devices")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        self._process_group = first.join_process_group
        self._device = first.join_device
        self._rank = dist.get_rank(self._process_group)
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._enable and not type:
            self._stand_by()
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig.construct_disabled_join_config()

    def _stand_by(self) -> None:
        """Takes part in the iterations of the others until there are none."""
        is_last = True
        iterations = 0
        while self._count_active() > 0:
            if self._throw_on_early_termination:
                _refuse_exhaustion(self._process_group, self._device, True)
            is_last = False
            iterations += 1
            if iterations == _WARN_AFTER:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_WARN_AFTER}. This means that "
                    f"rank {self._rank} has at least {_WARN_AFTER} fewer inputs than other "
                    "currently-active ranks. This level of skew could lead to performance "
                    "degradation during training.",
                    stacklevel=3,
                )
            for hook in self._join_hooks:
                hook.main_hook()
        for hook in self._join_hooks:
            hook.post_hook(is_last)

    def _count_active(self) -> int:
        active = rl.zeros(1, device=self._device)
        dist.all_reduce(active, group=self._process_group)
        return int(active.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tells the processes that stand by that another iteration comes.

        Args:
            joinable: what calls this before the collectives of an iteration.

        Returns:
            What waits until all know: afterwards its result is [number of processes that still
            have batches]. None outside of a Join, and for other joinables than its first.

        Raises:
            RuntimeError: with throw_on_early_termination, if a process has no batch left.
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = dist.all_reduce(rl.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            _refuse_exhaustion(group, device, False)
        return work


def _refuse_exhaustion(group: Any, device: rl.device, is_exhausted: bool) -> None:
    """Raises in all processes if one of them has no batch left; all must call it."""
    count = rl.tensor([float(is_exhausted)], device=device)
    dist.all_reduce(count, group=group)
    if count.item() > 0:
        raise RuntimeError(
            "Detected at least one rank that exhausted inputs. Throwing across all ranks."
        )
