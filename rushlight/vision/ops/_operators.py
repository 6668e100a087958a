"""The operators torch.ops.torchvision.nms and others, which libraries and recorded graphs call.

Arguments and results are torchvision's; the functions of vision.ops are what programs call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._op_overload import OpOverloadPacket

_ops = _C.ops("vision.ops")
_roi_maxima = _C.ops("core")["_roi_maxima"]


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that stay, as vision.ops.nms."""
    return _ops["nms"](dets, scores, iou_threshold)


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """vision.ops.roi_align of rois (R, 5)."""
    size = pooled_height, pooled_width
    return _ops["_roi_align"](input, rois, spatial_scale, *size, sampling_ratio, aligned)


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """vision.ops.roi_pool of rois (R, 5), and where in its plane each maximum is, -1 for none."""
    values, places = _roi_maxima(input, rois, spatial_scale, pooled_height, pooled_width)
    return values, places.int()


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """vision.ops.ps_roi_align of rois (R, 5), and which plane each result is of."""
    size = pooled_height, pooled_width
    result = _ops["_ps_roi_align"](input, rois, spatial_scale, *size, sampling_ratio)
    return result, _planes(result)


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """vision.ops.ps_roi_pool of rois (R, 5), and which plane each result is of."""
    result = _ops["_ps_roi_pool"](input, rois, spatial_scale, pooled_height, pooled_width)
    return result, _planes(result)


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """vision.ops.deform_conv2d; the shapes say how many groups there are."""
    sizes = (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w)
    return _ops["_deform_conv2d"](input, weight, offset, mask if use_mask else None, bias, *sizes)


def _planes(result: Tensor) -> Tensor:
    shape = result.shape[1:]
    numbers = rl.arange(math.prod(shape), dtype=rl.int32, device=result.device)
    return numbers.view(shape).expand(result.shape).contiguous()


_OPERATORS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (deform_conv2d, nms, ps_roi_align, ps_roi_pool, roi_align, roi_pool)
}


def packet_of(name: str) -> OpOverloadPacket | None:
    """The operator of a name, None if there is none."""
    function = _OPERATORS.get(name)
    return None if function is None else OpOverloadPacket("torchvision", name, function)
