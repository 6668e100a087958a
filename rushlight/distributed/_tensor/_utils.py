"""The old name of rushlight.distributed.tensor._utils."""

from rushlight.distributed.tensor._utils import *  # noqa: F403
