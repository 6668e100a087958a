"""Names that PyTorch may still change."""

from rushlight.distributed.tensor._implicit import implicit_replication

__all__ = ["implicit_replication"]
