"""Collectives that gradients flow through, in functional, and modules of other processes."""

from rushlight.distributed.nn.api.remote_module import RemoteModule as RemoteModule
from rushlight.distributed.nn.functional import *  # noqa: F403
