"""The old name of rushlight.distributed.tensor."""

from rushlight.distributed.tensor import *  # noqa: F403
