"""Layers that compare two batches of vectors."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """Norm of the difference of each pair of vectors: ||x1 - x2 + eps||_p.

    Args:
        p: order of the norm.
        eps: added to every difference, so that the gradient exists at 0.
        keepdim: whether to keep the last dimension, with size 1.

    Shape:
        (N, D) or (D), twice, to (N) or ().

    Example:
        >>> distance = torch.nn.PairwiseDistance(eps=0.0)
        >>> distance(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2)).tolist()
        [5.0]
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Cosine of the angle of each pair of vectors: x1 . x2 / (||x1|| ||x2||).

    Args:
        dim: dimension of the vectors' elements.
        eps: smallest norm to divide by.

    Shape:
        (*, D, *), twice, to (*, *), where D is at dim.

    Example:
        >>> x, y = torch.tensor([3.0, 4.0]), torch.tensor([4.0, -3.0])
        >>> torch.nn.CosineSimilarity(dim=0)(x, y).item()
        0.0
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
