"""All functions of rushlight.distributed, where programs import them from too."""

from __future__ import annotations

from rushlight.distributed import *  # noqa: F403
from rushlight.distributed.groups import _get_default_group as _get_default_group
