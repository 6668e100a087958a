"""Collectives that are begun together: NCCL does those of GPUs as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight import Tensor
from rushlight.distributed.groups import default_group
from rushlight.distributed.process_group import ProcessGroup
from rushlight.distributed.work import Work

if TYPE_CHECKING:
    from rushlight.distributed.nccl import Clique, Start

__all__ = ["Coalescing"]


class Coalescing:
    """Collectives of a group that are begun together, and waited for as one.

    Args:
        group: their group.
        async_ops: whether they may go on after the scope, until wait().
    """

    def __init__(self, group: ProcessGroup, async_ops: bool) -> None:
        self._group = group
        self._async_ops = async_ops
        self._calls: dict[Clique, list[tuple[Start, Sequence[Tensor], list[Tensor]]]] = {}
        self.works: list[Work] = []

    def add(
        self, clique: Clique, start: Start, tensors: Sequence[Tensor], results: list[Tensor]
    ) -> None:
        """Keeps a collective of GPUs for the end of the scope."""
        self._calls.setdefault(clique, []).append((start, tensors, results))

    def __enter__(self) -> Coalescing:
        self._group.coalescing = self
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._group.coalescing = None
        if kind is not None:
            return
        for clique, calls in self._calls.items():

            def start(comm: Any, calls: Any = calls) -> list[tuple[Tensor, Tensor]]:
                from rushlight.distributed.nccl import grouped

                copies = []
                with grouped():
                    for begin, _, _ in calls:
                        copies += begin(comm)
                return copies

            tensors = [tensor for _, some, _ in calls for tensor in some]
            results = [tensor for _, _, some in calls for tensor in some]
            work = clique.run("coalesced collectives", start, tensors, results, True)
            assert work is not None
            self.works.append(work)
        self._calls.clear()
        if not self._async_ops:
            self.wait()

    def wait(self) -> None:
        """Waits for all of them, as Work.wait does."""
        for work in self.works:
            work.wait()
        self.works.clear()


def _coalescing_manager(
    group: ProcessGroup | None = None, device: Any = None, async_ops: bool = False
) -> Coalescing:
    """Returns a scope that begins the collectives in it together, when it ends.

    Args:
        group: whose collectives; all processes by default.
        device: ignored, as the tensors tell.
        async_ops: whether the scope ends without waiting; then the manager has wait().
    """
    return Coalescing(default_group() if group is None else group, async_ops)
