"""Transforms that move, cut and erase pixels; functional says what each does to an image."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from rushlight import Tensor
from rushlight.nn import Module
from rushlight.vision.transforms import _arguments, _draws
from rushlight.vision.transforms import functional as F
from rushlight.vision.transforms._functional.crops import check_padding_mode
from rushlight.vision.transforms._functional.interpolation import parse_interpolation
from rushlight.vision.transforms._random_apply import WithProbability
from rushlight.vision.transforms.functional import InterpolationMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Size = int | Sequence[int]
    Interpolation = InterpolationMode | int
    Fill = float | Sequence[float]

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def _rounded(numbers: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(number, 4) for number in numbers)


def _checked_fill(fill: Any) -> Any:
    if fill is not None and not isinstance(fill, (Sequence, numbers.Number)):
        raise TypeError(f"fill: got {fill!r}. It must be a number or a sequence of them.")
    return 0 if fill is None else fill


class Resize(Module):
    """Resize an image.

    Args:
        size: (height, width), or one number for the shorter side.
        interpolation: how pixels are found.
        max_size: the most that the longer side may be.
        antialias: whether pixels are averaged when a tensor becomes smaller; Pillow always does so.

    Raises:
        TypeError: if size is neither a number nor a sequence.
        ValueError: if it is a sequence of other than one or two numbers.

    Example:
        >>> transforms.Resize(20)(torch.zeros(3, 40, 60)).shape
        torch.Size([3, 20, 30])
    """

    def __init__(
        self,
        size: Size,
        interpolation: Interpolation = _BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, (int, Sequence)):
            raise TypeError(f"Resize: size is {size!r}. It must be an integer or a sequence.")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError(f"Resize: size has {len(size)} numbers. It has one or two.")
        self.size = size
        self.max_size = max_size
        self.interpolation = parse_interpolation(interpolation)
        self.antialias = antialias

    def forward(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation.value}, "
            f"max_size={self.max_size}, antialias={self.antialias})"
        )


class CenterCrop(Module):
    """Cut the middle out of an image; a smaller one gets a border of zeros.

    Args:
        size: (height, width), or one number for both.
    """

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = _arguments.pair_of_sides(size)

    def forward(self, img: Any) -> Any:
        return F.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(Module):
    """Add a border to an image.

    Args:
        padding: its width: one number, (left and right, top and bottom), or (left, top, right,
            bottom).
        fill: the value of a constant border, one or one for each channel.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    Raises:
        TypeError: if padding or fill is no number or sequence.
        ValueError: for another number of widths or another mode.
    """

    def __init__(
        self, padding: int | Sequence[int], fill: Fill = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        for name, value in (("padding", padding), ("fill", fill)):
            if not isinstance(value, (numbers.Number, tuple, list)):
                raise TypeError(f"Pad: {name} is {value!r}. It must be a number or a sequence.")
        check_padding_mode(padding_mode)
        if isinstance(padding, Sequence) and len(padding) not in (1, 2, 4):
            raise ValueError(f"Pad: padding has {len(padding)} numbers. It has 1, 2 or 4.")
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, "
            f"padding_mode={self.padding_mode})"
        )


class RandomCrop(Module):
    """Cut a window at a random place out of an image.

    Args:
        size: (height, width), or one number for both.
        padding: the border that is added before, as in Pad.
        pad_if_needed: whether an image that is still smaller is padded too.
        fill: the value of a constant border.
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
        self.size = tuple(_arguments.pair_of_sides(size))
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """A window (top, left, height, width) of this size in an image.

        Raises:
            ValueError: if the image is smaller.
        """
        _, height, width = F.get_dimensions(img)
        rows, columns = output_size
        if height < rows or width < columns:
            raise ValueError(
                f"RandomCrop: the size is {(rows, columns)} and the image {(height, width)}. "
                "A crop is not larger than the image. Pass pad_if_needed=True."
            )
        if (height, width) == (rows, columns):
            return 0, 0, height, width
        top = _draws.integer(0, height - rows + 1)
        return top, _draws.integer(0, width - columns + 1), rows, columns

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            _, height, width = F.get_dimensions(img)
            rows, columns = self.size
            if width < columns:
                img = F.pad(img, [columns - width, 0], self.fill, self.padding_mode)
            if height < rows:
                img = F.pad(img, [0, rows - height], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomHorizontalFlip(WithProbability):
    """Flip an image from left to right.

    Args:
        p: the probability of doing it.

    Example:
        >>> transforms.RandomHorizontalFlip(p=1.0)(torch.tensor([[[1, 2]]]))
        tensor([[[2, 1]]])
    """

    def _changed(self, img: Any) -> Any:
        return F.hflip(img)


class RandomVerticalFlip(WithProbability):
    """Flip an image upside down.

    Args:
        p: the probability of doing it.
    """

    def _changed(self, img: Any) -> Any:
        return F.vflip(img)


class RandomResizedCrop(Module):
    """Cut a window of random size, shape and place out of an image and resize it.

    Args:
        size: (height, width) of the result, or one number for both.
        scale: the bounds of the part of the area.
        ratio: the bounds of the window's width by its height.
        interpolation: how pixels are found.
        antialias: whether pixels are averaged when a tensor becomes smaller.

    Raises:
        TypeError: if scale or ratio is no sequence.

    Example:
        >>> transforms.RandomResizedCrop(8)(torch.zeros(3, 40, 60)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        size: Size,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Interpolation = _BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = _arguments.pair_of_sides(size)
        _arguments.check_ranges(scale, ratio)
        self.interpolation = parse_interpolation(interpolation)
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    @staticmethod
    def get_params(
        img: Any, scale: Sequence[float], ratio: Sequence[float]
    ) -> tuple[int, int, int, int]:
        """A window (top, left, height, width) of an image."""
        _, height, width = F.get_dimensions(img)
        return _draws.resized_crop(height, width, scale, ratio)

    def forward(self, img: Any) -> Any:
        window = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *window, self.size, self.interpolation, antialias=self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, scale={_rounded(self.scale)}, "
            f"ratio={_rounded(self.ratio)}, interpolation={self.interpolation.value}, "
            f"antialias={self.antialias})"
        )


class FiveCrop(Module):
    """The four corners of an image and its middle, as a tuple.

    Args:
        size: (height, width) of the crops, or one number for both.
    """

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = _arguments.pair_of_sides(size)

    def forward(self, img: Any) -> tuple[Any, ...]:
        return F.five_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class TenCrop(Module):
    """The five crops of an image and those of the flipped image, as a tuple.

    Args:
        size: (height, width) of the crops, or one number for both.
        vertical_flip: whether the second five are flipped upside down instead of from left to
            right.
    """

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = _arguments.pair_of_sides(size)
        self.vertical_flip = vertical_flip

    def forward(self, img: Any) -> tuple[Any, ...]:
        return F.ten_crop(img, self.size, self.vertical_flip)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, vertical_flip={self.vertical_flip})"


class RandomRotation(Module):
    """Rotate an image by a random angle.

    Args:
        degrees: the bounds of the angle, counter-clockwise, or how far it may be from 0.
        interpolation: how pixels are found.
        expand: whether the result is as large as it must be to hold all of the image.
        center: (x, y) of the point about which it turns; by default the middle.
        fill: the value outside the image.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Interpolation = _NEAREST,
        expand: bool = False,
        center: Sequence[int] | None = None,
        fill: Fill = 0,
    ) -> None:
        super().__init__()
        self.interpolation = parse_interpolation(interpolation)
        self.degrees = _arguments.angles(degrees, "degrees")
        if center is not None:
            _arguments.check_sequence(center, "center", (2,))
        self.center = center
        self.expand = expand
        self.fill = _checked_fill(fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """An angle between the bounds."""
        return _draws.uniform(degrees[0], degrees[1])

    def forward(self, img: Any) -> Any:
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, "
            f"interpolation={self.interpolation.value}, expand={self.expand}{center}, "
            f"fill={self.fill})"
        )


class RandomAffine(Module):
    """Rotate, move, scale and shear an image at random; its size stays.

    Args:
        degrees: the bounds of the angle, clockwise, or how far it may be from 0.
        translate: the most by which it moves, as parts of (width, height).
        scale: the bounds of the factor.
        shear: the bounds of the angle along x, those along x and y, or how far from 0 along x.
        interpolation: how pixels are found.
        fill: the value outside the image.
        center: (x, y) of the point about which it is done; by default the middle.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Interpolation = _NEAREST,
        fill: Fill = 0,
        center: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.interpolation = parse_interpolation(interpolation)
        self.degrees = _arguments.angles(degrees, "degrees")
        _arguments.check_affine(translate, scale, center)
        self.translate = translate
        self.scale = scale
        self.shear = None if shear is None else _arguments.angles(shear, "shear", (2, 4))
        self.fill = _checked_fill(fill)
        self.center = center

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """(angle, translation, scale, shear) between the bounds, for (width, height)."""
        return _draws.affine(degrees, translate, scale_ranges, shears, img_size)

    def forward(self, img: Any) -> Any:
        _, height, width = F.get_dimensions(img)
        params = self.get_params(
            self.degrees, self.translate, self.scale, self.shear, [width, height]
        )
        return F.affine(
            img, *params, interpolation=self.interpolation, fill=self.fill, center=self.center
        )

    def __repr__(self) -> str:
        parts = [f"degrees={self.degrees}"]
        parts += [
            f"{name}={getattr(self, name)}"
            for name in ("translate", "scale", "shear")
            if getattr(self, name) is not None
        ]
        if self.interpolation is not _NEAREST:
            parts.append(f"interpolation={self.interpolation.value}")
        if self.fill != 0:
            parts.append(f"fill={self.fill}")
        if self.center is not None:
            parts.append(f"center={self.center}")
        return f"{type(self).__name__}({', '.join(parts)})"


class RandomPerspective(WithProbability):
    """Show an image as seen from a random place.

    Args:
        distortion_scale: how far the corners may come in, from 0 to 1, half the side.
        p: the probability of doing it.
        interpolation: how pixels are found.
        fill: the value outside the image.
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Interpolation = _BILINEAR,
        fill: Fill = 0,
    ) -> None:
        super().__init__(p)
        self.interpolation = parse_interpolation(interpolation)
        self.distortion_scale = distortion_scale
        self.fill = _checked_fill(fill)

    @staticmethod
    def get_params(
        width: int, height: int, distortion_scale: float
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The corners of an image, and where they come to."""
        return _draws.perspective(width, height, distortion_scale)

    def _changed(self, img: Any) -> Any:
        _, height, width = F.get_dimensions(img)
        corners = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, *corners, self.interpolation, self.fill)


class RandomErasing(WithProbability):
    """Write over a random window of a tensor (Zhong et al., 2017).

    Args:
        p: the probability of doing it.
        scale: the bounds of the part of the area.
        ratio: the bounds of the window's height by its width.
        value: what is written, one number or one for each channel; "random" for noise.
        inplace: whether to change the tensor itself.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if scale lies outside of [0, 1], p too, or value is another word.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p)
        self._value = _arguments.check_erasing(scale, ratio, value)
        if not 0 <= p <= 1:
            raise ValueError(f"RandomErasing: p is {p}. It must be between 0 and 1.")
        self.scale = scale
        self.ratio = ratio
        self.value = value
        self.inplace = inplace

    @staticmethod
    def get_params(
        img: Tensor,
        scale: Sequence[float],
        ratio: Sequence[float],
        value: Sequence[float] | None = None,
    ) -> tuple[int, int, int, int, Tensor]:
        """A window (top, left, height, width) and what to write over it.

        It is all of the image and the image itself when ten windows do not fit.
        """
        channels, height, width = img.shape[-3:]
        drawn = _draws.erasing(channels, height, width, scale, ratio, value)
        return (0, 0, height, width, img) if drawn is None else drawn

    def _changed(self, img: Tensor) -> Tensor:
        _arguments.check_fill_channels(self._value, img.shape[-3])
        params = self.get_params(img, self.scale, self.ratio, self._value)
        return F.erase(img, *params, self.inplace)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p={self.p}, scale={self.scale}, ratio={self.ratio}, "
            f"value={self.value}, inplace={self.inplace})"
        )


def _pair_of_floats(value: Any, name: str) -> Any:
    if not isinstance(value, (float, Sequence)):
        raise TypeError(f"{name}: got {value!r}. It must be a float or a sequence of two.")
    pair = [value, value] if isinstance(value, float) else value
    if len(pair) != 2:
        raise ValueError(f"{name}: got {len(pair)} numbers. There must be two.")
    if not all(isinstance(number, float) for number in pair):
        raise TypeError(f"{name}: got {value!r}. The numbers must be floats.")
    return pair


class ElasticTransform(Module):
    """Shift the pixels of an image by smooth noise, as if it were seen through water.

    Args:
        alpha: the most in pixels by which they are shifted, or (x, y).
        sigma: how smooth the noise is: the deviation of the Gaussian that blurs it, or (x, y).
        interpolation: how pixels are found.
        fill: the value outside the image.

    Raises:
        TypeError: if alpha or sigma are not floats, or fill is no number or sequence.
        ValueError: if there are more than two.
    """

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: Interpolation = _BILINEAR,
        fill: Fill = 0,
    ) -> None:
        super().__init__()
        self.alpha = _pair_of_floats(alpha, "alpha")
        self.sigma = _pair_of_floats(sigma, "sigma")
        self.interpolation = parse_interpolation(interpolation)
        if not isinstance(fill, (int, float, list, tuple)):
            raise TypeError(f"fill: got {fill!r}. It must be a number or a sequence of them.")
        self.fill = [float(f) for f in (fill if isinstance(fill, (list, tuple)) else [fill])]

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Tensor:
        """A displacement (1, height, width, 2) for an image of (height, width)."""
        return _draws.displacement(alpha, sigma, size)

    def forward(self, tensor: Any) -> Any:
        _, height, width = F.get_dimensions(tensor)
        displacement = self.get_params(self.alpha, self.sigma, [height, width])
        return F.elastic_transform(tensor, displacement, self.interpolation, self.fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(alpha={self.alpha}, sigma={self.sigma}, "
            f"interpolation={self.interpolation}, fill={self.fill})"
        )
