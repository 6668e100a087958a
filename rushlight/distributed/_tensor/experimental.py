"""The old name of rushlight.distributed.tensor.experimental."""

from rushlight.distributed.tensor.experimental import *  # noqa: F403
