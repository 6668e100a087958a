"""Places of images: comparing all pairs of them, and bringing a flow to finer ones."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F


class CorrBlock(nn.Module):
    """Compares all pairs of places at several scales, and looks the comparisons up.

    Args:
        num_levels: number of scales, each half the size of the one before.
        radius: how far around a place to look.
    """

    def __init__(self, *, num_levels: int = 4, radius: int = 4) -> None:
        super().__init__()
        self.num_levels = num_levels
        self.radius = radius
        self.corr_pyramid: list[Tensor] = []
        self.out_channels = num_levels * (2 * radius + 1) ** 2

    def build_pyramid(self, fmap1: Tensor, fmap2: Tensor) -> None:
        """Compares features (N, C, H, W), as products over sqrt(C), and averages at each scale."""
        if fmap1.shape != fmap2.shape:
            raise ValueError(
                "Input feature maps should have the same shape, instead got "
                f"{fmap1.shape} (fmap1.shape) != {fmap2.shape} (fmap2.shape)"
            )
        least = 2 * 2 ** (self.num_levels - 1)  # so that two places are left at the last scale
        if any(size < least for size in fmap1.shape[-2:]):
            raise ValueError(
                "Feature maps are too small to be down-sampled by the correlation pyramid. H and W "
                f"of feature maps should be at least {least}; got: {fmap1.shape[-2:]}. Remember "
                "that input images to the model are downsampled by 8, so that means their "
                f"dimensions should be at least 8 * {least} = {8 * least}."
            )
        N, C, H, W = fmap1.shape
        products = fmap1.flatten(2).transpose(1, 2) @ fmap2.flatten(2)  # (N, H * W, H * W)
        level = products.reshape(N * H * W, 1, H, W) / C**0.5
        self.corr_pyramid = [level]
        for _ in range(self.num_levels - 1):
            level = F.avg_pool2d(level, kernel_size=2, stride=2)
            self.corr_pyramid.append(level)

    def index_pyramid(self, centroids_coords: Tensor) -> Tensor:
        """Returns the comparisons (N, out_channels, H, W) around places (N, 2, H, W)."""
        N, _, H, W = centroids_coords.shape
        side = 2 * self.radius + 1
        steps = rl.linspace(-self.radius, self.radius, side, device=centroids_coords.device)
        # Rows of the window go along x, which comes first in a place: so the weights were trained.
        delta = rl.stack(rl.meshgrid(steps, steps, indexing="ij"), dim=-1)[None]
        centers = centroids_coords.permute(0, 2, 3, 1).reshape(N * H * W, 1, 1, 2)
        found = []
        for level in self.corr_pyramid:
            found.append(_sample(level, centers + delta).view(N, H, W, -1))
            centers = centers / 2
        return rl.cat(found, dim=-1).permute(0, 3, 1, 2).contiguous()


def _sample(img: Tensor, places: Tensor) -> Tensor:
    """Images interpolated at places (N, h, w, 2), counted in pixels as (x, y)."""
    height, width = img.shape[-2:]
    last = rl.tensor([width - 1, max(height - 1, 1)], dtype=places.dtype, device=places.device)
    return F.grid_sample(img, 2 * places / last - 1, mode="bilinear", align_corners=True)


def make_places(batch: int, height: int, width: int, device: rl.device) -> Tensor:
    """(N, 2, H, W): for each place its x and y."""
    rows, columns = rl.meshgrid(
        rl.arange(height, device=device), rl.arange(width, device=device), indexing="ij"
    )
    return rl.stack((columns, rows)).float().expand(batch, -1, -1, -1)


def upsample(flow: Tensor, mask: Tensor | None, factor: int = 8) -> Tensor:
    """A flow (N, 2, H, W) of an image 8 times as large, each fine place a mean of coarse ones."""
    N, C, H, W = flow.shape
    if mask is None:
        size = (H * factor, W * factor)
        return factor * F.interpolate(flow, size=size, mode="bilinear", align_corners=True)
    weights = mask.view(N, 1, 9, factor, factor, H, W).softmax(dim=2)
    coarse = F.unfold(factor * flow, kernel_size=3, padding=1).view(N, C, 9, 1, 1, H, W)
    fine = (weights * coarse).sum(dim=2)  # (N, C, factor, factor, H, W)
    return fine.permute(0, 1, 4, 2, 5, 3).reshape(N, C, H * factor, W * factor)
