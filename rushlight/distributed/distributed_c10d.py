"""All functions of rushlight.distributed, where programs import them from too."""

from __future__ import annotations

from rushlight.distributed import *  # noqa: F403
from rushlight.distributed.groups import _get_default_group as _get_default_group
from rushlight.distributed.groups import _get_default_store as _get_default_store
from rushlight.distributed.groups import get_global_rank

_get_global_rank = get_global_rank  # its older name
