"""Pooling of boxes from the maps of a pyramid: large boxes from small maps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.ops.boxes import box_area
from rushlight.vision.ops.rois import convert_boxes_to_roi_format, roi_align

__all__ = ["LevelMapper", "MultiScaleRoIAlign"]


class LevelMapper:
    """Says for each box which level of a pyramid it belongs to.

    floor(canonical_level + log2(sqrt(area) / canonical_scale)), equation 1 of the paper about
    feature pyramids, between k_min and k_max, and counted from k_min.
    """

    def __init__(
        self,
        k_min: int,
        k_max: int,
        canonical_scale: int = 224,
        canonical_level: int = 4,
        eps: float = 1e-6,
    ) -> None:
        self.k_min = k_min
        self.k_max = k_max
        self.s0 = canonical_scale
        self.lvl0 = canonical_level
        self.eps = eps

    def __call__(self, boxlists: Sequence[Tensor]) -> Tensor:
        size = rl.sqrt(rl.cat([box_area(boxes) for boxes in boxlists]))
        level = rl.floor(self.lvl0 + rl.log2(size / self.s0) + self.eps)
        return level.clamp(self.k_min, self.k_max).to(rl.int64) - self.k_min


class MultiScaleRoIAlign(nn.Module):
    """Does roi_align of each box on the map of a pyramid that suits its size.

    Args:
        featmap_names: names of the maps that are used, the others are left alone.
        output_size: bins (down, across).
        sampling_ratio: of roi_align.
        canonical_scale: the size of boxes that belong to canonical_level.
        canonical_level: the level whose map is 1 / 2**level of the image.

    Example:
        >>> pool = MultiScaleRoIAlign(["low", "high"], 3, 2)
        >>> maps = {"low": torch.rand(1, 5, 64, 64), "high": torch.rand(1, 5, 32, 32)}
        >>> pool(maps, [torch.tensor([[10.0, 10.0, 70.0, 90.0]])], [(256, 256)]).shape
        torch.Size([1, 5, 3, 3])
    """

    def __init__(
        self,
        featmap_names: list[str],
        output_size: int | tuple[int, ...] | list[int],
        sampling_ratio: int,
        *,
        canonical_scale: int = 224,
        canonical_level: int = 4,
    ) -> None:
        super().__init__()
        self.featmap_names = featmap_names
        self.output_size = (
            (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
        )
        self.sampling_ratio = sampling_ratio
        self.canonical_scale = canonical_scale
        self.canonical_level = canonical_level
        self.scales: list[float] | None = None
        self.map_levels: LevelMapper | None = None

    def forward(
        self, x: dict[str, Tensor], boxes: list[Tensor], image_shapes: list[tuple[int, int]]
    ) -> Tensor:
        """Returns (number of boxes, C, *output_size).

        Args:
            x: maps (N, C, H, W) by name, largest first.
            boxes: (L, 4) for each image.
            image_shapes: (height, width) of each image before padding.

        Raises:
            ValueError: if there are no images.
        """
        maps = [value for name, value in x.items() if name in self.featmap_names]
        if self.scales is None or self.map_levels is None:
            self.scales, self.map_levels = self._find_scales(maps, image_shapes)
        rois = convert_boxes_to_roi_format(boxes)
        if len(maps) == 1:
            return self._pool(maps[0], rois, self.scales[0])
        levels = self.map_levels(boxes)
        result = rl.zeros(
            (len(rois), maps[0].shape[1], *self.output_size),
            dtype=maps[0].dtype,
            device=maps[0].device,
        )
        for level, (features, scale) in enumerate(zip(maps, self.scales, strict=True)):
            chosen = rl.where(levels == level)[0]
            if len(chosen) > 0:
                pooled = self._pool(features, rois[chosen], scale)
                result = result.index_put((chosen,), pooled.to(result.dtype))
        return result

    def _pool(self, features: Tensor, rois: Tensor, scale: float) -> Tensor:
        return roi_align(features, rois, self.output_size, scale, self.sampling_ratio)

    def _find_scales(
        self, maps: list[Tensor], image_shapes: list[tuple[int, int]]
    ) -> tuple[list[float], LevelMapper]:
        """The scale of each map, a power of two, and the levels of these."""
        if not image_shapes:
            raise ValueError("MultiScaleRoIAlign: images list should not be empty.")
        height = max(height for height, _ in image_shapes)
        levels = [round(math.log2(height / features.shape[-2])) for features in maps]
        mapper = LevelMapper(levels[0], levels[-1], self.canonical_scale, self.canonical_level)
        return [0.5**level for level in levels], mapper

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(featmap_names={self.featmap_names}, "
            f"output_size={self.output_size}, sampling_ratio={self.sampling_ratio})"
        )
