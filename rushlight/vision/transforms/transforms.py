"""The classes of transforms: what they do is in functional, what they draw in _draws.

Here are those that combine others, convert or normalize; the rest is in _geometry, _warping and
_color.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import Module
from rushlight.vision.transforms import _arguments
from rushlight.vision.transforms import functional as F
from rushlight.vision.transforms._color import (
    ColorJitter,
    GaussianBlur,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from rushlight.vision.transforms._draws import chance
from rushlight.vision.transforms._geometry import (
    CenterCrop,
    FiveCrop,
    Pad,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    TenCrop,
)
from rushlight.vision.transforms._warping import (
    ElasticTransform,
    RandomAffine,
    RandomPerspective,
    RandomRotation,
)
from rushlight.vision.transforms.functional import InterpolationMode

Transform = Callable[[Any], Any]

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "ElasticTransform",
    "FiveCrop",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Lambda",
    "LinearTransformation",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
    "ToPILImage",
    "ToTensor",
]


def _listed(name: str, transforms: Any, *first: str) -> str:
    return "\n".join([f"{name}(", *(f"    {each}" for each in (*first, *transforms)), ")"])


class Compose:
    """Transforms one after the other.

    Args:
        transforms: the transforms, any callables of one argument.

    Example:
        >>> transform = transforms.Compose([transforms.CenterCrop(2), transforms.Grayscale()])
        >>> transform(torch.ones(3, 4, 4)).shape
        torch.Size([1, 2, 2])
    """

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return _listed(type(self).__name__, self.transforms)


class ToTensor:
    """A Pillow image or an array (H, W, C) as a tensor (C, H, W), bytes scaled to [0, 1]."""

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """A Pillow image as a tensor (C, H, W) of the same values."""

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ConvertImageDtype(Module):
    """Convert a tensor to a dtype and scale its values to that dtype's range.

    Args:
        dtype: the dtype.
    """

    def __init__(self, dtype: rl.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return F.convert_image_dtype(image, self.dtype)


class ToPILImage:
    """A tensor (C, H, W) or an array (H, W, C) as a Pillow image.

    Args:
        mode: the mode of the image, by default the one for the channels and the dtype.
    """

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class Normalize(Module):
    """Subtract a mean and divide by a standard deviation, per channel of a tensor.

    Args:
        mean: the means of the channels.
        std: their standard deviations.
        inplace: whether to change the tensor itself.

    Example:
        >>> transforms.Normalize([0.5], [0.25])(torch.full((1, 1, 1), 0.75))
        tensor([[[1.]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class Lambda:
    """A function of your own as a transform.

    Args:
        lambd: the function.

    Raises:
        TypeError: if it cannot be called.
    """

    def __init__(self, lambd: Transform) -> None:
        if not callable(lambd):
            raise TypeError(f"Lambda: got {type(lambd).__name__}. It must be a function.")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomTransforms:
    """Base class of what chooses among transforms."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError(
                f"{type(self).__name__}: got {type(transforms).__name__}. "
                "transforms must be a sequence of them."
            )
        self.transforms = transforms

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return _listed(type(self).__name__, self.transforms)


class RandomApply(Module):
    """Transforms one after the other with a probability, else none of them.

    Args:
        transforms: the transforms, a sequence or a ModuleList.
        p: the probability.
    """

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        if chance(self.p):
            for transform in self.transforms:
                img = transform(img)
        return img

    def __repr__(self) -> str:
        return _listed(type(self).__name__, self.transforms, f"p={self.p}")


class RandomOrder(RandomTransforms):
    """All transforms in a random order.

    Args:
        transforms: the transforms.
    """

    def __call__(self, img: Any) -> Any:
        for index in rl.randperm(len(self.transforms)).tolist():
            img = self.transforms[index](img)
        return img


class RandomChoice(RandomTransforms):
    """One of the transforms.

    Args:
        transforms: the transforms.
        p: their weights, by default equal ones.

    Raises:
        TypeError: if transforms or p is no sequence.
    """

    def __init__(self, transforms: Sequence[Transform], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, Sequence):
            raise TypeError(f"RandomChoice: p is {p!r}. It must be a sequence of weights.")
        self.p = p

    def __call__(self, *args: Any) -> Any:
        weights = rl.tensor(self.p or [1.0] * len(self.transforms), dtype=rl.float64)
        return self.transforms[int(rl.multinomial(weights, 1))](*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"


class LinearTransformation(Module):
    """(image - mean) @ matrix for the flattened image, as for whitening.

    Args:
        transformation_matrix: the matrix (D, D) with D = C * H * W.
        mean_vector: the mean (D,).

    Raises:
        ValueError: if the matrix is not square or the two do not fit together.
    """

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        checked = _arguments.whitening(transformation_matrix, mean_vector)
        self.transformation_matrix, self.mean_vector = checked

    def forward(self, tensor: Tensor) -> Tensor:
        return _arguments.whitened(tensor, self.transformation_matrix, self.mean_vector)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(transformation_matrix={self.transformation_matrix.tolist()}, "
            f"mean_vector={self.mean_vector.tolist()})"
        )
