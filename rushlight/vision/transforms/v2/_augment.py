"""Transforms that mix the images of a batch, erase windows of them or compress them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.functional import one_hot
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision._pillow import is_pil_image
from rushlight.vision.transforms import _arguments, _draws
from rushlight.vision.transforms import _geometry as _v1
from rushlight.vision.transforms._functional import crops, filters
from rushlight.vision.transforms._functional.registry import is_pure_tensor
from rushlight.vision.transforms.v2._samples import (
    has_any,
    parse_labels_getter,
    query_chw,
    query_size,
    sample_of,
)
from rushlight.vision.transforms.v2._transform import RandomApplyTransform, Transform
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video, wrap


class RandomErasing(RandomApplyTransform):
    """Write over a random window of images (Zhong et al., 2017).

    Args:
        p: the probability of doing it.
        scale: the bounds of the part of the area.
        ratio: the bounds of the window's height by its width.
        value: what is written, one number or one for each channel; "random" for noise.
        inplace: whether to change tensors themselves.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if scale or p lie outside of [0, 1], or value is another word.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p=p)
        self.scale = scale
        self.ratio = ratio
        self.value = _arguments.check_erasing(scale, ratio, value)
        self.inplace = inplace

    def _call_kernel(
        self, functional: Callable[..., Any], inpt: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if isinstance(inpt, (BoundingBoxes, KeyPoints, Mask)):
            name = type(inpt).__name__
            warnings.warn(f"{type(self).__name__} leaves {name} as they are.", stacklevel=2)
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    get_params = staticmethod(_v1.RandomErasing.get_params)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels, height, width = query_chw(flat_inputs)
        _arguments.check_fill_channels(self.value, channels)
        drawn = _draws.erasing(channels, height, width, self.scale, self.ratio, self.value)
        return dict(zip("ijhwv", drawn or (0, 0, height, width, None), strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if params["v"] is None:
            return inpt
        return self._call_kernel(crops.erase, inpt, **params, inplace=self.inplace)


class _Mixing(Transform):
    """Base class: finds the labels of a batch, which become probabilities of classes."""

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        num_classes: int | None = None,
        labels_getter: Callable[[Any], Any] | str | None = "default",
    ) -> None:
        super().__init__()
        self.alpha = float(alpha)
        if not self.alpha > 0:
            raise ValueError(f"{type(self).__name__}: alpha is {alpha}. It must be positive.")
        self.num_classes = num_classes
        self._labels_getter = parse_labels_getter(labels_getter)

    def _share(self) -> float:
        """How much of an image stays, of the distribution Beta(alpha, alpha)."""
        return rl._sample_dirichlet(rl.tensor([self.alpha, self.alpha]))[0].item()

    def forward(self, *inputs: Any) -> Any:
        sample = sample_of(inputs)
        flat_inputs, spec = tree_flatten(sample)
        needed = self._needs_transform_list(flat_inputs)
        if has_any(flat_inputs, is_pil_image, BoundingBoxes, Mask, KeyPoints):
            raise ValueError(
                f"{type(self).__name__}: the sample has Pillow images, boxes, masks or keypoints. "
                "It mixes batches of images and labels alone."
            )
        labels = self._checked_labels(self._labels_getter(sample))
        chosen = [value for value, needs in zip(flat_inputs, needed, strict=True) if needs]
        params = {"labels": labels, "batch_size": labels.shape[0], **self.make_params(chosen)}
        outputs = [
            self.transform(value, params) if needs or value is labels else value
            for value, needs in zip(flat_inputs, needed, strict=True)
        ]
        return tree_unflatten(outputs, spec)

    def _checked_labels(self, labels: Any) -> Tensor:
        name = type(self).__name__
        if not isinstance(labels, Tensor):
            raise ValueError(f"{name}: labels are {type(labels).__name__}. They must be a tensor.")
        if labels.ndim not in (1, 2):
            raise ValueError(
                f"{name}: labels have the shape {tuple(labels.shape)}. They must be (batch,) "
                "indices or (batch, classes) probabilities."
            )
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[-1]):
            raise ValueError(
                f"{name}: labels have {labels.shape[-1]} classes and num_classes is "
                f"{self.num_classes}. They must be equal. Leave num_classes out."
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError(
                f"{name}: num_classes is missing. Labels that are indices become probabilities of "
                "classes. Pass num_classes."
            )
        return labels

    def _mix_images(self, image: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if inpt is params["labels"]:
            return self._mixed_labels(inpt, params["label_share"])
        if not (isinstance(inpt, (Image, Video)) or is_pure_tensor(inpt)):
            return inpt
        dims = 5 if isinstance(inpt, Video) else 4
        if inpt.ndim != dims or inpt.shape[0] != params["batch_size"]:
            raise ValueError(
                f"{type(self).__name__}: the shape is {tuple(inpt.shape)} for "
                f"{params['batch_size']} labels. It must be a batch of {dims} dimensions, as long "
                "as the labels."
            )
        mixed = self._mix_images(inpt, params)
        return mixed if is_pure_tensor(inpt) else wrap(mixed, like=inpt)

    def _mixed_labels(self, labels: Tensor, share: float) -> Tensor:
        if labels.ndim == 1:
            labels = one_hot(labels, num_classes=self.num_classes or -1)
        labels = labels if labels.is_floating_point() else labels.float()
        return labels.roll(1, 0).mul_(1.0 - share).add_(labels, alpha=share)


class MixUp(_Mixing):
    """Mix each image of a batch with the one before it, and their labels (Zhang et al., 2017).

    Args:
        alpha: the parameter of the Beta distribution of the shares.
        num_classes: the number of classes, for labels that are indices.
        labels_getter: a function that finds the labels in a sample; by default its second part or
            what a key calls so.

    Raises:
        ValueError: for samples without labels or with other things than images.

    Example:
        >>> images, labels = torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])
        >>> images, labels = v2.MixUp(num_classes=3)(images, labels)
        >>> labels.sum(dim=1)
        tensor([1., 1., 1., 1.])
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        share = self._share()
        return {"lam": share, "label_share": share}

    def _mix_images(self, image: Tensor, params: dict[str, Any]) -> Tensor:
        share = params["lam"]
        return image.roll(1, 0).mul_(1.0 - share).add_(image.mul(share))


class CutMix(_Mixing):
    """Paste a window of the image before into each of a batch (Yun et al., 2019).

    Args:
        alpha: the parameter of the Beta distribution of the shares of the area.
        num_classes: the number of classes, for labels that are indices.
        labels_getter: a function that finds the labels in a sample; by default its second part or
            what a key calls so.

    Raises:
        ValueError: for samples without labels or with other things than images.
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        share = self._share()
        height, width = query_size(flat_inputs)
        x, y = _draws.integer(0, width), _draws.integer(0, height)
        half = 0.5 * math.sqrt(1.0 - share)
        half_width, half_height = int(half * width), int(half * height)
        left, right = max(x - half_width, 0), min(x + half_width, width)
        top, bottom = max(y - half_height, 0), min(y + half_height, height)
        left_over = 1.0 - (right - left) * (bottom - top) / (width * height)
        return {"box": (left, top, right, bottom), "label_share": left_over}

    def _mix_images(self, image: Tensor, params: dict[str, Any]) -> Tensor:
        left, top, right, bottom = params["box"]
        mixed = image.clone()
        window = image[..., top:bottom, left:right]
        mixed[..., top:bottom, left:right] = window.roll(1, 0)
        return mixed


class JPEG(Transform):
    """Compress images as JPEG and read them again, for the artifacts of it.

    Args:
        quality: from 1, small and bad, to 100; or the bounds of it.

    Raises:
        TypeError: if it is no integer or sequence.
        ValueError: if it lies outside, or the bounds decrease.
    """

    def __init__(self, quality: int | Sequence[int]) -> None:
        super().__init__()
        if isinstance(quality, bool):
            raise TypeError(f"JPEG: quality is {quality}. It must be an integer.")
        bounds: Any = [quality, quality] if isinstance(quality, int) else quality
        _arguments.check_sequence(bounds, "quality", (2,))
        if not all(isinstance(b, int) for b in bounds) or not 1 <= bounds[0] <= bounds[1] <= 100:
            raise ValueError(
                f"JPEG: quality is {quality!r}. It must be an integer from 1 to 100, or (min, max)."
            )
        self.quality = bounds

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"quality": _draws.integer(self.quality[0], self.quality[1] + 1)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(filters.jpeg, inpt, quality=params["quality"])
