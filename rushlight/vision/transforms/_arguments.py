"""Arguments of transforms in the forms that users may write them."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any


def pair_of_sides(size: Any, what: str = "size") -> Any:
    """(height, width) of a size that may be one number; a sequence of two comes back as it is."""
    if isinstance(size, numbers.Number):
        return (int(size), int(size))  # pyright: ignore[reportArgumentType]
    if len(size) == 1:
        return (size[0], size[0])
    if len(size) != 2:
        raise ValueError(f"{what}: got {len(size)} numbers. It is (height, width) or one number.")
    return size


def check_sequence(value: Any, name: str, lengths: Sequence[int]) -> None:
    """Refuse what is no sequence of one of these lengths."""
    allowed = " or ".join(map(str, lengths))
    if not isinstance(value, Sequence):
        raise TypeError(f"{name}: got {value!r}. It must be a sequence of {allowed} numbers.")
    if len(value) not in lengths:
        raise ValueError(f"{name}: got {len(value)} numbers. There must be {allowed}.")


def angles(value: Any, name: str, lengths: Sequence[int] = (2,)) -> list[float]:
    """Bounds of angles; one number stands for (-number, number)."""
    if isinstance(value, numbers.Number):
        if value < 0:  # pyright: ignore[reportOperatorIssue]
            raise ValueError(f"{name}: got {value}. One number must not be negative.")
        value = (-value, value)  # pyright: ignore[reportOperatorIssue]
    else:
        check_sequence(value, name, lengths)
    return [float(angle) for angle in value]


def jitter_bounds(
    value: Any, name: str, center: float = 1.0, bound: tuple[float, float] = (0.0, float("inf"))
) -> tuple[float, float] | None:
    """Bounds of a factor; one number stands for what is that far from the center; None for none."""
    if value is None:
        return None
    if isinstance(value, numbers.Number):
        if value < 0:  # pyright: ignore[reportOperatorIssue]
            raise ValueError(f"{name}: got {value}. One number must not be negative.")
        low, high = center - float(value), center + float(value)  # pyright: ignore[reportArgumentType]
        low = max(low, 0.0) if center else low
    elif isinstance(value, Sequence) and len(value) == 2:
        low, high = float(value[0]), float(value[1])
    else:
        raise TypeError(f"{name}: got {value!r}. It must be a number or a sequence of two.")
    if not bound[0] <= low <= high <= bound[1]:
        raise ValueError(
            f"{name}: the bounds are {(low, high)}. They must increase and lie in {bound}."
        )
    return None if low == high == center else (low, high)


def check_ranges(scale: Any, ratio: Any) -> None:
    """Refuse scales and ratios that are no sequences, and warn of those that decrease."""
    for name, value in (("scale", scale), ("ratio", ratio)):
        if not isinstance(value, Sequence):
            raise TypeError(f"{name}: got {value!r}. It must be a sequence (min, max).")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=4)


def check_affine(translate: Any, scale: Any, center: Any) -> None:
    """Refuse bounds of translation and scale, and centers, that no affine map has."""
    if translate is not None:
        check_sequence(translate, "translate", (2,))
        if not all(0.0 <= part <= 1.0 for part in translate):
            raise ValueError(
                f"translate: got {translate}. These are parts of the sides, between 0 and 1."
            )
    if scale is not None:
        check_sequence(scale, "scale", (2,))
        if min(scale) <= 0:
            raise ValueError(f"scale: got {scale}. Scales are positive.")
    if center is not None:
        check_sequence(center, "center", (2,))


def check_blur(kernel_size: Any, sigma: Any) -> None:
    """Refuse windows and bounds of deviations, pairs both, that no blur has."""
    if any(size <= 0 or size % 2 == 0 for size in kernel_size):
        raise ValueError(f"kernel_size: got {kernel_size}. It must be odd and positive.")
    if not 0.0 < sigma[0] <= sigma[1]:
        raise ValueError(f"sigma: got {sigma}. It must be positive, of the form (min, max).")


def check_erasing(scale: Any, ratio: Any, value: Any) -> list[float] | None:
    """The value to erase with, None for noise, where all arguments are sound."""
    if not isinstance(value, (numbers.Number, str, tuple, list)):
        raise TypeError(f"value: got {value!r}. It must be a number, a sequence or 'random'.")
    if isinstance(value, str) and value != "random":
        raise ValueError(f"value: got {value!r}. The only word is 'random'.")
    check_ranges(scale, ratio)
    if scale[0] < 0 or scale[1] > 1:
        raise ValueError(f"scale: got {scale}. These are parts of the area, between 0 and 1.")
    if isinstance(value, str):
        return None
    return [float(v) for v in (value if isinstance(value, (tuple, list)) else [value])]  # pyright: ignore[reportArgumentType]


def check_fill_channels(value: list[float] | None, channels: int) -> None:
    """Refuse a value to erase with that does not fit the channels."""
    if value is not None and len(value) not in (1, channels):
        raise ValueError(
            f"value: got {len(value)} numbers for an image of {channels} channels. "
            "Give one, or one for each channel."
        )


def whitening(transformation_matrix: Any, mean_vector: Any) -> tuple[Any, Any]:
    """The matrix and mean of a LinearTransformation, checked."""
    shape = tuple(transformation_matrix.shape)
    if shape[0] != shape[1]:
        raise ValueError(f"transformation_matrix: the shape is {shape}. It must be square.")
    if mean_vector.shape[0] != shape[0]:
        raise ValueError(
            f"mean_vector: it has {mean_vector.shape[0]} entries and the matrix {shape[0]} rows. "
            "They must be as many."
        )
    for name in ("device", "dtype"):
        theirs = getattr(transformation_matrix, name), getattr(mean_vector, name)
        if theirs[0] != theirs[1]:
            raise ValueError(
                f"transformation_matrix: its {name} is {theirs[0]} and that of mean_vector "
                f"{theirs[1]}. They must be the same."
            )
    return transformation_matrix, mean_vector


def whitened(image: Any, transformation_matrix: Any, mean_vector: Any) -> Any:
    """(image - mean) @ matrix for each flattened image (C, H, W)."""
    shape = image.shape
    entries = math.prod(shape[-3:])
    if entries != transformation_matrix.shape[0]:
        raise ValueError(
            f"LinearTransformation: the image has {entries} entries and the matrix "
            f"{transformation_matrix.shape[0]} rows. They must be as many."
        )
    if image.device.type != mean_vector.device.type:
        raise ValueError(
            f"LinearTransformation: the image is on {image.device} and the mean on "
            f"{mean_vector.device}. Move one of them."
        )
    flat = image.reshape(-1, entries) - mean_vector
    return (flat @ transformation_matrix.to(flat.dtype)).reshape(shape)
