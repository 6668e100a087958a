"""distributed.fsdp, under an older name."""

from rushlight.distributed.fsdp import *  # noqa: F403
