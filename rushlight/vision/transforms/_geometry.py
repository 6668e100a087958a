"""Transforms that flip, cut, resize and erase; functional says what each does to an image."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from rushlight import Tensor
from rushlight.nn import Module
from rushlight.vision.transforms import _arguments, _draws
from rushlight.vision.transforms import functional as F
from rushlight.vision.transforms._functional.crops import check_padding_mode
from rushlight.vision.transforms._functional.interpolation import parse_interpolation
from rushlight.vision.transforms._random_apply import WithProbability
from rushlight.vision.transforms.functional import InterpolationMode

Size = int | Sequence[int]
Interpolation = InterpolationMode | int
Fill = float | Sequence[float]

_BILINEAR = InterpolationMode.BILINEAR


def _rounded(numbers: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(number, 4) for number in numbers)


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
