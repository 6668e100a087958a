"""Products of matrices of 8-bit floats that come with scales; nn.functional installs them.

The elements are converted to float32 and multiplied there, on every device.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import overridable

__all__ = ["ScalingType", "SwizzleType", "scaled_grouped_mm", "scaled_mm"]

_FLOAT8 = (rl.float8_e4m3fn, rl.float8_e5m2)


class ScalingType(Enum):
    """What one number of a scale belongs to: the whole matrix, a row of it, or a block.

    scaled_mm knows TensorWise and RowWise.
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Enum):
    """How the numbers of a scale lie in memory; scaled_mm knows NO_SWIZZLE."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: rl.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """Returns (mat_a @ mat_b) * scale_a * scale_b + bias, without a gradient.

    Args:
        mat_a: (M, K) of float8_e4m3fn or float8_e5m2.
        mat_b: (K, N), likewise.
        scale_a, scale_b: float32: a number each, or (M, 1) and (1, N).
        bias: (N).
        scale_result: what a result of 8-bit floats is divided by; others are not.
        out_dtype: of the result; that of mat_a by default.
        use_fast_accum: accepted for PyTorch's sake.

    Returns:
        (M, N).

    Raises:
        RuntimeError: if sizes do not fit.
        ValueError: for other dtypes and scales.
    """
    for name, mat in (("mat1", mat_a), ("mat2", mat_b)):
        if mat.dim() != 2:
            raise RuntimeError(f"_scaled_mm: {name} must be a matrix, but has {mat.dim()} dims.")
    (rows, depth), columns = mat_a.shape, mat_b.shape[1]
    if depth != mat_b.shape[0]:
        raise RuntimeError(
            f"_scaled_mm: mat_a and mat_b shapes cannot be multiplied ({rows}x{depth} and "
            f"{mat_b.shape[0]}x{columns})."
        )
    are_single = scale_a.numel() == scale_b.numel() == 1
    are_of_rows = tuple(scale_a.shape) == (rows, 1) and tuple(scale_b.shape) == (1, columns)
    dtypes = mat_a.dtype, mat_b.dtype
    if (
        not (are_single or are_of_rows)
        or any(dtype not in _FLOAT8 for dtype in dtypes)
        or {scale_a.dtype, scale_b.dtype} != {rl.float32}
    ):
        raise ValueError(
            "_scaled_mm: Invalid scaling configuration: matrices of "
            f"{mat_a.dtype} and {mat_b.dtype}, scales of {scale_a.dtype} and {scale_b.dtype} with "
            f"shapes {tuple(scale_a.shape)} and {tuple(scale_b.shape)}. The matrices must be "
            "float8_e4m3fn or float8_e5m2, the scales float32: one number each, or of shapes "
            f"({rows}, 1) and (1, {columns})."
        )
    if bias is not None and bias.numel() != columns:
        raise RuntimeError(f"_scaled_mm: Bias must be size {columns} but got {bias.numel()}.")
    dtype = mat_a.dtype if out_dtype is None else out_dtype
    with rl.no_grad():
        if are_single:
            scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
        result = (mat_a.float() @ mat_b.float()) * scale_a * scale_b
        if bias is not None:
            result += bias.reshape(columns)
        if scale_result is not None and dtype in _FLOAT8:
            result /= scale_result
        return result.to(dtype)


@overridable
def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    output_dtype: rl.dtype | None = rl.bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """Returns the product of two matrices of 8-bit floats times their scales, without a gradient.

    Args:
        mat_a: (M, K) of float8_e4m3fn or float8_e5m2.
        mat_b: (K, N), likewise.
        scale_a, scale_b: float32: one number each, or (M, 1) and (1, N).
        scale_recipe_a, scale_recipe_b: which of both: TensorWise or RowWise.
        swizzle_a, swizzle_b: None or NO_SWIZZLE.
        bias: (N), added at the end.
        output_dtype: of the result; None for that of mat_a.
        contraction_dim: the dims that are summed over: none or (1, 0).
        use_fast_accum: accepted for PyTorch's sake.

    Returns:
        (M, N).

    Raises:
        RuntimeError: if sizes do not fit.
        ValueError: for other dtypes, scales and recipes.

    Example:
        >>> kinds = torch.nn.functional.ScalingType
        >>> half = torch.full((2, 4), 0.5).to(torch.float8_e4m3fn)
        >>> scale = torch.tensor(3.0)
        >>> torch.nn.functional.scaled_mm(
        ...     half, half.T, scale, kinds.TensorWise, scale, kinds.TensorWise
        ... )
        tensor([[9., 9.],
                [9., 9.]], dtype=torch.bfloat16)
    """
    if tuple(dim % 2 for dim in contraction_dim) not in ((), (1, 0)):
        raise ValueError(
            f"scaled_mm: contraction_dim is {tuple(contraction_dim)}. The last dim of mat_a and "
            "the first of mat_b are summed over: leave it out, or transpose."
        )
    for swizzle in (swizzle_a, swizzle_b):
        if swizzle is not None and _single("swizzle", swizzle) is not SwizzleType.NO_SWIZZLE:
            raise ValueError("scaled_mm: there is no swizzle here. Use SwizzleType.NO_SWIZZLE.")
    recipes = _single("scale_recipe_a", scale_recipe_a), _single("scale_recipe_b", scale_recipe_b)
    if recipes not in (
        (ScalingType.TensorWise, ScalingType.TensorWise),
        (ScalingType.RowWise, ScalingType.RowWise),
    ):
        raise ValueError(
            f"scaled_mm: Invalid scaling configuration: {recipes[0].name} and {recipes[1].name}. "
            "Both matrices must be scaled TensorWise, or both RowWise."
        )
    scales = _single("scale_a", scale_a), _single("scale_b", scale_b)
    if recipes[0] is ScalingType.TensorWise:
        for name, scale in zip(("scale_a", "scale_b"), scales, strict=True):
            if scale.numel() != 1 or scale.dtype != rl.float32:
                raise ValueError(
                    f"scaled_mm: {name} must have 1 Float element, but is {scale.dtype} of shape "
                    f"{tuple(scale.shape)}."
                )
    return _scaled_mm(mat_a, mat_b, *scales, bias, None, output_dtype, use_fast_accum)


@overridable
def scaled_grouped_mm(mat_a: Tensor, mat_b: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Refuses to multiply groups of matrices with scales; classes of tensors can do it.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "scaled_grouped_mm: groups of matrices with scales have no product here. Call scaled_mm "
        "for each group, or grouped_mm of matrices times their scales."
    )


def _single(name: str, value: Any) -> Any:
    """The one value of a list, which is there for kinds of scales that have several."""
    if isinstance(value, list | tuple):
        if len(value) != 1:
            raise ValueError(
                f"scaled_mm: Invalid scaling configuration: {name} has {len(value)} values. "
                "TensorWise and RowWise take one."
            )
        return value[0]
    return value
