"""Looking into samples: which values are there, how large they are, where the labels are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rushlight import Tensor
from rushlight.vision._pillow import is_pil_image
from rushlight.vision.transforms._functional.registry import is_pure_tensor
from rushlight.vision.transforms._functional.sizes import get_dimensions, get_size
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

Check = type | Callable[[Any], bool]

IMAGES = (is_pure_tensor, Image, is_pil_image, Video)


def sample_of(inputs: tuple[Any, ...]) -> Any:
    """The sample that a transform was called with: one value, or a tuple of several."""
    if not inputs:
        raise TypeError("A transform was called without a sample. Pass one.")
    return inputs[0] if len(inputs) == 1 else inputs


def check_type(obj: Any, types_or_checks: tuple[Check, ...]) -> bool:
    """Whether a value is of one of these types, or one of these functions says yes to it."""
    return any(
        isinstance(obj, check) if isinstance(check, type) else check(obj)
        for check in types_or_checks
    )


def has_any(flat_inputs: list[Any], *types_or_checks: Check) -> bool:
    """Whether one of the values passes one of the checks."""
    return any(check_type(value, types_or_checks) for value in flat_inputs)


def has_all(flat_inputs: list[Any], *types_or_checks: Check) -> bool:
    """Whether each of the checks is passed by one of the values."""
    return all(has_any(flat_inputs, check) for check in types_or_checks)


def _first(flat_inputs: list[Any], cls: Any, what: str) -> Any:
    for value in flat_inputs:
        if isinstance(value, cls):
            return value
    raise ValueError(f"No {what} were found in the sample. This transform needs them.")


def get_bounding_boxes(flat_inputs: list[Any]) -> BoundingBoxes:
    """The first BoundingBoxes among the values; ValueError if there are none."""
    return _first(flat_inputs, BoundingBoxes, "bounding boxes")


def get_keypoints(flat_inputs: list[Any]) -> KeyPoints:
    """The first KeyPoints among the values; ValueError if there are none."""
    return _first(flat_inputs, KeyPoints, "keypoints")


def _common(flat_inputs: list[Any], checks: tuple[Check, ...], ask: Any, what: str) -> Any:
    found = {tuple(ask(value)) for value in flat_inputs if check_type(value, checks)}
    if not found:
        raise TypeError(f"No {what} was found in the sample. This transform needs one.")
    if len(found) > 1:
        raise ValueError(
            f"The sample has values of several sizes: {sorted(found)}. They must be of one size."
        )
    return found.pop()


def query_chw(flat_inputs: list[Any]) -> tuple[int, int, int]:
    """The (channels, height, width) of all images and videos.

    Raises:
        TypeError: if there are none.
        ValueError: if they differ.
    """
    return _common(flat_inputs, IMAGES, get_dimensions, "image or video")


def query_size(flat_inputs: list[Any]) -> tuple[int, int]:
    """The (height, width) of all images, videos, masks, boxes and points.

    Raises:
        TypeError: if there are none.
        ValueError: if they differ.
    """
    checks = (*IMAGES, Mask, BoundingBoxes, KeyPoints)
    return _common(flat_inputs, checks, get_size, "image, video, mask, box or keypoint")


def _find_labels(inputs: Any) -> Tensor:
    """The labels of a sample: its second part if that is a tensor, else what a key calls so."""
    if isinstance(inputs, (tuple, list)):
        inputs = inputs[1]
    if is_pure_tensor(inputs):
        return inputs
    if not isinstance(inputs, Mapping):
        raise ValueError(
            f"labels_getter: got {type(inputs).__name__}. Labels are found in a dict, or in a pair "
            "whose second part is a dict or a tensor. Pass a function as labels_getter."
        )
    keys = {key.lower(): key for key in reversed(inputs)}
    named = keys.get("labels") or next((keys[k] for k in reversed(keys) if "label" in k), None)
    if named is None:
        raise ValueError(
            f"labels_getter: none of the keys {list(inputs)} names labels. "
            "Pass a function as labels_getter, or None if there are no labels."
        )
    return inputs[named]


def _find_none(inputs: Any) -> None:
    """No labels; a function of the module, so that transforms can be sent to workers."""


def parse_labels_getter(labels_getter: Any) -> Callable[[Any], Any]:
    """The function that finds labels: the one given, the default, or one that finds none."""
    if labels_getter == "default":
        return _find_labels
    if callable(labels_getter):
        return labels_getter
    if labels_getter is None:
        return _find_none
    raise ValueError(
        f"labels_getter: got {labels_getter!r}. It must be 'default', a function or None."
    )
