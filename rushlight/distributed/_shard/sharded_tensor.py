"""The tensors in parts that PyTorch had before DTensor."""

from rushlight import Tensor

__all__ = ["ShardedTensor"]


class ShardedTensor(Tensor):
    """Such a tensor, which no tensor is; libraries ask for it by isinstance."""
