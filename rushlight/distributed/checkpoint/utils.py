"""The error of save and load, where programs look for it."""

from rushlight.distributed.checkpoint._saving import CheckpointException as CheckpointException

__all__ = ["CheckpointException"]
