"""The old name of where DTensor and what makes one stand."""

from rushlight.distributed.tensor import *  # noqa: F403
