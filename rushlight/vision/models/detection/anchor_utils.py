"""The boxes from which detectors start: around each place of each map, the same few shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.models.detection.image_list import ImageList

__all__ = ["AnchorGenerator", "DefaultBoxGenerator"]


def _places(height: int, width: int, first: float, device: rl.device) -> Tensor:
    """The places of a map, (height * width, 2) of x and y, counted from `first`."""
    y = rl.arange(height, dtype=rl.float32, device=device) + first
    x = rl.arange(width, dtype=rl.float32, device=device) + first
    y, x = rl.meshgrid(y, x, indexing="ij")
    return rl.stack((x.flatten(), y.flatten()), 1)


class AnchorGenerator(nn.Module):
    """Anchors of all sizes and aspect ratios around each place of each map.

    Args:
        sizes: for each map, its sizes, the square roots of areas; or one size for each map.
        aspect_ratios: for each map, heights over widths; or those of all maps.

    Example:
        >>> images = ImageList(torch.zeros(1, 3, 64, 64), [(64, 64)])
        >>> generator = AnchorGenerator(((32,),), ((1.0,),))
        >>> generator(images, [torch.zeros(1, 8, 2, 2)])[0][0]
        tensor([-16., -16.,  16.,  16.])
    """

    def __init__(
        self,
        sizes: Sequence[int | Sequence[int]] = ((128, 256, 512),),
        aspect_ratios: Sequence[float | Sequence[float]] = ((0.5, 1.0, 2.0),),
    ) -> None:
        super().__init__()
        are_lists = isinstance(sizes[0], (list, tuple))
        self.sizes: Any = sizes if are_lists else tuple((size,) for size in sizes)
        are_lists = isinstance(aspect_ratios[0], (list, tuple))
        self.aspect_ratios: Any = aspect_ratios if are_lists else (aspect_ratios,) * len(sizes)
        self.cell_anchors = [
            self.generate_anchors(s, a)
            for s, a in zip(self.sizes, self.aspect_ratios, strict=False)
        ]

    def generate_anchors(
        self,
        scales: Sequence[int],
        aspect_ratios: Sequence[float],
        dtype: rl.dtype = rl.float32,
        device: rl.device | str = "cpu",
    ) -> Tensor:
        """Returns the anchors (ratios * scales, 4) around 0, with whole coordinates."""
        scale = rl.tensor(scales, dtype=dtype, device=device)
        heights = rl.tensor(aspect_ratios, dtype=dtype, device=device).sqrt()
        size = rl.stack((1 / heights, heights), 1)[:, None] * scale[:, None]  # (ratios, scales, 2)
        half = size.flatten(0, 1) / 2
        return rl.cat((-half, half), 1).round()

    def set_cell_anchors(self, dtype: rl.dtype, device: rl.device) -> None:
        """Moves the anchors around 0."""
        self.cell_anchors = [anchors.to(device, dtype) for anchors in self.cell_anchors]

    def num_anchors_per_location(self) -> list[int]:
        """Returns for each map how many anchors a place has."""
        return [len(s) * len(a) for s, a in zip(self.sizes, self.aspect_ratios, strict=False)]

    def grid_anchors(
        self, grid_sizes: Sequence[Sequence[int]], strides: Sequence[Sequence[int]]
    ) -> list[Tensor]:
        """Returns the anchors (places * shapes, 4) of maps of given sizes and steps.

        Raises:
            AssertionError: if there are not as many maps as sizes.
        """
        if not len(grid_sizes) == len(strides) == len(self.cell_anchors):
            raise AssertionError(
                "AnchorGenerator: Anchors should be Tuple[Tuple[int]] because each feature map "
                "could potentially have different sizes and aspect ratios. There needs to be a "
                "match between the number of feature maps passed and the number of sizes / aspect "
                f"ratios specified, but they are {len(grid_sizes)} and {len(self.cell_anchors)}."
            )
        anchors = []
        for (height, width), (down, across), cell in zip(
            grid_sizes, strides, self.cell_anchors, strict=True
        ):
            step = rl.tensor([across, down], device=cell.device)
            at = _places(height, width, 0, cell.device) * step
            anchors.append((at.repeat(1, 2)[:, None] + cell).reshape(-1, 4))
        return anchors

    def forward(self, image_list: ImageList, feature_maps: list[Tensor]) -> list[Tensor]:
        """Returns the anchors (A, 4) of each image, which are the same."""
        height, width = image_list.tensors.shape[-2:]
        sizes = [features.shape[-2:] for features in feature_maps]
        strides = [(height // down, width // across) for down, across in sizes]
        self.set_cell_anchors(feature_maps[0].dtype, feature_maps[0].device)
        anchors = rl.cat(self.grid_anchors(sizes, strides))
        return [anchors for _ in image_list.image_sizes]


class DefaultBoxGenerator(nn.Module):
    """SSD's default boxes: sizes that grow from map to map, in shares of the image.

    Source: Liu et al., "SSD: Single Shot MultiBox Detector", 2016, section 2.2.

    Args:
        aspect_ratios: for each map, ratios besides 1, each also the other way round.
        min_ratio: share of the image of the first map's boxes.
        max_ratio: share of the last one's.
        scales: the shares of all maps and one more, in place of min_ratio and max_ratio.
        steps: pixels between the places of each map; else the places fill the image.
        clip: whether a box is at most the image.
    """

    def __init__(
        self,
        aspect_ratios: list[list[int]],
        min_ratio: float = 0.15,
        max_ratio: float = 0.9,
        scales: list[float] | None = None,
        steps: list[int] | None = None,
        clip: bool = True,
    ) -> None:
        super().__init__()
        if steps is not None and len(aspect_ratios) != len(steps):
            raise ValueError(
                "DefaultBoxGenerator: aspect_ratios and steps should have the same length, but "
                f"they have {len(aspect_ratios)} and {len(steps)}."
            )
        self.aspect_ratios = aspect_ratios
        self.steps = steps
        self.clip = clip
        if scales is None:
            maps = len(aspect_ratios)
            step = (max_ratio - min_ratio) / (maps - 1) if maps > 1 else 0.0
            scales = [min_ratio + step * k for k in range(maps)]
            scales.append(1.0 if maps > 1 else max_ratio)
        self.scales = scales
        self._wh_pairs = [self._shapes(k) for k in range(len(aspect_ratios))]

    def _shapes(self, k: int) -> Tensor:
        """The widths and heights (shapes, 2) of map k."""
        scale, between = self.scales[k], math.sqrt(self.scales[k] * self.scales[k + 1])
        shapes = [(scale, scale), (between, between)]
        for ratio in self.aspect_ratios[k]:
            wide, narrow = scale * math.sqrt(ratio), scale / math.sqrt(ratio)
            shapes += [(wide, narrow), (narrow, wide)]
        return rl.tensor(shapes, dtype=rl.float32)

    def num_anchors_per_location(self) -> list[int]:
        """Returns for each map how many boxes a place has."""
        return [2 + 2 * len(ratios) for ratios in self.aspect_ratios]

    def forward(self, image_list: ImageList, feature_maps: list[Tensor]) -> list[Tensor]:
        """Returns the boxes (A, 4) of each image, in pixels."""
        height, width = image_list.tensors.shape[-2:]
        device = feature_maps[0].device
        corners = []
        for k, features in enumerate(feature_maps):
            down, across = features.shape[-2:]
            if self.steps is not None:
                counts = [width / self.steps[k], height / self.steps[k]]
            else:
                counts = [across, down]
            centers = _places(down, across, 0.5, device) / rl.tensor(
                counts, dtype=rl.float32, device=device
            )
            shapes = self._wh_pairs[k].to(device)
            half = (shapes.clamp(0, 1) if self.clip else shapes) / 2
            centers = centers[:, None]  # (places, 1, 2)
            corners.append(rl.cat((centers - half, centers + half), -1).reshape(-1, 4))
        boxes = rl.cat(corners).to(feature_maps[0].dtype)
        boxes = boxes * rl.tensor([width, height] * 2, dtype=boxes.dtype, device=device)
        return [boxes for _ in image_list.image_sizes]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(aspect_ratios={self.aspect_ratios}, clip={self.clip}, "
            f"scales={self.scales}, steps={self.steps})"
        )
