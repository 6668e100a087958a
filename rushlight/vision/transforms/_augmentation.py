"""Augmentation by operations of random strength: what AutoAugment and its successors do.

Both versions of their classes call this. An image is a Pillow image, a tensor or a tv_tensor.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.transforms._draws import chance, integer
from rushlight.vision.transforms._functional import color, filters, warping
from rushlight.vision.transforms._functional.conversions import pil_to_tensor, to_pil_image
from rushlight.vision.transforms._functional.sizes import get_size, max_value
from rushlight.vision.tv_tensors import TVTensor, Video, wrap


class Strength(NamedTuple):
    """The magnitudes of an operation: from low to high in equal steps, of either sign if signed.

    relative_to is the side of the image of which they are parts, 0 for the height, 1 for the width.
    """

    low: float = 0.0
    high: float = 0.0
    signed: bool = False
    relative_to: int | None = None
    whole: bool = False

    def at(self, index: int, bins: int, size: tuple[int, int]) -> float:
        """The magnitude of a step for an image of (height, width)."""
        side = 1 if self.relative_to is None else size[self.relative_to]
        steps = rl.linspace(self.low * side, self.high * side, bins)
        return float(steps[index].round() if self.whole else steps[index])

    @property
    def constant(self) -> bool:
        return self.low == self.high


Space = dict[str, Strength]

_NONE = Strength()


def _space(
    shear: float, x: Strength, y: Strength, rotate: float, bits: Strength, factor: float | None
) -> Space:
    """The operations in the order in which they are drawn."""
    space = {
        "ShearX": Strength(0.0, shear, signed=True),
        "ShearY": Strength(0.0, shear, signed=True),
        "TranslateX": x,
        "TranslateY": y,
        "Rotate": Strength(0.0, rotate, signed=True),
    }
    factors = ("Brightness", "Color", "Contrast", "Sharpness")
    if factor is not None:
        space |= {name: Strength(0.0, factor, signed=True) for name in factors}
    space |= {"Posterize": bits, "Solarize": Strength(1.0, 0.0)}
    return space | {"AutoContrast": _NONE, "Equalize": _NONE}


def _part(most: float, side: int) -> Strength:
    return Strength(0.0, most, signed=True, relative_to=side)


_AUTO = _space(
    0.3,
    _part(150.0 / 331.0, 1),
    _part(150.0 / 331.0, 0),
    30.0,
    Strength(8.0, 4.0, whole=True),
    0.9,
) | {"Invert": _NONE}
RAND_SPACE = {"Identity": _NONE} | {name: _AUTO[name] for name in _AUTO if name != "Invert"}
TRIVIAL_SPACE = {"Identity": _NONE} | _space(
    0.99,
    Strength(0.0, 32.0, signed=True),
    Strength(0.0, 32.0, signed=True),
    135.0,
    Strength(8.0, 2.0, whole=True),
    0.99,
)
_MIX = _space(
    0.3, _part(1.0 / 3.0, 1), _part(1.0 / 3.0, 0), 30.0, Strength(4.0, 0.0, whole=True), None
)
# The operations that the benchmark of corruptions has too come last and may be left out.
_CORRUPTIONS = ("Brightness", "Color", "Contrast", "Sharpness")
MIX_SPACES = {False: _MIX, True: _MIX | {name: _AUTO[name] for name in _CORRUPTIONS}}


class AutoAugmentPolicy(Enum):
    """The data set for which the policies of AutoAugment were found."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Cubuk et al., "AutoAugment", 2018, appendix: two operations a line, each with its probability and
# the index of its magnitude among ten.
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize 0.4 8, Rotate 0.6 9
        Solarize 0.6 5, AutoContrast 0.6
        Equalize 0.8, Equalize 0.6
        Posterize 0.6 7, Posterize 0.6 6
        Equalize 0.4, Solarize 0.2 4
        Equalize 0.4, Rotate 0.8 8
        Solarize 0.6 3, Equalize 0.6
        Posterize 0.8 5, Equalize 1.0
        Rotate 0.2 3, Solarize 0.6 8
        Equalize 0.6, Posterize 0.4 6
        Rotate 0.8 8, Color 0.4 0
        Rotate 0.4 9, Equalize 0.6
        Equalize 0.0, Equalize 0.8
        Invert 0.6, Equalize 1.0
        Color 0.6 4, Contrast 1.0 8
        Rotate 0.8 8, Color 1.0 2
        Color 0.8 8, Solarize 0.8 7
        Sharpness 0.4 7, Invert 0.6
        ShearX 0.6 5, Equalize 1.0
        Color 0.4 0, Equalize 0.6
        Equalize 0.4, Solarize 0.2 4
        Solarize 0.6 5, AutoContrast 0.6
        Invert 0.6, Equalize 1.0
        Color 0.6 4, Contrast 1.0 8
        Equalize 0.8, Equalize 0.6
    """,
    AutoAugmentPolicy.CIFAR10: """
        Invert 0.1, Contrast 0.2 6
        Rotate 0.7 2, TranslateX 0.3 9
        Sharpness 0.8 1, Sharpness 0.9 3
        ShearY 0.5 8, TranslateY 0.7 9
        AutoContrast 0.5, Equalize 0.9
        ShearY 0.2 7, Posterize 0.3 7
        Color 0.4 3, Brightness 0.6 7
        Sharpness 0.3 9, Brightness 0.7 9
        Equalize 0.6, Equalize 0.5
        Contrast 0.6 7, Sharpness 0.6 5
        Color 0.7 7, TranslateX 0.5 8
        Equalize 0.3, AutoContrast 0.4
        TranslateY 0.4 3, Sharpness 0.2 6
        Brightness 0.9 6, Color 0.2 8
        Solarize 0.5 2, Invert 0.0
        Equalize 0.2, AutoContrast 0.6
        Equalize 0.2, Equalize 0.6
        Color 0.9 9, Equalize 0.6
        AutoContrast 0.8, Solarize 0.2 8
        Brightness 0.1 3, Color 0.7 0
        Solarize 0.4 5, AutoContrast 0.9
        TranslateY 0.9 9, TranslateY 0.7 9
        AutoContrast 0.9, Solarize 0.8 3
        Equalize 0.8, Invert 0.1
        TranslateY 0.7 9, AutoContrast 0.9
    """,
    AutoAugmentPolicy.SVHN: """
        ShearX 0.9 4, Invert 0.2
        ShearY 0.9 8, Invert 0.7
        Equalize 0.6, Solarize 0.6 6
        Invert 0.9, Equalize 0.6
        Equalize 0.6, Rotate 0.9 3
        ShearX 0.9 4, AutoContrast 0.8
        ShearY 0.9 8, Invert 0.4
        ShearY 0.9 5, Solarize 0.2 6
        Invert 0.9, AutoContrast 0.8
        Equalize 0.6, Rotate 0.9 3
        ShearX 0.9 4, Solarize 0.3 3
        ShearY 0.8 8, Invert 0.7
        Equalize 0.9, TranslateY 0.6 6
        Invert 0.9, Equalize 0.6
        Contrast 0.3 3, Rotate 0.8 4
        Invert 0.8, TranslateY 0.0 2
        ShearY 0.7 6, Solarize 0.4 8
        Invert 0.6, Rotate 0.8 4
        ShearY 0.3 7, TranslateX 0.9 3
        ShearX 0.1 6, Invert 0.6
        Solarize 0.7 2, TranslateY 0.6 7
        ShearY 0.8 4, Invert 0.8
        ShearX 0.7 9, TranslateY 0.8 3
        ShearY 0.8 5, AutoContrast 0.7
        ShearX 0.7 2, Invert 0.1
    """,
}

Operation = tuple[str, float, int | None]


def policies_of(policy: AutoAugmentPolicy) -> list[list[Operation]]:
    """The pairs of (operation, probability, index of the magnitude) of a policy.

    Raises:
        ValueError: if there is no such policy.
    """
    if policy not in _POLICIES:
        raise ValueError(f"AutoAugment: policy is {policy!r}. It must be an AutoAugmentPolicy.")
    pairs = []
    for line in _POLICIES[policy].strip().splitlines():
        fields = [operation.split() for operation in line.split(",")]
        pairs.append([(f[0], float(f[1]), int(f[2]) if len(f) > 2 else None) for f in fields])
    return pairs


def _apply(image: Any, name: str, magnitude: float, interpolation: Any, fill: Any) -> Any:
    """What an operation of some magnitude makes of an image."""
    if name in ("ShearX", "ShearY"):
        degrees = math.degrees(math.atan(magnitude))
        shear = [degrees, 0.0] if name == "ShearX" else [0.0, degrees]
        return warping.affine(
            image, 0.0, [0, 0], 1.0, shear, interpolation, fill=fill, center=[0, 0]
        )
    if name in ("TranslateX", "TranslateY"):
        pixels = int(magnitude)
        shift = [pixels, 0] if name == "TranslateX" else [0, pixels]
        return warping.affine(image, 0.0, shift, 1.0, [0.0, 0.0], interpolation, fill=fill)
    if name == "Rotate":
        return warping.rotate(image, magnitude, interpolation, fill=fill)
    if name == "Posterize":
        return color.posterize(image, int(magnitude))
    if name == "Solarize":
        white = max_value(image.dtype) if isinstance(image, Tensor) else 255
        return color.solarize(image, white * magnitude)
    if name in _BY_FACTOR:
        return _BY_FACTOR[name](image, 1.0 + magnitude)
    return _PLAIN[name](image)


_BY_FACTOR = {
    "Brightness": color.adjust_brightness,
    "Color": color.adjust_saturation,
    "Contrast": color.adjust_contrast,
    "Sharpness": filters.adjust_sharpness,
}
_PLAIN = {
    "AutoContrast": color.autocontrast,
    "Equalize": color.equalize,
    "Invert": color.invert,
    "Identity": lambda image: image,
}


def _drawn(
    image: Any, space: Space, bins: int, index: int, end: int | None, options: dict[str, Any]
) -> Any:
    """An operation of a space on an image, of the magnitude index, or of one drawn below end."""
    name = list(space)[integer(0, len(space))]
    strength = space[name]
    magnitude = 0.0
    if not strength.constant:
        index = index if end is None else integer(0, end)
        height, width = get_size(image)
        magnitude = strength.at(index, bins, (height, width))
    if strength.signed and chance(0.5):
        magnitude = -magnitude
    return _apply(image, name, magnitude, **options)


def draw_policy(transform_num: int) -> tuple[int, Tensor, Tensor]:
    """The index of a policy, a number for each operation to compare with its chance, and signs."""
    return integer(0, transform_num), rl.rand(2), rl.randint(2, (2,))


def auto_augment(image: Any, policies: list[list[Operation]], **options: Any) -> Any:
    """One of the pairs of operations on an image."""
    chosen, chances, signs = draw_policy(len(policies))
    height, width = get_size(image)
    for (name, p, index), drawn, sign in zip(
        policies[chosen], chances.tolist(), signs.tolist(), strict=True
    ):
        if drawn <= p:
            strength = _AUTO[name]
            magnitude = 0.0 if index is None else strength.at(index, 10, (height, width))
            if strength.signed and sign == 0:
                magnitude = -magnitude
            image = _apply(image, name, magnitude, **options)
    return image


def rand_augment(image: Any, num_ops: int, magnitude: int, bins: int, **options: Any) -> Any:
    """Several operations of one strength on an image."""
    for _ in range(num_ops):
        image = _drawn(image, RAND_SPACE, bins, magnitude, None, options)
    return image


def trivial_augment(image: Any, bins: int, **options: Any) -> Any:
    """One operation of any strength on an image."""
    return _drawn(image, TRIVIAL_SPACE, bins, 0, bins, options)


def aug_mix(
    image: Any,
    severity: int,
    width: int,
    depth: int,
    alpha: float,
    all_ops: bool,
    **options: Any,
) -> Any:
    """A mixture of an image and several chains of operations on it."""
    pixels = image if isinstance(image, Tensor) else pil_to_tensor(image)
    dims = 5 if isinstance(image, Video) else 4
    shape = list(pixels.shape)
    batch = pixels.reshape([1] * max(dims - pixels.ndim, 0) + shape)
    ones = [1] * (batch.ndim - 1)

    def weights(count: int) -> Tensor:
        alphas = rl.full((batch.shape[0], count), alpha, device=batch.device)
        return rl._sample_dirichlet(alphas)

    shares = weights(2)
    chains = weights(width) * shares[:, 1:]
    mix = shares[:, 0].reshape(-1, *ones) * batch
    for chain in range(width):
        augmented = batch
        for _ in range(depth if depth > 0 else integer(1, 4)):
            augmented = _drawn(augmented, MIX_SPACES[all_ops], 10, 0, severity, options)
        mix = mix + chains[:, chain].reshape(-1, *ones) * augmented
    mix = mix.reshape(shape).to(pixels.dtype)
    if isinstance(image, TVTensor):
        return wrap(mix, like=image)
    return mix if isinstance(image, Tensor) else to_pil_image(mix)


def check_severity(severity: int) -> None:
    """Refuse what is no step among the ten of AugMix."""
    if not 1 <= severity <= 10:
        raise ValueError(f"AugMix: severity is {severity}. It must be from 1 to 10.")
