"""Transforms of values that stay in their places, and those that drop boxes and points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import Tensor
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision._pillow import is_pil_image
from rushlight.vision.transforms import _arguments, _draws
from rushlight.vision.transforms import _color as _v1
from rushlight.vision.transforms._functional import box_formats, filters
from rushlight.vision.transforms._functional.registry import is_pure_tensor
from rushlight.vision.transforms.v2._geometry import _pair_of_numbers
from rushlight.vision.transforms.v2._samples import (
    get_bounding_boxes,
    get_keypoints,
    has_any,
    parse_labels_getter,
    sample_of,
)
from rushlight.vision.transforms.v2._transform import Transform
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video, wrap


class Identity(Transform):
    """Leave a sample as it is."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(Transform):
    """A function of your own as a transform of values.

    Args:
        lambd: the function.
        *types: the types of the values that it is for; by default all.
    """

    _transformed_types = (object,)

    def __init__(self, lambd: Callable[[Any], Any], *types: type) -> None:
        super().__init__()
        self.lambd = lambd
        self.types = types or (object,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.lambd(inpt) if isinstance(inpt, self.types) else inpt

    def extra_repr(self) -> str:
        name = getattr(self.lambd, "__name__", None)
        types = f"types={[cls.__name__ for cls in self.types]}"
        return f"{name}, {types}" if name else types


class _OfTensors(Transform):
    """Base class of the transforms that refuse Pillow images."""

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, is_pil_image):
            raise TypeError(
                f"{type(self).__name__}: the sample has Pillow images. It takes tensors. "
                "Convert them with ToImage."
            )


class LinearTransformation(_OfTensors):
    """(image - mean) @ matrix for the flattened image, as for whitening.

    Args:
        transformation_matrix: the matrix (D, D) with D = C * H * W.
        mean_vector: the mean (D,).

    Raises:
        ValueError: if the matrix is not square or the two do not fit together.
    """

    _transformed_types = (is_pure_tensor, Image, Video)

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        checked = _arguments.whitening(transformation_matrix, mean_vector)
        self.transformation_matrix, self.mean_vector = checked

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        output = _arguments.whitened(
            inpt.as_subclass(Tensor), self.transformation_matrix, self.mean_vector
        )
        return wrap(output, like=inpt)


class Normalize(_OfTensors):
    """Subtract a mean and divide by a standard deviation, per channel of images.

    Args:
        mean: the means of the channels.
        std: their standard deviations.
        inplace: whether to change tensors themselves.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = list(mean)
        self.std = list(std)
        self.inplace = inplace

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            filters.normalize, inpt, mean=self.mean, std=self.std, inplace=self.inplace
        )


class GaussianBlur(Transform):
    """Blur images with a Gaussian of random width.

    Args:
        kernel_size: the (width, height) of the window, odd, or one number for both.
        sigma: the bounds of the standard deviation, or the deviation.

    Raises:
        ValueError: if a size is even, or a deviation not positive.
    """

    def __init__(
        self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)
    ) -> None:
        super().__init__()
        self.kernel_size = _arguments.pair_of_sides(kernel_size, "kernel_size")
        self.sigma = _pair_of_numbers(sigma, "sigma")
        _arguments.check_blur(self.kernel_size, self.sigma)

    get_params = staticmethod(_v1.GaussianBlur.get_params)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        sigma = _draws.uniform(*self.sigma)
        return {"sigma": [sigma, sigma]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(filters.gaussian_blur, inpt, self.kernel_size, **params)


class GaussianNoise(Transform):
    """Add normally distributed noise to images.

    Args:
        mean: the mean of the noise, where white is 1.
        sigma: its standard deviation.
        clip: whether the result is held between black and white.
    """

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean = mean
        self.sigma = sigma
        self.clip = clip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            filters.gaussian_noise, inpt, mean=self.mean, sigma=self.sigma, clip=self.clip
        )


class _Sanitizer(Transform):
    """Base class: drops places, and the labels and masks that belong to them."""

    def _find_labels_by(self, labels_getter: Callable[[Any], Any] | str | None) -> None:
        self.labels_getter = labels_getter
        self._labels_getter = parse_labels_getter(labels_getter)

    def _places(self, flat_inputs: list[Any]) -> tuple[Tensor, Tensor]:
        """The places of a sample, and which of them stay."""
        raise NotImplementedError

    def _belongs(self, inpt: Any, count: int) -> bool:
        """Whether a value that is no label has an entry for each place."""
        raise NotImplementedError

    def forward(self, *inputs: Any) -> Any:
        sample = sample_of(inputs)
        found = self._labels_getter(sample)
        labels = () if found is None else found if isinstance(found, (tuple, list)) else (found,)
        flat_inputs, spec = tree_flatten(sample)
        if not all(isinstance(label, Tensor) for label in labels):
            raise ValueError(
                f"{type(self).__name__}: labels are {type(found).__name__}. "
                "They must be a tensor, a sequence of tensors or None."
            )
        places, valid = self._places(flat_inputs)
        for label in labels:
            if label.shape[0] != places.shape[0]:
                raise ValueError(
                    f"{type(self).__name__}: there are {places.shape[0]} places and "
                    f"{label.shape[0]} labels. They must be as many."
                )
        params = {"valid": valid, "labels": labels}
        return tree_unflatten([self.transform(value, params) for value in flat_inputs], spec)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        is_label = any(inpt is label for label in params["labels"])
        valid = params["valid"]
        if not is_label and not self._belongs(inpt, valid.shape[0]):
            return inpt
        output = inpt[valid]
        return output if is_label else wrap(output, like=inpt)


class SanitizeBoundingBoxes(_Sanitizer):
    """Drop boxes that are too small or outside of the image, with their labels and masks.

    Args:
        min_size: the least width and height.
        min_area: the least area.
        labels_getter: a function that finds the labels in a sample, one tensor or several; by
            default its second part or what a key calls so; None if there are none.

    Raises:
        ValueError: if a limit is below 1; for samples without boxes, or with other labels.

    Example:
        >>> boxes = [[0, 0, 4, 4], [2, 2, 2, 6]]
        >>> boxes = tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(8, 8))
        >>> v2.SanitizeBoundingBoxes()({"boxes": boxes, "labels": torch.tensor([1, 2])})["labels"]
        tensor([1])
    """

    def __init__(
        self,
        min_size: float = 1.0,
        min_area: float = 1.0,
        labels_getter: Callable[[Any], Any] | str | None = "default",
    ) -> None:
        super().__init__()
        for name, least in (("min_size", min_size), ("min_area", min_area)):
            if least < 1:
                raise ValueError(f"SanitizeBoundingBoxes: {name} is {least}. It is at least 1.")
        self.min_size = min_size
        self.min_area = min_area
        self._find_labels_by(labels_getter)

    def _places(self, flat_inputs: list[Any]) -> tuple[Tensor, Tensor]:
        boxes = get_bounding_boxes(flat_inputs)
        valid = box_formats.sound_boxes(
            boxes.as_subclass(Tensor),
            boxes.format,
            boxes.canvas_size,
            self.min_size,
            self.min_area,
        )
        return boxes, valid

    def _belongs(self, inpt: Any, count: int) -> bool:
        if isinstance(inpt, Mask):
            # A mask of classes for the whole image has no entry for each box.
            return inpt.ndim > 0 and inpt.shape[0] == count
        return isinstance(inpt, BoundingBoxes)


class SanitizeKeyPoints(_Sanitizer):
    """Drop points outside of the image, with their labels; of groups, those with such a point.

    Args:
        labels_getter: a function that finds the labels in a sample, or "default"; by default there
            are none.

    Raises:
        ValueError: for samples without points, or with other labels.
    """

    def __init__(self, labels_getter: Callable[[Any], Any] | str | None = None) -> None:
        super().__init__()
        self._find_labels_by(labels_getter)

    def _places(self, flat_inputs: list[Any]) -> tuple[Tensor, Tensor]:
        points = get_keypoints(flat_inputs)
        return points, box_formats.sound_points(points.as_subclass(Tensor), points.canvas_size)

    def _belongs(self, inpt: Any, count: int) -> bool:
        return isinstance(inpt, KeyPoints)
