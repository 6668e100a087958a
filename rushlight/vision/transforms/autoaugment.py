"""AutoAugment and its successors as transforms of an image; _augmentation says what they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight import Tensor
from rushlight._repr import Shown
from rushlight.nn import Module
from rushlight.vision.transforms import _augmentation
from rushlight.vision.transforms._augmentation import AutoAugmentPolicy
from rushlight.vision.transforms.functional import InterpolationMode

Fill = float | Sequence[float] | None

__all__ = ["AugMix", "AutoAugment", "AutoAugmentPolicy", "RandAugment", "TrivialAugmentWide"]


class _Augmentation(Shown, Module):
    """Base class: what is outside an image, and how its pixels are found."""

    def __init__(self, interpolation: InterpolationMode, fill: Fill) -> None:
        super().__init__()
        self.interpolation = interpolation
        self.fill = fill

    def _options(self) -> dict[str, Any]:
        return {"interpolation": self.interpolation, "fill": self.fill}


class AutoAugment(_Augmentation):
    """One of the pairs of operations that were learned for a data set (Cubuk et al., 2018).

    Args:
        policy: the data set.
        interpolation: how pixels are found.
        fill: the value outside the image; by default zero.

    Raises:
        ValueError: if there is no such policy.
    """

    _shown = ("policy", "fill")

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: Fill = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.policy = policy
        self.policies = _augmentation.policies_of(policy)

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, Tensor, Tensor]:
        """The index of a pair, for each operation a number to compare with its chance, signs."""
        return _augmentation.draw_policy(transform_num)

    def forward(self, img: Any) -> Any:
        return _augmentation.auto_augment(img, self.policies, **self._options())


class RandAugment(_Augmentation):
    """Several operations, each of the same strength (Cubuk et al., 2019).

    Args:
        num_ops: how many.
        magnitude: the strength, below num_magnitude_bins.
        num_magnitude_bins: how many strengths there are.
        interpolation: how pixels are found.
        fill: the value outside the image; by default zero.
    """

    _shown = ("num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: Fill = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins

    def forward(self, img: Any) -> Any:
        sizes = self.num_ops, self.magnitude, self.num_magnitude_bins
        return _augmentation.rand_augment(img, *sizes, **self._options())


class TrivialAugmentWide(_Augmentation):
    """One operation of any strength (Müller and Hutter, 2021).

    Args:
        num_magnitude_bins: how many strengths there are.
        interpolation: how pixels are found.
        fill: the value outside the image; by default zero.
    """

    _shown = ("num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: Fill = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def forward(self, img: Any) -> Any:
        return _augmentation.trivial_augment(img, self.num_magnitude_bins, **self._options())


class AugMix(_Augmentation):
    """A mixture of an image and of several chains of operations on it (Hendrycks et al., 2019).

    Args:
        severity: the strength of the operations, from 1 to 10.
        mixture_width: the number of chains.
        chain_depth: the number of operations of each; a negative one draws it from 1 to 3.
        alpha: how even the weights of the mixture are, the parameter of their distribution.
        all_ops: whether brightness, contrast, color and sharpness are among the operations.
        interpolation: how pixels are found.
        fill: the value outside the image; by default zero.

    Raises:
        ValueError: for another severity.
    """

    _shown = (
        "severity",
        "mixture_width",
        "chain_depth",
        "alpha",
        "all_ops",
        "interpolation",
        "fill",
    )

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        fill: Fill = None,
    ) -> None:
        super().__init__(interpolation, fill)
        _augmentation.check_severity(severity)
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops

    def forward(self, orig_img: Any) -> Any:
        return _augmentation.aug_mix(
            orig_img,
            self.severity,
            self.mixture_width,
            self.chain_depth,
            self.alpha,
            self.all_ops,
            **self._options(),
        )
