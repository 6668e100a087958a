"""The old name of rushlight.distributed.device_mesh."""

from rushlight.distributed.device_mesh import *  # noqa: F403
