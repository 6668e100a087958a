"""What checkpoints are read from and written to, where programs look for it."""

from rushlight.distributed.checkpoint.filesystem import StorageReader as StorageReader

__all__ = ["StorageReader"]
