"""Between tensors, NumPy arrays and Pillow images, and between dtypes of pixels."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.vision._pillow import is_pil_image, pillow
from rushlight.vision.transforms._functional.registry import IMAGES, functional, kernel
from rushlight.vision.transforms._functional.sizes import max_value
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask

# The dtype of the pixels of Pillow's modes; all others have bytes.
_MODE_DTYPES = {
    "I": rl.int32,
    "I;16": rl.uint16,
    "I;16L": rl.uint16,
    "F": rl.float32,
}

# The mode of an array by its channels and dtype, and the other modes that its numbers may mean.
_MODES = {
    (1, "uint8"): "L",
    (1, "int16"): "I;16",
    (1, "int32"): "I",
    (1, "float32"): "F",
    (2, "uint8"): "LA",
    (3, "uint8"): "RGB",
    (4, "uint8"): "RGBA",
}
_MORE_MODES = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}


def _pixels_of(image: Any) -> Tensor:
    """The pixels of a Pillow image, (H, W, C), which may be read-only."""
    channels = len(image.getbands())
    if image.mode in _MODE_DTYPES:
        flat = rl.frombuffer(image.tobytes(), dtype=_MODE_DTYPES[image.mode])
    elif image.mode == "1":
        flat = rl.frombuffer(image.convert("L").tobytes(), dtype=rl.uint8)
    elif image.mode == "I;16B":
        flat = rl.frombuffer(image.convert("I").tobytes(), dtype=rl.int32).to(rl.uint16)
    else:
        flat = rl.frombuffer(image.tobytes(), dtype=rl.uint8)
    return flat.view(image.height, image.width, channels)


def pil_to_tensor(pic: Any) -> Tensor:
    """The pixels of a Pillow image as a tensor (C, H, W) of the same values.

    Args:
        pic: the image; the dtype is uint8, or what its mode says; mode "1" gives bools.

    Raises:
        TypeError: if it is no Pillow image.
    """
    if not is_pil_image(pic):
        raise TypeError(
            f"pil_to_tensor: got {type(pic).__name__}. pic must be a Pillow image. "
            "Arrays are converted by to_tensor or to_image."
        )
    pixels = _pixels_of(pic)
    pixels = pixels != 0 if pic.mode == "1" else pixels.clone()
    return pixels.permute(2, 0, 1)


def to_tensor(pic: Any) -> Tensor:
    """A Pillow image or an array (H, W, C) as a tensor (C, H, W), bytes scaled to [0, 1].

    Args:
        pic: the image or array. Only bytes are scaled; other dtypes stay as they are.

    Returns:
        A contiguous tensor of the default dtype for bytes.

    Raises:
        TypeError: if it is neither.
        ValueError: if an array has neither two nor three dimensions.
    """
    if is_pil_image(pic):
        pixels = _pixels_of(pic)
        if pic.mode == "I;16":
            pixels = pixels.view(rl.int16)
    elif type(pic).__module__ == "numpy" and hasattr(pic, "ndim"):
        if pic.ndim not in (2, 3):
            raise ValueError(
                f"to_tensor: the array has {pic.ndim} dimensions. An image has the shape (H, W) or "
                "(H, W, C)."
            )
        pixels = rl.from_numpy(pic if pic.ndim == 3 else pic[:, :, None])
    else:
        raise TypeError(
            f"to_tensor: got {type(pic).__name__}. pic must be a Pillow image or a NumPy array."
        )
    pixels = pixels.permute(2, 0, 1)
    if pixels.dtype != rl.uint8:
        return pixels.clone(memory_format=rl.contiguous_format)
    # Put in order first: bytes are shorter to walk through in the wrong order than floats.
    return pixels.contiguous().div(255)


def to_image(inpt: Any) -> Image:
    """A tensor, a Pillow image or an array (H, W, C) as a tv_tensors.Image, values unchanged.

    Raises:
        TypeError: if it is none of them.
    """
    if is_pil_image(inpt):
        return Image(pil_to_tensor(inpt))
    if isinstance(inpt, Tensor):
        return Image(inpt)
    if type(inpt).__module__ == "numpy" and hasattr(inpt, "ndim"):
        import numpy as np

        return Image(rl.from_numpy(np.atleast_3d(inpt)).permute(2, 0, 1).contiguous())
    raise TypeError(
        f"to_image: got {type(inpt).__name__}. It takes a tensor, a Pillow image or a NumPy array."
    )


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A tensor (C, H, W) or an array (H, W, C) as a Pillow image.

    Args:
        pic: the image; floating-point numbers are scaled from [0, 1] to bytes, unless the mode is
            "F".
        mode: the mode of the result, by default the one for the channels and the dtype.

    Raises:
        TypeError: if it is neither a tensor nor an array, or Pillow has no mode for its dtype.
        ValueError: if the shape is not that of an image or does not fit the mode.
    """
    import numpy as np

    if isinstance(pic, Tensor):
        array = (pic.permute(1, 2, 0) if pic.ndim == 3 else pic).numpy(force=True)
    elif isinstance(pic, np.ndarray):
        array = pic
    else:
        raise TypeError(
            f"to_pil_image: got {type(pic).__name__}. pic must be a tensor or a NumPy array."
        )
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[-1] > 4:
        raise ValueError(
            f"to_pil_image: the shape is {tuple(pic.shape)}. "
            "An image has two or three dimensions and at most four channels."
        )
    if np.issubdtype(array.dtype, np.floating) and mode != "F":
        array = (array * 255).astype(np.uint8)
    channels = array.shape[-1]
    usual = _MODES.get((channels, array.dtype.name))
    possible = _MORE_MODES.get(channels, (usual,))
    if mode is not None and mode not in possible:
        raise ValueError(
            f"to_pil_image: mode is {mode!r}, but {channels} channels of {array.dtype} can be "
            f"{', '.join(str(each) for each in possible)}. Choose one of these."
        )
    chosen = mode or usual
    if chosen is None:
        raise TypeError(
            f"to_pil_image: Pillow has no mode for {channels} channels of {array.dtype}. "
            "Convert the tensor to torch.uint8."
        )
    height, width = array.shape[:2]
    data = np.ascontiguousarray(array).tobytes()
    return pillow("to_pil_image").frombuffer(chosen, (width, height), data, "raw", chosen, 0, 1)


@functional
def to_dtype(inpt: Any, dtype: rl.dtype = rl.float32, scale: bool = False) -> Any:
    """Convert a sample to a dtype.

    Args:
        inpt: an image, a video or another tv_tensor.
        dtype: the dtype.
        scale: whether white stays white: values are scaled from the range of the one dtype to that
            of the other, [0, 1] for floating-point numbers. Only images and videos are.

    Raises:
        RuntimeError: if floating-point numbers would be scaled to integers of more digits.
    """


@kernel(to_dtype, *IMAGES)
def to_dtype_image(image: Tensor, dtype: rl.dtype = rl.float32, scale: bool = False) -> Tensor:
    if image.dtype == dtype or not scale:
        return image.to(dtype)
    if image.dtype.is_floating_point and dtype.is_floating_point:
        return image.to(dtype)
    if dtype.is_floating_point:
        factor = 1.0 / max_value(image.dtype)
        # One pass where the product is of that dtype anyway.
        direct = dtype == rl.get_default_dtype()
        return image.mul(factor) if direct else image.to(dtype).mul_(factor)
    if image.dtype.is_floating_point:
        wide = (rl.int32, rl.uint32, rl.int64, rl.uint64)
        if dtype in wide and (image.dtype != rl.float64 or rl.iinfo(dtype).bits == 64):
            raise RuntimeError(
                f"to_dtype: {image.dtype} cannot be scaled to {dtype}. The integers have more "
                "digits than the floating-point numbers. Use a shorter integer dtype."
            )
        # Just below the number of levels, so that each level is the image of an equal interval.
        return image.mul(max_value(dtype) + 1.0 - 1e-3).to(dtype)
    shift = max_value(dtype).bit_length() - max_value(image.dtype).bit_length()
    if shift >= 0:
        return image.to(dtype) * 2**shift
    if image.dtype == rl.uint16:
        image = image.to(rl.int32)
    return (image // 2**-shift).to(dtype)


to_dtype_video = to_dtype_image


@kernel(to_dtype, Mask, BoundingBoxes, KeyPoints)
def to_dtype_other(inpt: Tensor, dtype: rl.dtype = rl.float32) -> Tensor:
    return inpt.to(dtype)


def convert_image_dtype(image: Tensor, dtype: rl.dtype = rl.float32) -> Tensor:
    """Convert an image to a dtype and scale its values to that dtype's range.

    Args:
        image: the image.
        dtype: the dtype.

    Raises:
        TypeError: if it is no tensor.
        RuntimeError: if floating-point numbers would be scaled to integers of more digits.

    Example:
        >>> from rushlight.vision.transforms.functional import convert_image_dtype
        >>> convert_image_dtype(torch.tensor([0, 51, 255], dtype=torch.uint8))
        tensor([0.0000, 0.2000, 1.0000])
    """
    if not isinstance(image, Tensor):
        raise TypeError(
            f"convert_image_dtype: got {type(image).__name__}. The image must be a tensor. "
            "Convert it with to_image."
        )
    return to_dtype_image(image, dtype=dtype, scale=True)
