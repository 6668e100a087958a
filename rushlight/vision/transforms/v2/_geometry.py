"""Transforms that move pixels, boxes and points; functional says what each does to a value."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.vision.transforms import _arguments, _draws
from rushlight.vision.transforms import _geometry as _v1
from rushlight.vision.transforms import _warping as _v1_warping
from rushlight.vision.transforms._functional import crops, resizing, warping
from rushlight.vision.transforms._functional.interpolation import InterpolationMode
from rushlight.vision.transforms._functional.matrices import perspective_coefficients
from rushlight.vision.transforms.v2._fills import Fill, fill_of, fills_by_type
from rushlight.vision.transforms.v2._samples import has_any, query_size
from rushlight.vision.transforms.v2._transform import RandomApplyTransform, Transform
from rushlight.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask

Size = int | Sequence[int]
Interpolation = InterpolationMode | str | int


class RandomHorizontalFlip(RandomApplyTransform):
    """Flip a sample from left to right.

    Args:
        p: the probability of doing it.

    Example:
        >>> boxes = tv_tensors.BoundingBoxes([0, 0, 2, 4], format="XYXY", canvas_size=(4, 8))
        >>> v2.RandomHorizontalFlip(p=1.0)(boxes).tolist()
        [[6, 0, 8, 4]]
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(crops.horizontal_flip, inpt)


class RandomVerticalFlip(RandomApplyTransform):
    """Flip a sample upside down.

    Args:
        p: the probability of doing it.
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(crops.vertical_flip, inpt)


class CenterCrop(Transform):
    """Cut the middle out of a sample; a smaller one gets a border of zeros.

    Args:
        size: (height, width), or one number for both.
    """

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = _arguments.pair_of_sides(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(crops.center_crop, inpt, output_size=self.size)


class _Crops(Transform):
    """Base class of the transforms that make several images of one."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = _arguments.pair_of_sides(size)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, BoundingBoxes, Mask):
            raise TypeError(
                f"{type(self).__name__}: the sample has boxes or masks. "
                "It crops images and videos alone."
            )

    def _call_kernel(
        self, functional: Callable[..., Any], inpt: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if isinstance(inpt, KeyPoints):
            warnings.warn(f"{type(self).__name__} leaves KeyPoints as they are.", stacklevel=2)
        return super()._call_kernel(functional, inpt, *args, **kwargs)


class FiveCrop(_Crops):
    """The four corners of an image and its middle, as a tuple.

    Args:
        size: (height, width) of the crops, or one number for both.
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(crops.five_crop, inpt, self.size)


class TenCrop(_Crops):
    """The five crops of an image and those of the flipped image, as a tuple.

    Args:
        size: (height, width) of the crops, or one number for both.
        vertical_flip: whether the second five are flipped upside down instead of from left to
            right.
    """

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(crops.ten_crop, inpt, self.size, vertical_flip=self.vertical_flip)


def _check_padding(padding: Any) -> None:
    if not isinstance(padding, int):
        whole = isinstance(padding, (tuple, list)) and all(isinstance(p, int) for p in padding)
        if not whole or len(padding) not in (1, 2, 4):
            raise ValueError(f"padding: got {padding!r}. It must be 1, 2 or 4 integers.")


class Pad(Transform):
    """Add a border to a sample.

    Args:
        padding: its width: one number, (left and right, top and bottom), or (left, top, right,
            bottom).
        fill: the value of a constant border, one or one for each channel, or a dict of these by
            type, with "others" for the rest.
        padding_mode: "constant", "edge", "reflect" or "symmetric".
    """

    def __init__(
        self, padding: int | Sequence[int], fill: Fill = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        _check_padding(padding)
        crops.check_padding_mode(padding_mode)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill = fill
        self._fill = fills_by_type(fill)
        self.padding_mode = padding_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        fill = fill_of(self._fill, inpt)
        return self._call_kernel(crops.pad, inpt, self.padding, fill, self.padding_mode)


class RandomCrop(Transform):
    """Cut a window at a random place out of a sample.

    Args:
        size: (height, width), or one number for both.
        padding: the border that is added before, as in Pad.
        pad_if_needed: whether a sample that is still smaller is padded too.
        fill: the value of a constant border, or a dict of these by type.
        padding_mode: "constant", "edge", "reflect" or "symmetric".
    """

    def __init__(
        self,
        size: Size,
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Fill = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = _arguments.pair_of_sides(size)
        if padding is not None:
            _check_padding(padding)
        if pad_if_needed or padding is not None:
            crops.check_padding_mode(padding_mode)
        self.padding = crops.parse_padding(padding) if padding else None
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self._fill = fills_by_type(fill)
        self.padding_mode = padding_mode

    get_params = staticmethod(_v1.RandomCrop.get_params)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        rows, columns = query_size(flat_inputs)
        left, right, top, bottom = self.padding or [0, 0, 0, 0]
        height, width = self.size
        if self.pad_if_needed:
            # On both sides, so that any part of the sample may be at any place of the window.
            more_rows = max(height - rows - top - bottom, 0)
            more_columns = max(width - columns - left - right, 0)
            top, bottom = top + more_rows, bottom + more_rows
            left, right = left + more_columns, right + more_columns
        rows, columns = rows + top + bottom, columns + left + right
        if rows < height or columns < width:
            raise ValueError(
                f"RandomCrop: the size is {(height, width)} and the padded sample "
                f"{(rows, columns)}. A crop is not larger. Pass pad_if_needed=True."
            )
        window = {
            "top": _draws.integer(0, rows - height + 1) if rows > height else 0,
            "left": _draws.integer(0, columns - width + 1) if columns > width else 0,
            "height": height,
            "width": width,
        }
        padding = [left, top, right, bottom]
        return {
            "needs_crop": (rows, columns) != (height, width),
            "needs_pad": any(padding),
            "padding": padding,
            **window,
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if params["needs_pad"]:
            fill = fill_of(self._fill, inpt)
            inpt = self._call_kernel(crops.pad, inpt, params["padding"], fill, self.padding_mode)
        if params["needs_crop"]:
            window = (params[name] for name in ("top", "left", "height", "width"))
            inpt = self._call_kernel(crops.crop, inpt, *window)
        return inpt


class RandomZoomOut(RandomApplyTransform):
    """Put a sample at a random place of a larger canvas.

    Args:
        fill: the value of the canvas, or a dict of these by type.
        side_range: the bounds of how many times as long its sides are, at least 1.
        p: the probability of doing it.
    """

    def __init__(
        self, fill: Fill = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5
    ) -> None:
        super().__init__(p=p)
        self.fill = fill
        self._fill = fills_by_type(fill)
        _arguments.check_sequence(side_range, "side_range", (2,))
        self.side_range = side_range
        if not 1.0 <= side_range[0] <= side_range[1]:
            raise ValueError(f"side_range: got {side_range}. It must increase, from 1 on.")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        rows, columns = query_size(flat_inputs)
        factor = _draws.uniform(*self.side_range)
        more_columns = int(columns * factor) - columns
        more_rows = int(rows * factor) - rows
        left = int(more_columns * _draws.uniform(0, 1))
        top = int(more_rows * _draws.uniform(0, 1))
        return {"padding": [left, top, more_columns - left, more_rows - top]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        fill = fill_of(self._fill, inpt)
        return self._call_kernel(crops.pad, inpt, params["padding"], fill)


class RandomResizedCrop(Transform):
    """Cut a window of random size, shape and place out of a sample and resize it.

    Args:
        size: (height, width) of the result, or one number for both.
        scale: the bounds of the part of the area.
        ratio: the bounds of the window's width by its height.
        interpolation: how pixels are found.
        antialias: whether pixels are averaged when a tensor becomes smaller.

    Raises:
        TypeError: if scale or ratio is no sequence.
    """

    def __init__(
        self,
        size: Size,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = _arguments.pair_of_sides(size)
        _arguments.check_ranges(scale, ratio)
        self.scale = scale
        self.ratio = ratio
        self.interpolation = interpolation
        self.antialias = antialias

    get_params = staticmethod(_v1.RandomResizedCrop.get_params)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        window = _draws.resized_crop(*query_size(flat_inputs), self.scale, self.ratio)
        return dict(zip(("top", "left", "height", "width"), window, strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            resizing.resized_crop,
            inpt,
            **params,
            size=self.size,
            interpolation=self.interpolation,
            antialias=self.antialias,
        )


class RandomRotation(Transform):
    """Rotate a sample by a random angle.

    Args:
        degrees: the bounds of the angle, counter-clockwise, or how far it may be from 0.
        interpolation: how pixels are found.
        expand: whether the result is as large as it must be to hold all of the sample.
        center: (x, y) of the point about which it turns; by default the middle.
        fill: the value outside, or a dict of these by type.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Interpolation = "nearest",
        expand: bool = False,
        center: list[float] | None = None,
        fill: Fill = 0,
    ) -> None:
        super().__init__()
        self.degrees = _arguments.angles(degrees, "degrees")
        self.interpolation = interpolation
        self.expand = expand
        self.fill = fill
        self._fill = fills_by_type(fill)
        if center is not None:
            _arguments.check_sequence(center, "center", (2,))
        self.center = center

    get_params = staticmethod(_v1_warping.RandomRotation.get_params)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"angle": _draws.uniform(*self.degrees)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            warping.rotate,
            inpt,
            **params,
            interpolation=self.interpolation,
            expand=self.expand,
            center=self.center,
            fill=fill_of(self._fill, inpt),
        )


class RandomAffine(Transform):
    """Rotate, move, scale and shear a sample at random; its size stays.

    Args:
        degrees: the bounds of the angle, clockwise, or how far it may be from 0.
        translate: the most by which it moves, as parts of (width, height).
        scale: the bounds of the factor.
        shear: the bounds of the angle along x, those along x and y, or how far from 0 along x.
        interpolation: how pixels are found.
        fill: the value outside, or a dict of these by type.
        center: (x, y) of the point about which it is done; by default the middle.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Interpolation = "nearest",
        fill: Fill = 0,
        center: list[float] | None = None,
    ) -> None:
        super().__init__()
        self.degrees = _arguments.angles(degrees, "degrees")
        _arguments.check_affine(translate, scale, center)
        self.translate = translate
        self.scale = scale
        self.shear = None if shear is None else _arguments.angles(shear, "shear", (2, 4))
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_type(fill)
        self.center = center

    get_params = staticmethod(_v1_warping.RandomAffine.get_params)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        drawn = _draws.affine(self.degrees, self.translate, self.scale, self.shear, (width, height))
        return dict(zip(("angle", "translate", "scale", "shear"), drawn, strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            warping.affine,
            inpt,
            **params,
            interpolation=self.interpolation,
            fill=fill_of(self._fill, inpt),
            center=self.center,
        )


class RandomPerspective(RandomApplyTransform):
    """Show a sample as seen from a random place.

    Args:
        distortion_scale: how far the corners may come in, from 0 to 1, half the side.
        p: the probability of doing it.
        interpolation: how pixels are found.
        fill: the value outside, or a dict of these by type.
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Interpolation = "bilinear",
        fill: Fill = 0,
    ) -> None:
        super().__init__(p=p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError(f"distortion_scale: got {distortion_scale}. It must be in [0, 1].")
        self.distortion_scale = distortion_scale
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_type(fill)

    get_params = staticmethod(_v1_warping.RandomPerspective.get_params)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        corners = _draws.perspective(width, height, self.distortion_scale)
        return {"coefficients": perspective_coefficients(*corners)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            warping.perspective,
            inpt,
            None,
            None,
            **params,
            interpolation=self.interpolation,
            fill=fill_of(self._fill, inpt),
        )


def _pair_of_numbers(value: Any, name: str) -> list[float]:
    if not isinstance(value, (int, float, Sequence)):
        raise TypeError(f"{name}: got {value!r}. It must be a number or a sequence of them.")
    numbers = list(value) if isinstance(value, Sequence) else [value]
    if len(numbers) not in (1, 2) or not all(isinstance(n, (int, float)) for n in numbers):
        raise ValueError(f"{name}: got {value!r}. There must be one or two numbers.")
    return [float(numbers[0]), float(numbers[-1])]


class ElasticTransform(Transform):
    """Shift the places of a sample by smooth noise, as if it were seen through water.

    Args:
        alpha: the most in pixels by which they are shifted, or (x, y).
        sigma: how smooth the noise is: the deviation of the Gaussian that blurs it, or (x, y).
        interpolation: how pixels are found.
        fill: the value outside, or a dict of these by type.
    """

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: Interpolation = "bilinear",
        fill: Fill = 0,
    ) -> None:
        super().__init__()
        self.alpha = _pair_of_numbers(alpha, "alpha")
        self.sigma = _pair_of_numbers(sigma, "sigma")
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_type(fill)

    get_params = staticmethod(_v1_warping.ElasticTransform.get_params)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size = query_size(flat_inputs)
        return {"displacement": _draws.displacement(self.alpha, self.sigma, size)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            warping.elastic,
            inpt,
            **params,
            interpolation=self.interpolation,
            fill=fill_of(self._fill, inpt),
        )
