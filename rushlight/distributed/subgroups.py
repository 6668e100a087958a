"""Dividing the ranks of a group into several."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from rushlight.distributed.groups import (
    GroupMember,
    default_group,
    get_global_rank,
    get_process_group_ranks,
    new_group,
)
from rushlight.distributed.process_group import ProcessGroup

__all__ = ["new_subgroups", "new_subgroups_by_enumeration", "split_group"]


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[Any]]:
    """Makes groups of `group_size` neighboring ranks each.

    Args:
        group_size: how many; those of a machine (LOCAL_WORLD_SIZE) by default.
        group: whose ranks are divided.
        timeout, backend, pg_options, group_desc: as for new_group.

    Returns:
        The group that this rank is in, and all of them.

    Raises:
        ValueError: if the number of ranks is not a multiple of group_size.
    """
    size = int(os.environ.get("LOCAL_WORLD_SIZE", "0")) if group_size is None else group_size
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    ranks = get_process_group_ranks(group)
    if len(ranks) < size:
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size")
    if len(ranks) % size:
        raise ValueError(f"The world size ({len(ranks)}) must be divisible by '{size=}'")
    parts = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Makes groups of the ranks listed; see new_subgroups.

    Raises:
        ValueError: if a rank is in several.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    everyone = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(everyone)) < len(everyone):
        raise ValueError(f"The ranks {ranks_per_subgroup_list} are in several subgroups.")
    groups = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    mine = [made for made in groups if made != GroupMember.NON_GROUP_MEMBER]
    return (mine[0] if mine else None), groups


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> Any:
    """Splits a group: makes groups of the ranks listed, which are ranks of the parent.

    Args:
        parent_pg: whose ranks are split; all of them call it.
        split_ranks: the ranks of each part.
        timeout, pg_options, group_desc, backend: as for new_group.

    Returns:
        The group that this rank is in; None if it is in none.

    Raises:
        ValueError: if split_ranks is missing or a rank is in several parts.
    """
    parent = default_group() if parent_pg is None else parent_pg
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parts = [[get_global_rank(parent, rank) for rank in ranks] for ranks in split_ranks]
    mine, _ = new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)
    return mine
