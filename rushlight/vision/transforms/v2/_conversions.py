"""Transforms that change what values are: types, dtypes, formats of boxes, numbers of frames."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.vision._pillow import is_pil_image
from rushlight.vision.transforms._functional import box_formats, conversions, sizes
from rushlight.vision.transforms._functional.registry import is_pure_tensor
from rushlight.vision.transforms.v2._transform import Transform
from rushlight.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    KeyPoints,
    TVTensor,
    Video,
)


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "ndim")


class PILToTensor(Transform):
    """Turn Pillow images into tensors (C, H, W) of the same values."""

    _transformed_types = (is_pil_image,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Tensor:
        return conversions.pil_to_tensor(inpt)


class ToImage(Transform):
    """Turn tensors, Pillow images and arrays (H, W, C) into tv_tensors.Image, values unchanged.

    Example:
        >>> type(v2.ToImage()(torch.zeros(3, 2, 2))).__name__
        'Image'
    """

    _transformed_types = (is_pure_tensor, is_pil_image, _is_array)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Image:
        return conversions.to_image(inpt)


class ToPILImage(Transform):
    """Turn tensors (C, H, W) and arrays (H, W, C) into Pillow images.

    Args:
        mode: the mode of the images, by default the one for the channels and the dtype.
    """

    _transformed_types = (is_pure_tensor, Image, _is_array)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return conversions.to_pil_image(inpt, mode=self.mode)


class ToPureTensor(Transform):
    """Turn tv_tensors into plain tensors."""

    _transformed_types = (TVTensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Tensor:
        return inpt.as_subclass(Tensor)


class ToTensor(Transform):
    """Turn Pillow images and arrays into tensors, bytes scaled to [0, 1].

    Deprecated: ToImage, then ToDtype(torch.float32, scale=True), does the same.
    """

    _transformed_types = (is_pil_image, _is_array)

    def __init__(self) -> None:
        warnings.warn(
            "ToTensor is deprecated. Use v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, "
            "scale=True)]).",
            stacklevel=2,
        )
        super().__init__()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Tensor:
        return conversions.to_tensor(inpt)


class ToDtype(Transform):
    """Convert values to a dtype.

    Args:
        dtype: the dtype of images and videos, or a dict of dtypes by type, with "others" for the
            rest and None for what stays.
        scale: whether white stays white: values of images and videos are scaled from the range of
            the one dtype to that of the other, [0, 1] for floating-point numbers.

    Raises:
        ValueError: if dtype is neither, or a value's type is not in the dict.

    Example:
        >>> v2.ToDtype(torch.float32, scale=True)(torch.tensor([[[51]]], dtype=torch.uint8))
        tensor([[[0.2000]]])
    """

    _transformed_types = (Tensor,)

    def __init__(
        self, dtype: rl.dtype | dict[type | str, rl.dtype | None], scale: bool = False
    ) -> None:
        super().__init__()
        if not isinstance(dtype, (dict, rl.dtype)):
            raise ValueError(f"ToDtype: dtype is {dtype!r}. It must be a dtype or a dict of them.")
        if isinstance(dtype, dict) and Tensor in dtype and (Image in dtype or Video in dtype):
            warnings.warn(
                "ToDtype: there are dtypes for Tensor and for Image or Video. A plain tensor "
                "beside an image or a video stays as it is.",
                stacklevel=2,
            )
        self.dtype = dtype
        self.scale = scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        pixels = is_pure_tensor(inpt) or isinstance(inpt, (Image, Video))
        if isinstance(self.dtype, rl.dtype):
            dtype = self.dtype if pixels else None
        elif type(inpt) in self.dtype or "others" in self.dtype:
            dtype = self.dtype.get(type(inpt), self.dtype.get("others"))
            if dtype is None and self.scale and pixels:
                warnings.warn(
                    "ToDtype: scale is True, but there is no dtype for images or videos. "
                    "They are not scaled.",
                    stacklevel=2,
                )
        else:
            raise ValueError(
                f"ToDtype: there is no dtype for {type(inpt).__name__}. A dict names all types or "
                'has "others". Add one, None for what stays.'
            )
        if dtype is None:
            return inpt
        return self._call_kernel(conversions.to_dtype, inpt, dtype=dtype, scale=self.scale)


class ConvertImageDtype(Transform):
    """Convert images to a dtype and scale their values to its range.

    Args:
        dtype: the dtype.
    """

    def __init__(self, dtype: rl.dtype = rl.float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(conversions.to_dtype, inpt, dtype=self.dtype, scale=True)


class ConvertBoundingBoxFormat(Transform):
    """Convert boxes to another format.

    Args:
        format: the format or its name.
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, format: str | BoundingBoxFormat) -> None:
        super().__init__()
        self.format = format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return box_formats.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(Transform):
    """Hold boxes inside the image.

    Args:
        clamping_mode: "soft" or "hard", which matters to rotated boxes, None to leave all alone, or
            "auto" for what the boxes say.
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return box_formats.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class SetClampingMode(Transform):
    """Choose how the transforms that follow hold boxes inside the image.

    Args:
        clamping_mode: "soft", "hard" or None.

    Raises:
        ValueError: for another mode.
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None) -> None:
        super().__init__()
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(
                f"SetClampingMode: got {clamping_mode!r}. It must be 'soft', 'hard' or None."
            )
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        output = inpt.clone()
        output.clamping_mode = self.clamping_mode
        return output


class ClampKeyPoints(Transform):
    """Hold points inside the image."""

    _transformed_types = (KeyPoints,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return box_formats.clamp_keypoints(inpt)


class UniformTemporalSubsample(Transform):
    """Take frames of videos at equal distances.

    Args:
        num_samples: how many; the first and the last are among them.
    """

    _transformed_types = (Tensor,)

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(sizes.uniform_temporal_subsample, inpt, self.num_samples)
