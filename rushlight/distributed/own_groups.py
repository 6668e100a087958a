"""Groups of processes that need not be one job: they find each other through a store of their own.

Programs that train and serve with different launchers join some of each so, by names that PyTorch
keeps private. Such a group has connections of its own; all else is as in groups.py.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from datetime import timedelta
from typing import Any

import rushlight as rl
from rushlight.distributed.backend import Backend, BackendConfig
from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.groups import _state, plugged
from rushlight.distributed.mesh import Mesh
from rushlight.distributed.process_group import BuiltinGroup, ProcessGroup
from rushlight.distributed.store import PrefixStore, Store, seconds_of

__all__ = ["ProcessGroupGloo"]


class _OwnGroup(BuiltinGroup):
    """A group whose connections are made through its store, and end with it."""

    _connections: Mesh | None = None

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta, **more: Any) -> None:
        seconds_of(timeout)
        if not 0 <= rank < size:
            raise ValueError(f"ProcessGroup: rank must be from 0 to {size - 1}, not {rank}.")
        self._connecting = threading.Lock()
        super().__init__(store, rank, size, timeout, mesh=self._connect, **more)

    def _connect(self) -> Mesh:
        with self._connecting:
            if self._connections is None:
                self._connections = Mesh(self.store, self._rank, self._size)
            return self._connections

    def place(self, rank: int) -> int:
        return rank

    def shutdown(self) -> None:
        super().shutdown()
        if self._connections is not None:
            self._connections.close()


class ProcessGroupGloo(_OwnGroup):
    """A group of processes that have a store in common, without init_process_group.

    Args:
        store: for this group alone; a PrefixStore makes it so.
        rank: of this process in the group.
        size: the number of its processes.
        timeout: how long a rank waits for another.

    Raises:
        ValueError: if the rank is not from 0 to size - 1.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> group = torch.distributed.ProcessGroupGloo(store, 0, 1)
        >>> x = torch.ones(2)
        >>> torch.distributed.all_reduce(x, group=group)
        >>> group.shutdown()
    """

    def __init__(
        self, store: Store, rank: int, size: int, timeout: timedelta = default_pg_timeout
    ) -> None:
        super().__init__(store, rank, size, timeout, backend=BackendConfig(Backend.GLOO))


def _new_process_group_helper(
    group_size: int,
    group_rank: int,
    global_ranks_in_group: Sequence[int],
    backend: str,
    store: Store,
    group_name: str,
    backend_options: Any = None,
    timeout: timedelta | None = None,
    pg_tag: str | None = None,
    device_id: rl.device | None = None,
    group_desc: str | None = None,
    *,
    pg_options: Any = None,
) -> tuple[ProcessGroup, Store]:
    """Makes a group of processes that have a store in common.

    Args:
        group_size: the number of its processes.
        group_rank: of this process in it.
        global_ranks_in_group: the ranks in the job, by rank in the group; if empty, 0, 1, ...
        backend, backend_options, device_id: as pg_options and the others of init_process_group.
        store: where they find each other.
        group_name: the same in all of them, and of no other group.
        timeout: how long a rank waits for another; 30 minutes by default.
        pg_tag: accepted for PyTorch's sake.
        group_desc: what the group is for.
        pg_options: the older name of backend_options.

    Returns:
        The group, and its part of the store.

    Raises:
        ValueError: if there is a group of this name.
    """
    if group_name in _state.groups:
        raise ValueError(
            f"The specified group name {group_name!r} has already been created, please use a "
            "different group name"
        )
    timeout = default_pg_timeout if timeout is None else timeout
    config = BackendConfig(backend)
    ranks = list(global_ranks_in_group) or list(range(group_size))
    own = PrefixStore(f"{group_name}/", store)
    if plugin := config.plugin():
        options = pg_options if backend_options is None else backend_options
        made = plugged(
            plugin, config, own, ranks, group_rank, timeout, group_name, group_desc, options
        )
    else:
        gpu = device_id.index if device_id is not None and device_id.type == "cuda" else None
        made = _OwnGroup(
            own,
            group_rank,
            group_size,
            timeout,
            ranks=ranks,
            group_name=group_name,
            group_desc=group_desc or "undefined",
            backend=config,
            device=gpu,
        )
    _state.groups[group_name] = made
    return made, own


def _get_process_group_store(group: ProcessGroup) -> Store:
    """The part of the store that a group has."""
    return group.store


class _RanksOfGroups(MutableMapping[ProcessGroup, dict[int, int]]):
    """The rank in the group by the rank in the job, of each group; it can be changed."""

    def __getitem__(self, group: ProcessGroup) -> dict[int, int]:
        return {rank: i for i, rank in enumerate(group.ranks)}

    def __setitem__(self, group: ProcessGroup, ranks: Mapping[int, int]) -> None:
        group.ranks = sorted(ranks, key=ranks.__getitem__)

    def __delitem__(self, group: ProcessGroup) -> None:
        raise TypeError("pg_group_ranks: a group keeps its ranks. Call destroy_process_group.")

    def __contains__(self, group: object) -> bool:
        return group in _state.groups.values()

    def __iter__(self) -> Iterator[ProcessGroup]:
        return iter(_state.groups.values())

    def __len__(self) -> int:
        return len(_state.groups)


class _World:
    """What is known of all groups, by the names that programs look it up by."""

    pg_group_ranks = _RanksOfGroups()

    @property
    def default_pg(self) -> ProcessGroup | None:
        """The group of the job."""
        return _state.default

    @property
    def pg_map(self) -> dict[ProcessGroup, tuple[str, Store]]:
        """The backend and the store of each group."""
        return {group: (group.name(), group.store) for group in _state.groups.values()}

    @property
    def pg_names(self) -> dict[ProcessGroup, str]:
        """The name of each group."""
        return {group: name for name, group in _state.groups.items()}


_world = _World()
