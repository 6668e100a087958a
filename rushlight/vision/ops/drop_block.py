"""DropBlock: dropout of whole blocks of neighbors, which share what they know.

Source: Ghiasi et al., "DropBlock: A regularization method for convolutional networks", 2018.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F

__all__ = ["DropBlock2d", "DropBlock3d", "drop_block2d", "drop_block3d"]

__fx_wrapped__ = {"drop_block2d", "drop_block3d"}  # torch.fx records each as one node

_POOLS = {2: F.max_pool2d, 3: F.max_pool3d}


def _drop_block(
    input: Tensor, p: float, block_size: int, inplace: bool, eps: float, training: bool, dims: int
) -> Tensor:
    op = f"drop_block{dims}d"
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{op}: drop probability has to be between 0 and 1, but got {p}.")
    if input.dim() != dims + 2:
        raise ValueError(
            f"{op}: input should be {dims + 2} dimensional. Got {input.dim()} dimensions."
        )
    if not training or p == 0.0:
        return input
    sizes = input.shape[2:]
    block = min(block_size, *sizes)
    if block % 2 == 0:
        raise ValueError(f"{op}: block size should be odd. Got {block} which is even.")
    # The rate of centers, which lie where a whole block fits, so that p of all elements go.
    rate = p / block**dims
    for size in sizes:
        rate *= size / (size - block + 1)
    centers = rl.empty(
        (*input.shape[:2], *(size - block + 1 for size in sizes)),
        dtype=input.dtype,
        device=input.device,
    ).bernoulli_(rate)
    centers = F.pad(centers, [block // 2] * (2 * dims))
    kept = 1 - _POOLS[dims](centers, block, stride=1, padding=block // 2)
    scale = kept.numel() / (eps + kept.sum())
    if inplace:
        return input.mul_(kept).mul_(scale)
    return input * kept * scale


def drop_block2d(
    input: Tensor,
    p: float,
    block_size: int,
    inplace: bool = False,
    eps: float = 1e-06,
    training: bool = True,
) -> Tensor:
    """Returns images with square blocks set to zero and the rest scaled up.

    Args:
        input: (N, C, H, W).
        p: the share of elements that go.
        block_size: side of a block, odd; the image's if that is smaller.
        inplace: whether input is changed.
        eps: added to the number of elements that stay.
        training: if False, input is returned.

    Raises:
        ValueError: for another number of dims, a p outside of 0 to 1, an even block.
    """
    return _drop_block(input, p, block_size, inplace, eps, training, 2)


def drop_block3d(
    input: Tensor,
    p: float,
    block_size: int,
    inplace: bool = False,
    eps: float = 1e-06,
    training: bool = True,
) -> Tensor:
    """Returns volumes (N, C, D, H, W) with cubic blocks set to zero: see drop_block2d."""
    return _drop_block(input, p, block_size, inplace, eps, training, 3)


class DropBlock2d(nn.Module):
    """Does drop_block2d while training.

    Example:
        >>> layer = DropBlock2d(0.1, 3).eval()
        >>> layer(torch.ones(1, 1, 2, 2))
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """

    def __init__(
        self, p: float, block_size: int, inplace: bool = False, eps: float = 1e-06
    ) -> None:
        super().__init__()
        self.p = p
        self.block_size = block_size
        self.inplace = inplace
        self.eps = eps

    def forward(self, input: Tensor) -> Tensor:
        return drop_block2d(input, self.p, self.block_size, self.inplace, self.eps, self.training)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(p={self.p}, block_size={self.block_size}, inplace={self.inplace})"


class DropBlock3d(DropBlock2d):
    """Does drop_block3d while training."""

    def forward(self, input: Tensor) -> Tensor:
        return drop_block3d(input, self.p, self.block_size, self.inplace, self.eps, self.training)
