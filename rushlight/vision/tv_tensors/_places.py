"""Bounding boxes and keypoints: the TVTensors that hold places in an image of known size."""

from __future__ import annotations

from enum import Enum
from typing import Any, Self

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.tv_tensors._base import TVTensor


class BoundingBoxFormat(Enum):
    """What the numbers of a box are.

    XYXY is left, top, right, bottom; W and H are width and height, CX and CY the center. R is an
    angle in degrees, counter-clockwise; with it X and Y are the corner that is left and top before
    the rotation. XYXYXYXY are the corners in their order.
    """

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"
    XYWHR = "XYWHR"
    CXCYWHR = "CXCYWHR"
    XYXYXYXY = "XYXYXYXY"


_ROTATED = {BoundingBoxFormat.XYWHR, BoundingBoxFormat.CXCYWHR, BoundingBoxFormat.XYXYXYXY}


def is_rotated_bounding_format(format: BoundingBoxFormat | str) -> bool:
    """Whether boxes of a format may be rotated.

    Raises:
        ValueError: if it is neither a format nor the name of one.
    """
    if isinstance(format, str):
        return format in {each.value for each in _ROTATED}
    if isinstance(format, BoundingBoxFormat):
        return format in _ROTATED
    raise ValueError(
        f"is_rotated_bounding_format: got {type(format).__name__}. "
        "A format is a BoundingBoxFormat or its name."
    )


def parse_format(format: BoundingBoxFormat | str) -> BoundingBoxFormat:
    """The format of a name in any case of letters."""
    return BoundingBoxFormat[format.upper()] if isinstance(format, str) else format


class BoundingBoxes(TVTensor):
    """The boxes of one image, (N, 4), or (N, 5) and (N, 8) for the rotated formats.

    Args:
        data: what as_tensor takes; one box alone becomes (1, ...).
        format: what the numbers are, a BoundingBoxFormat or its name.
        canvas_size: (height, width) of the image.
        clamping_mode: how transforms keep the boxes inside the image: "soft", the default, keeps
            rotated boxes that are partly outside large, "hard" cuts them, None leaves all alone.
        dtype: the dtype; by default that of the data.
        device: the device; by default that of the data.
        requires_grad: whether to record; by default what the data does.

    Raises:
        ValueError: if the data have more than two dimensions, if the clamping mode is none of these
            or if rotated boxes are integers.

    Example:
        >>> tv_tensors.BoundingBoxes([1, 2, 3, 4], format="xyxy", canvas_size=(8, 9)).canvas_size
        (8, 9)
    """

    _attributes = ("format", "canvas_size", "clamping_mode")
    format: BoundingBoxFormat
    canvas_size: tuple[int, int]
    clamping_mode: str | None

    def __new__(
        cls,
        data: Any,
        *,
        format: BoundingBoxFormat | str,
        canvas_size: tuple[int, int],
        clamping_mode: str | None = "soft",
        dtype: rl.dtype | None = None,
        device: rl.device | str | int | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        format = parse_format(format)
        if format in _ROTATED and not tensor.is_floating_point():
            raise ValueError(
                f"BoundingBoxes: got {tensor.dtype} for {format.value}. "
                "Rotated boxes are floating-point numbers. Convert them with .float()."
            )
        known = {"format": format, "canvas_size": canvas_size, "clamping_mode": clamping_mode}
        return cls._checked(tensor, known)

    @classmethod
    def _checked(cls, tensor: Tensor, known: dict[str, Any]) -> Self:
        if tensor.ndim == 1:
            tensor = tensor.unsqueeze(0)
        elif tensor.ndim != 2:
            raise ValueError(
                f"BoundingBoxes: got {tensor.ndim} dimensions. The boxes of an image have the "
                "shape (N, 4), (N, 5) or (N, 8)."
            )
        mode = known["clamping_mode"]
        if mode not in (None, "hard", "soft"):
            raise ValueError(
                f"BoundingBoxes: clamping_mode is {mode!r}. It must be 'soft', 'hard' or None."
            )
        return cls._like(tensor, None, **known)

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Self:
        """The tensor as boxes that know what like knows, or what is given instead."""
        known = {name: kwargs.get(name, getattr(like, name)) for name in cls._attributes}
        return cls._checked(tensor, known)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._named()


class KeyPoints(TVTensor):
    """Points (x, y) in one image, (..., 2).

    Args:
        data: what as_tensor takes; one point alone becomes (1, 2).
        canvas_size: (height, width) of the image.
        dtype: the dtype; by default that of the data.
        device: the device; by default that of the data.
        requires_grad: whether to record; by default what the data does.

    Raises:
        ValueError: if the last dimension is not two.
    """

    _attributes = ("canvas_size",)
    canvas_size: tuple[int, int]

    def __new__(
        cls,
        data: Any,
        *,
        canvas_size: tuple[int, int],
        dtype: rl.dtype | None = None,
        device: rl.device | str | int | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        return cls._checked(tensor, canvas_size)

    @classmethod
    def _checked(cls, tensor: Tensor, canvas_size: tuple[int, int]) -> Self:
        if tensor.ndim == 1:
            tensor = tensor.unsqueeze(0)
        elif tensor.ndim == 0 or tensor.shape[-1] != 2:
            raise ValueError(
                f"KeyPoints: got the shape {tuple(tensor.shape)}. Points have the shape (..., 2)."
            )
        return cls._like(tensor, None, canvas_size=canvas_size)

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Self:
        """The tensor as points that know what like knows, or what is given instead."""
        return cls._checked(tensor, kwargs.get("canvas_size", like.canvas_size))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._named()
