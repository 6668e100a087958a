"""Pooling over regions of interest (rois): each becomes a small grid of features.

The boxes of rois are a tensor (R, 5) of (image, x1, y1, x2, y2), or a list with a tensor (L, 4) for
each image.
"""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as rl
from rushlight import _C, Tensor, nn
from rushlight._repr import Shown

__all__ = [
    "PSRoIAlign",
    "PSRoIPool",
    "RoIAlign",
    "RoIPool",
    "ps_roi_align",
    "ps_roi_pool",
    "roi_align",
    "roi_pool",
]

# torch.fx records each as one node.
__fx_wrapped__ = {"ps_roi_align", "ps_roi_pool", "roi_align", "roi_pool"}

Boxes = Tensor | Sequence[Tensor]
Size = int | Sequence[int]

_ops = _C.ops("vision.ops")
_roi_align = _ops["_roi_align"]
_roi_pool = _ops["_roi_pool"]
_ps_roi_align = _ops["_ps_roi_align"]
_ps_roi_pool = _ops["_ps_roi_pool"]


def convert_boxes_to_roi_format(boxes: Sequence[Tensor]) -> Tensor:
    """Returns the boxes (L, 4) of each image as rois (R, 5).

    Example:
        >>> convert_boxes_to_roi_format([torch.zeros(0, 4), torch.ones(1, 4)])
        tensor([[1., 1., 1., 1., 1.]])
    """
    numbered = [rl.nn.functional.pad(b, (1, 0), value=i) for i, b in enumerate(boxes)]
    return rl.cat(numbered) if numbered else rl.zeros(0, 5)


def _rois(boxes: Boxes, op: str) -> Tensor:
    if isinstance(boxes, Tensor):
        if boxes.dim() != 2 or boxes.shape[1] != 5:
            raise AssertionError(
                f"{op}: The boxes tensor shape is not correct as Tensor[K, 5]: it is "
                f"{tuple(boxes.shape)}."
            )
        return boxes
    if not isinstance(boxes, (list, tuple)) or not all(isinstance(b, Tensor) for b in boxes):
        raise AssertionError(
            f"{op}: boxes is expected to be a Tensor[L, 5] or a List[Tensor[K, 4]], but is "
            f"{type(boxes).__name__}."
        )
    for b in boxes:
        if b.dim() != 2 or b.shape[1] != 4:
            raise AssertionError(
                f"{op}: The shape of the tensor in the boxes list is not correct as "
                f"List[Tensor[L, 4]]: one is {tuple(b.shape)}."
            )
    return convert_boxes_to_roi_format(boxes)


def _pair(size: Size) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else (size[0], size[-1])
    return height, width


def roi_align(
    input: Tensor,
    boxes: Boxes,
    output_size: Size,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """Returns the mean of bilinear samples in each bin of the rois.

    Source: He et al., "Mask R-CNN", 2017.

    Args:
        input: (N, C, H, W).
        boxes: the rois.
        output_size: bins (down, across).
        spatial_scale: from the coordinates of boxes to pixels of input.
        sampling_ratio: samples of a bin along each axis; about one for each pixel if not positive.
        aligned: whether a coordinate of 0.5 is the center of the first pixel, and not 0.

    Returns:
        (R, C, *output_size). Boxes have no gradient.

    Raises:
        AssertionError: if boxes have another form.
        IndexError: if a roi is of an image that is not there.
        ValueError: if a coordinate is not finite.

    Example:
        >>> image = torch.arange(16.0).reshape(1, 1, 4, 4)
        >>> roi_align(image, [torch.tensor([[0.0, 0.0, 2.0, 2.0]])], 2)
        tensor([[[[2.5000, 3.5000],
                  [6.5000, 7.5000]]]])
    """
    rois = _rois(boxes, "roi_align")
    return _roi_align(input, rois, spatial_scale, *_pair(output_size), sampling_ratio, aligned)


def roi_pool(input: Tensor, boxes: Boxes, output_size: Size, spatial_scale: float = 1.0) -> Tensor:
    """Returns the largest pixel in each bin of the rois, 0 where a bin is empty.

    Source: Girshick, "Fast R-CNN", 2015.

    Args:
        input: (N, C, H, W).
        boxes: the rois.
        output_size: bins (down, across).
        spatial_scale: from the coordinates of boxes to pixels of input.

    Returns:
        (R, C, *output_size).

    Raises:
        AssertionError, IndexError, ValueError: as roi_align.
    """
    return _roi_pool(input, _rois(boxes, "roi_pool"), spatial_scale, *_pair(output_size))


def ps_roi_align(
    input: Tensor,
    boxes: Boxes,
    output_size: Size,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
) -> Tensor:
    """Returns roi_align where each bin has channels of its own.

    Source: Li et al., "Light-Head R-CNN", 2017.

    Args:
        input: (N, C * bins, H, W).
        boxes: the rois.
        output_size: bins (down, across).
        spatial_scale: from the coordinates of boxes to pixels of input.
        sampling_ratio: samples of a bin along each axis; about one for each pixel if not positive.

    Returns:
        (R, C, *output_size).

    Raises:
        AssertionError, IndexError, ValueError: as roi_align.
    """
    rois = _rois(boxes, "ps_roi_align")
    return _ps_roi_align(input, rois, spatial_scale, *_pair(output_size), sampling_ratio)


def ps_roi_pool(
    input: Tensor, boxes: Boxes, output_size: Size, spatial_scale: float = 1.0
) -> Tensor:
    """Returns the mean pixel in each bin of the rois, where bins have channels of their own.

    Source: Dai et al., "R-FCN", 2016.

    Args:
        input: (N, C * bins, H, W).
        boxes: the rois.
        output_size: bins (down, across).
        spatial_scale: from the coordinates of boxes to pixels of input.

    Returns:
        (R, C, *output_size).

    Raises:
        AssertionError, IndexError, ValueError: as roi_align.
    """
    return _ps_roi_pool(input, _rois(boxes, "ps_roi_pool"), spatial_scale, *_pair(output_size))


class RoIAlign(Shown, nn.Module):
    """Does roi_align.

    Example:
        >>> layer = RoIAlign(7, spatial_scale=0.25, sampling_ratio=2)
        >>> layer(torch.rand(1, 8, 16, 16), torch.tensor([[0.0, 4.0, 4.0, 40.0, 40.0]])).shape
        torch.Size([1, 8, 7, 7])
    """

    _shown = ("output_size", "spatial_scale", "sampling_ratio", "aligned")

    def __init__(
        self, output_size: Size, spatial_scale: float, sampling_ratio: int, aligned: bool = False
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio
        self.aligned = aligned

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        scale, ratio = self.spatial_scale, self.sampling_ratio
        return roi_align(input, rois, self.output_size, scale, ratio, self.aligned)


class RoIPool(Shown, nn.Module):
    """Does roi_pool."""

    _shown = ("output_size", "spatial_scale")

    def __init__(self, output_size: Size, spatial_scale: float) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)


class PSRoIAlign(Shown, nn.Module):
    """Does ps_roi_align."""

    _shown = ("output_size", "spatial_scale", "sampling_ratio")

    def __init__(self, output_size: int, spatial_scale: float, sampling_ratio: int) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        scale, ratio = self.spatial_scale, self.sampling_ratio
        return ps_roi_align(input, rois, self.output_size, scale, ratio)


class PSRoIPool(Shown, nn.Module):
    """Does ps_roi_pool."""

    _shown = ("output_size", "spatial_scale")

    def __init__(self, output_size: int, spatial_scale: float) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        return ps_roi_pool(input, rois, self.output_size, self.spatial_scale)
