"""Collectives that gradients flow through, in functional."""

from rushlight.distributed.nn.functional import *  # noqa: F403
