"""The functions on images whose arguments decide which op of the core runs.

nn.functional takes them over; they hold no state.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._overridable import overridable

Size = int | Sequence[int] | None
Scale = float | Sequence[float] | None

__all__ = [
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "affine_grid",
    "grid_sample",
    "interpolate",
    "local_response_norm",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

_ops = _C.ops("nn.functional")
_interpolate = _ops["_interpolate"]
_avg_pool2d = _ops["avg_pool2d"]

# What the core calls a mode, and the dims of the input that it takes.
_MODES = {
    "nearest": ("nearest", (3, 4, 5)),
    "nearest-exact": ("nearest-exact", (3, 4, 5)),
    "area": ("area", (3, 4, 5)),
    "linear": ("linear", (3,)),
    "bilinear": ("linear", (4,)),
    "bicubic": ("cubic", (4,)),
    "trilinear": ("linear", (5,)),
}
_UNALIGNED = ("nearest", "nearest-exact", "area")


def _spread(value: Size | Scale, dims: int, what: str, input: Tensor) -> list[float] | None:
    """One number per dim that is resized."""
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        return [value] * dims  # pyright: ignore[reportReturnType]
    if len(value) != dims:
        raise ValueError(
            "interpolate: Input and output must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(input.shape[2:])} and {what} of {value}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, "
            "o2, ...,oK) format."
        )
    return list(value)


def _check_input(input: Tensor, mode: str) -> None:
    if mode not in _MODES or input.dim() not in (3, 4, 5):
        raise NotImplementedError(
            "interpolate: Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D) for the modes: {' | '.join(_MODES)} (got {mode})."
        )
    needed = _MODES[mode][1]
    if input.dim() not in needed:
        raise NotImplementedError(
            f"interpolate: Got {input.dim()}D input, but {mode} mode needs {needed[0]}D input."
        )


@overridable
def interpolate(
    input: Tensor,
    size: Size = None,
    scale_factor: Scale = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Returns images, sequences or volumes of another size.

    Output o of a dim stands at (o + 0.5) / scale - 0.5 of the input, or with align_corners at
    o * (size - 1) / (size_out - 1).

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the sizes of the output after its channels.
        scale_factor: output size over input size, in the place of size.
        mode: "nearest" takes the element below, as older versions of OpenCV do; "nearest-exact"
            the nearest; "linear", "bilinear" and "trilinear", by the dims of the input, and
            "bicubic" weigh those around (Keys 1981); "area" takes the means of all elements that an
            output covers.
        align_corners: whether the centers of the corner pixels fall on each other, and not their
            corners; only for the linear modes and "bicubic".
        recompute_scale_factor: whether positions follow from the sizes where scale_factor does not
            give whole ones.
        antialias: whether "bilinear" and "bicubic" widen the kernel when images shrink, so that
            every pixel counts.

    Raises:
        ValueError: if not exactly one of size and scale_factor is given, or options that the mode
            does not have.
        NotImplementedError: for an unknown mode or one for other dims.

    Example:
        >>> x = torch.tensor([[[1.0, 2.0]]])
        >>> torch.nn.functional.interpolate(x, scale_factor=2).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
        >>> torch.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True).tolist()
        [[[1.0, 1.5, 2.0]]]
    """
    if mode in _UNALIGNED and align_corners is not None:
        raise ValueError(
            "interpolate: align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear."
        )
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("interpolate: only one of size or scale_factor should be defined.")
    if size is None and scale_factor is None:
        raise ValueError("interpolate: either size or scale_factor should be defined.")
    if recompute_scale_factor and size is not None:
        raise ValueError(
            "interpolate: recompute_scale_factor is not meaningful with an explicit size."
        )
    sizes = _spread(size, dims, "output size", input)
    scales = _spread(scale_factor, dims, "scale_factor", input)
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "interpolate: Anti-alias option is restricted to bilinear and bicubic modes and "
            "requires a 4-D tensor as input."
        )
    _check_input(input, mode)
    if 0 in input.shape[1:]:
        raise RuntimeError(
            f"interpolate: Non-empty {input.dim()}D data tensor expected but got a tensor with "
            f"sizes {tuple(input.shape)}. Only the batch may be empty."
        )
    if scales is not None:
        sizes = [
            _scaled(length, scale) for length, scale in zip(input.shape[2:], scales, strict=True)
        ]
    if scales is None or recompute_scale_factor or mode == "area":
        scales = [None] * dims
    lead = [None] * (3 - dims)
    name = _MODES[mode][0]
    return _interpolate(input, sizes, name, bool(align_corners), antialias, *lead, *scales)


def _scaled(length: int, scale: float) -> int:
    scaled = length * float(scale)
    if not abs(scaled) < 2**31:
        raise RuntimeError(
            f"interpolate: scale_factor {scale} makes {scaled} of {length} elements. Sizes must be "
            "below 2^31."
        )
    return math.floor(scaled)


def _warn_of_upsample(name: str) -> None:
    warnings.warn(
        f"nn.functional.{name} is deprecated. Use nn.functional.interpolate.", stacklevel=4
    )


@overridable
def upsample(
    input: Tensor,
    size: Size = None,
    scale_factor: Scale = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Returns what interpolate returns: its older, deprecated name.

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the sizes of the output after its channels.
        scale_factor: output size over input size, in the place of size.
        mode: as for interpolate.
        align_corners: as for interpolate.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.nn.functional.upsample(torch.tensor([[[1.0, 2.0]]]), scale_factor=2).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """
    _warn_of_upsample("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@overridable
def upsample_nearest(input: Tensor, size: Size = None, scale_factor: Scale = None) -> Tensor:
    """Returns what interpolate returns with mode "nearest"; deprecated.

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the sizes of the output after its channels.
        scale_factor: output size over input size, in the place of size.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.nn.functional.upsample_nearest(torch.ones(1, 1, 2, 2), 4).shape
        torch.Size([1, 1, 4, 4])
    """
    _warn_of_upsample("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@overridable
def upsample_bilinear(input: Tensor, size: Size = None, scale_factor: Scale = None) -> Tensor:
    """Returns what interpolate returns with mode "bilinear" and aligned corners; deprecated.

    Args:
        input: (N, C, H, W).
        size: height and width of the output.
        scale_factor: output size over input size, in the place of size.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.nn.functional.upsample_bilinear(torch.ones(1, 1, 2, 2), 4).shape
        torch.Size([1, 1, 4, 4])
    """
    _warn_of_upsample("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired.",
            stacklevel=4,  # above the function that was called, and what asks for its classes
        )
    return bool(align_corners)


GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


@overridable
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Returns the values of images at the places of a grid.

    Places are x, y (and z), where -1 and 1 are the ends of the image; NaN counts as -1.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, H_out, W_out, 2) or (N, D_out, H_out, W_out, 3), of input's dtype.
        mode: "bilinear" (trilinear of volumes), "nearest", or for images "bicubic".
        padding_mode: what stands outside: "zeros", the "border", or the image mirrored by
            "reflection".
        align_corners: whether -1 and 1 are the centers of the corner pixels, and not the outer
            edges; False if None.

    Returns:
        (N, C, H_out, W_out) or (N, C, D_out, H_out, W_out).

    Raises:
        ValueError: for an unknown mode or padding_mode.
        RuntimeError: if the shapes do not fit together.

    Example:
        >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> places = torch.tensor([[[[0.0, 0.0], [-1.0, 1.0]]]])
        >>> torch.nn.functional.grid_sample(x, places, align_corners=True).tolist()
        [[[[2.5, 3.0]]]]
    """
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            "grid_sample: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: "
            f"'{mode}'."
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "grid_sample: expected padding_mode to be 'zeros', 'border', or 'reflection', but "
            f"got: '{padding_mode}'."
        )
    return rl.grid_sampler(
        input,
        grid,
        GRID_SAMPLE_INTERPOLATION_MODES[mode],
        GRID_SAMPLE_PADDING_MODES[padding_mode],
        _aligned(align_corners),
    )


@overridable
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Returns the grid of places that affine maps take the pixels of images to, for grid_sample.

    Args:
        theta: (N, 2, 3) or (N, 3, 4): a map per image, applied to (x, y, 1) or (x, y, z, 1).
        size: that of the images, (N, C, H, W) or (N, C, D, H, W).
        align_corners: whether -1 and 1 are the centers of the corner pixels, and not the outer
            edges; False if None. The one pixel along a dim of size 1 is at 0 either way.

    Returns:
        (N, H, W, 2) or (N, D, H, W, 3).

    Raises:
        ValueError: if theta is not floating-point or does not fit size.
        NotImplementedError: if size is neither that of images nor of volumes.

    Example:
        >>> shift = torch.tensor([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]])
        >>> torch.nn.functional.affine_grid(shift, (1, 1, 1, 2), align_corners=False).tolist()
        [[[[0.0, 0.0], [1.0, 0.0]]]]
    """
    aligned = _aligned(align_corners)
    if not theta.is_floating_point():
        raise ValueError(
            f"affine_grid: Expected theta to have floating point type, but got {theta.dtype}."
        )
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {tuple(size)}."
        )
    dims = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(
            f"affine_grid: Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1}"
            f" for size {tuple(size)}. Got {tuple(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(
            f"affine_grid: Expected non-zero, positive output size. Got {tuple(size)}."
        )
    if aligned and min(size[2:]) == 1:
        warnings.warn(
            f"affine_grid: with align_corners=True the one place along a dim of size 1, as in "
            f"{tuple(size)}, is 0, its center. It was -1 before PyTorch 1.3. See the documentation "
            "of affine_grid for details.",
            stacklevel=3,  # above what asks for classes
        )
    return rl.affine_grid_generator(theta, size, aligned)


@overridable
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Returns input over a power of the mean square of the channels around each.

    input[c] / (k + alpha * mean of input[j]^2)^beta with j from c - size // 2 to
    c + (size - 1) // 2, where channels that do not exist count as 0 (Krizhevsky et al. 2012,
    section 3.3).

    Args:
        input: (N, C, *).
        size: how many channels are in a mean.
        alpha: factor of the mean.
        beta: exponent.
        k: added to the mean.

    Raises:
        ValueError: if input has fewer than 3 dims.

    Example:
        >>> x = torch.tensor([[[1.0], [2.0]]])
        >>> torch.nn.functional.local_response_norm(x, 1, alpha=1.0, beta=1.0).tolist()
        [[[0.5], [0.4000000059604645]]]
    """
    if input.dim() < 3:
        raise ValueError(
            "local_response_norm: Expected 3D or higher dimensionality input (got "
            f"{input.dim()} dimensions)."
        )
    if input.numel() == 0:
        return input
    channels = input.shape[1]
    squares = (input * input).reshape(input.shape[0], 1, channels, -1)  # (N, 1, C, rest)
    means = _avg_pool2d(squares, (size, 1), stride=1, padding=(size // 2, 0))
    means = means[:, :, :channels].reshape(input.shape)  # an even size gives one mean more
    return input / (means * alpha + k) ** beta
