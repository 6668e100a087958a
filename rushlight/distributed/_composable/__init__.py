"""Older homes of names, as programs import them."""

from rushlight.distributed._composable.replicate import replicate
from rushlight.distributed.fsdp import fully_shard

__all__ = ["fully_shard", "replicate"]
