"""Images, masks and videos: the TVTensors that hold pixels."""

from __future__ import annotations

from typing import Any, Self

import rushlight as rl
from rushlight.vision._pillow import is_pil_image
from rushlight.vision.tv_tensors._base import TVTensor


class _Pixels(TVTensor):
    _fewest_dims = 0

    def __new__(
        cls,
        data: Any,
        *,
        dtype: rl.dtype | None = None,
        device: rl.device | str | int | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        if is_pil_image(data):
            from rushlight.vision.transforms._functional.conversions import pil_to_tensor

            data = pil_to_tensor(data)
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        if tensor.ndim < cls._fewest_dims:
            raise ValueError(
                f"{cls.__name__}: got {tensor.ndim} dimensions. It has at least "
                f"{cls._fewest_dims}: height and width come last."
            )
        return tensor.as_subclass(cls)


class Image(_Pixels):
    """An image or a batch of them, (..., C, H, W).

    Args:
        data: what as_tensor takes, or a Pillow image; (H, W) becomes (1, H, W).
        dtype: the dtype; by default that of the data.
        device: the device; by default that of the data.
        requires_grad: whether to record; by default what the data does.

    Raises:
        ValueError: if there are fewer than two dimensions.

    Example:
        >>> tv_tensors.Image(torch.ones(2, 2)).shape
        torch.Size([1, 2, 2])
    """

    _fewest_dims = 2

    def __new__(
        cls,
        data: Any,
        *,
        dtype: rl.dtype | None = None,
        device: rl.device | str | int | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        image = super().__new__(cls, data, dtype=dtype, device=device, requires_grad=requires_grad)
        return cls._like(image.unsqueeze(0), image) if image.ndim == 2 else image

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._named()


class Mask(_Pixels):
    """Masks of segmentation or detection, (..., H, W); transforms take the nearest pixel of them.

    Args:
        data: what as_tensor takes, or a Pillow image.
        dtype: the dtype; by default that of the data.
        device: the device; by default that of the data.
        requires_grad: whether to record; by default what the data does.
    """


class Video(_Pixels):
    """Frames, (..., T, C, H, W).

    Args:
        data: what as_tensor takes.
        dtype: the dtype; by default that of the data.
        device: the device; by default that of the data.
        requires_grad: whether to record; by default what the data does.

    Raises:
        ValueError: if there are fewer than four dimensions.
    """

    _fewest_dims = 4

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._named()
