"""All functions of rushlight.distributed, where programs import them from too."""

from __future__ import annotations

from rushlight.distributed import *  # noqa: F403
from rushlight.distributed.groups import _get_default_group as _get_default_group
from rushlight.distributed.groups import _get_default_store as _get_default_store
from rushlight.distributed.groups import _rank_not_in_group as _rank_not_in_group
from rushlight.distributed.groups import get_global_rank
from rushlight.distributed.groups import named as _named
from rushlight.distributed.own_groups import _get_process_group_store as _get_process_group_store
from rushlight.distributed.own_groups import _new_process_group_helper as _new_process_group_helper
from rushlight.distributed.own_groups import _world as _world

_resolve_process_group = _named
_get_global_rank = get_global_rank  # its older name
