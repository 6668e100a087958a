"""AutoAugment and its successors for samples; transforms._augmentation says what they do."""

from __future__ import annotations

from typing import Any

from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision.transforms import _augmentation
from rushlight.vision.transforms import autoaugment as _v1
from rushlight.vision.transforms._augmentation import AutoAugmentPolicy
from rushlight.vision.transforms._functional.interpolation import InterpolationMode
from rushlight.vision.transforms.v2._fills import Fill, fill_of, fills_by_type
from rushlight.vision.transforms.v2._samples import IMAGES, check_type, sample_of
from rushlight.vision.transforms.v2._transform import Transform
from rushlight.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask

Interpolation = InterpolationMode | str | int


class _Augmentation(Transform):
    """Base class: finds the one image or video of a sample, and refuses boxes and the like."""

    def __init__(self, interpolation: Interpolation, fill: Fill) -> None:
        super().__init__()
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_type(fill)

    def _augment(self, image: Any, **options: Any) -> Any:
        raise NotImplementedError

    def forward(self, *inputs: Any) -> Any:
        flat_inputs, spec = tree_flatten(sample_of(inputs))
        found = []
        needed = self._needs_transform_list(flat_inputs)
        for index, (value, needs) in enumerate(zip(flat_inputs, needed, strict=True)):
            if needs and check_type(value, IMAGES):
                found.append(index)
            elif isinstance(value, (BoundingBoxes, Mask, KeyPoints)):
                raise TypeError(
                    f"{type(self).__name__}: the sample has {type(value).__name__}. "
                    "It augments images and videos alone."
                )
        if len(found) != 1:
            raise TypeError(
                f"{type(self).__name__}: the sample has {len(found)} images or videos. "
                "It must have one."
            )
        image = flat_inputs[found[0]]
        options = {"interpolation": self.interpolation, "fill": fill_of(self._fill, image)}
        flat_inputs[found[0]] = self._augment(image, **options)
        return tree_unflatten(flat_inputs, spec)


class AutoAugment(_Augmentation):
    """One of the pairs of operations that were learned for a data set (Cubuk et al., 2018).

    Args:
        policy: the data set.
        interpolation: how pixels are found.
        fill: the value outside the image, or a dict of these by type.

    Raises:
        ValueError: if there is no such policy.
    """

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Interpolation = "nearest",
        fill: Fill = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.policy = policy
        self._policies = _augmentation.policies_of(policy)

    get_params = staticmethod(_v1.AutoAugment.get_params)

    def _augment(self, image: Any, **options: Any) -> Any:
        return _augmentation.auto_augment(image, self._policies, **options)


class RandAugment(_Augmentation):
    """Several operations, each of the same strength (Cubuk et al., 2019).

    Args:
        num_ops: how many.
        magnitude: the strength, below num_magnitude_bins.
        num_magnitude_bins: how many strengths there are.
        interpolation: how pixels are found.
        fill: the value outside the image, or a dict of these by type.

    Raises:
        ValueError: if num_ops is negative.
    """

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = "nearest",
        fill: Fill = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if not isinstance(num_ops, int) or num_ops < 0:
            raise ValueError(f"RandAugment: num_ops is {num_ops!r}. It must be a count.")
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins

    def _augment(self, image: Any, **options: Any) -> Any:
        sizes = self.num_ops, self.magnitude, self.num_magnitude_bins
        return _augmentation.rand_augment(image, *sizes, **options)


class TrivialAugmentWide(_Augmentation):
    """One operation of any strength (Müller and Hutter, 2021).

    Args:
        num_magnitude_bins: how many strengths there are.
        interpolation: how pixels are found.
        fill: the value outside the image, or a dict of these by type.
    """

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = "nearest",
        fill: Fill = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def _augment(self, image: Any, **options: Any) -> Any:
        return _augmentation.trivial_augment(image, self.num_magnitude_bins, **options)


class AugMix(_Augmentation):
    """A mixture of an image and of several chains of operations on it (Hendrycks et al., 2019).

    Args:
        severity: the strength of the operations, from 1 to 10.
        mixture_width: the number of chains.
        chain_depth: the number of operations of each; a negative one draws it from 1 to 3.
        alpha: how even the weights of the mixture are, the parameter of their distribution.
        all_ops: whether brightness, contrast, color and sharpness are among the operations.
        interpolation: how pixels are found.
        fill: the value outside the image, or a dict of these by type.

    Raises:
        ValueError: for another severity.
    """

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Interpolation = "bilinear",
        fill: Fill = None,
    ) -> None:
        super().__init__(interpolation, fill)
        _augmentation.check_severity(severity)
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops

    def _augment(self, image: Any, **options: Any) -> Any:
        return _augmentation.aug_mix(
            image,
            self.severity,
            self.mixture_width,
            self.chain_depth,
            self.alpha,
            self.all_ops,
            **options,
        )
