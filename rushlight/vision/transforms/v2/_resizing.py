"""Transforms that resize a sample, and the crop that keeps its boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.vision._pillow import is_pil_image
from rushlight.vision.transforms import _draws
from rushlight.vision.transforms._functional import crops, resizing
from rushlight.vision.transforms._functional.box_formats import convert
from rushlight.vision.transforms._functional.interpolation import InterpolationMode
from rushlight.vision.transforms._functional.registry import is_pure_tensor
from rushlight.vision.transforms.v2._samples import (
    get_bounding_boxes,
    has_all,
    has_any,
    query_size,
)
from rushlight.vision.transforms.v2._transform import Transform
from rushlight.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, Image

Interpolation = InterpolationMode | str | int


# Where no overlap asked for can be had, as without boxes, the sample is left alone after that.
_MOST_ROUNDS = 100


class Resize(Transform):
    """Resize a sample.

    Args:
        size: (height, width), or one number for the shorter side; None to go by max_size.
        interpolation: how pixels are found; masks take the nearest.
        max_size: the most that the longer side may be.
        antialias: whether pixels are averaged when a tensor becomes smaller.

    Raises:
        ValueError: if size is none of these, or None without a max_size.

    Example:
        >>> boxes = tv_tensors.BoundingBoxes([0, 0, 4, 8], format="XYXY", canvas_size=(8, 8))
        >>> v2.Resize(4)(boxes).tolist()
        [[0, 0, 2, 4]]
    """

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: Interpolation = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if isinstance(size, int):
            size = [size]
        elif size is None:
            if not isinstance(max_size, int):
                raise ValueError(
                    f"Resize: size is None and max_size {max_size!r}. One of them must be given."
                )
        elif isinstance(size, Sequence) and len(size) in (1, 2):
            size = list(size)
        else:
            raise ValueError(f"Resize: size is {size!r}. It must be one or two integers, or None.")
        self.size = size
        self.interpolation = interpolation
        self.max_size = max_size
        self.antialias = antialias

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            resizing.resize,
            inpt,
            self.size,
            interpolation=self.interpolation,
            max_size=self.max_size,
            antialias=self.antialias,
        )


class _RandomSize(Transform):
    """Base class of the transforms that draw the size as params."""

    interpolation: Interpolation
    antialias: bool | None

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            resizing.resize,
            inpt,
            params["size"],
            interpolation=self.interpolation,
            antialias=self.antialias,
        )


class ScaleJitter(_RandomSize):
    """Resize a sample to fit a size times a random factor; its ratio stays.

    Args:
        target_size: the size (height, width).
        scale_range: the bounds of the factor.
        interpolation: how pixels are found.
        antialias: whether pixels are averaged when a tensor becomes smaller.
    """

    def __init__(
        self,
        target_size: tuple[int, int],
        scale_range: tuple[float, float] = (0.1, 2.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.target_size = target_size
        self.scale_range = scale_range
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        scale = _draws.uniform(*self.scale_range)
        factor = min(self.target_size[1] / height, self.target_size[0] / width) * scale
        return {"size": (int(height * factor), int(width * factor))}


class RandomShortestSize(_RandomSize):
    """Resize a sample so that its shorter side has one of several lengths.

    Args:
        min_size: the lengths, or one.
        max_size: the most that the longer side may be.
        interpolation: how pixels are found.
        antialias: whether pixels are averaged when a tensor becomes smaller.
    """

    def __init__(
        self,
        min_size: list[int] | tuple[int, ...] | int,
        max_size: int | None = None,
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        shorter = self.min_size[_draws.integer(0, len(self.min_size))]
        factor = shorter / min(height, width)
        if self.max_size is not None:
            factor = min(factor, self.max_size / max(height, width))
        return {"size": (int(height * factor), int(width * factor))}


class RandomResize(_RandomSize):
    """Resize a sample so that its shorter side has a random length.

    Args:
        min_size: the least length.
        max_size: the length below which it stays.
        interpolation: how pixels are found.
        antialias: whether pixels are averaged when a tensor becomes smaller.
    """

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size = min_size
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"size": [_draws.integer(self.min_size, self.max_size)]}


class RandomIoUCrop(Transform):
    """Cut a random window out of a sample that overlaps its boxes enough (Liu et al., SSD, 2015).

    Boxes whose middle is outside become zeros; SanitizeBoundingBoxes drops them.

    Args:
        min_scale: the least part of a side.
        max_scale: the greatest part of a side.
        min_aspect_ratio: the least width by height.
        max_aspect_ratio: the greatest width by height.
        sampler_options: the least overlaps (intersection over union) of which one is drawn; one of
            1 or more leaves the sample as it is.
        trials: how many windows are tried before an overlap is drawn anew.
    """

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: list[float] | None = None,
        trials: int = 40,
    ) -> None:
        super().__init__()
        self.min_scale = min_scale
        self.max_scale = max_scale
        self.min_aspect_ratio = min_aspect_ratio
        self.max_aspect_ratio = max_aspect_ratio
        self.options = sampler_options or [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
        self.trials = trials

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        has_image = has_any(flat_inputs, is_pil_image, Image, is_pure_tensor)
        if not (has_image and has_all(flat_inputs, BoundingBoxes)):
            raise TypeError(
                f"{type(self).__name__}: the sample lacks an image or boxes. It needs both."
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size = query_size(flat_inputs)
        boxes = get_bounding_boxes(flat_inputs)
        corners = convert(boxes.as_subclass(Tensor), boxes.format, BoundingBoxFormat.XYXY)
        for _ in range(_MOST_ROUNDS):
            least = self.options[_draws.integer(0, len(self.options))]
            if least >= 1.0:
                return {}
            for _ in range(self.trials):
                params = self._window(size, corners, least)
                if params is not None:
                    return params
        return {}

    def _window(
        self, size: tuple[int, int], corners: Tensor, least: float
    ) -> dict[str, Any] | None:
        """A window and which boxes are within it, if it is one that may be taken."""
        width, height = (
            int(side * _draws.uniform(self.min_scale, self.max_scale)) for side in size[::-1]
        )
        if not width or not height:
            return None
        if not self.min_aspect_ratio <= width / height <= self.max_aspect_ratio:
            return None
        left = int((size[1] - width) * _draws.uniform(0, 1))
        top = int((size[0] - height) * _draws.uniform(0, 1))
        right, bottom = left + width, top + height
        x = 0.5 * (corners[..., 0] + corners[..., 2])
        y = 0.5 * (corners[..., 1] + corners[..., 3])
        within = (left < x) & (x < right) & (top < y) & (y < bottom)
        if not bool(within.any()):
            return None
        window = rl.tensor([left, top, right, bottom], device=corners.device)
        if float(_overlap(corners[within], window).max()) < least:
            return None
        place = {"top": top, "left": left, "height": height, "width": width}
        return place | {"is_within_crop_area": within}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not params:
            return inpt
        window = (params[name] for name in ("top", "left", "height", "width"))
        output = self._call_kernel(crops.crop, inpt, *window)
        if isinstance(output, BoundingBoxes):
            output[~params["is_within_crop_area"]] = 0
        return output


def _overlap(boxes: Tensor, window: Tensor) -> Tensor:
    """Intersection over union of corners (N, 4) with a window (4,), (N,)."""
    start = rl.maximum(boxes[:, :2], window[:2])
    end = rl.minimum(boxes[:, 2:], window[2:])
    common = (end - start).clamp(min=0).prod(dim=1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1) + (window[2:] - window[:2]).prod()
    return common / (areas - common)
