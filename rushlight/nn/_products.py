"""Products of groups of matrices; nn.functional installs them."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import overridable

__all__ = ["grouped_mm"]


@overridable
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: rl.dtype | None = None,
) -> Tensor:
    """Returns the products of groups of matrices of different sizes.

    offs says where each group ends: among the rows of a 2-d mat_a, the columns of a 2-d mat_b, or
    along the dimension that is summed over if both are 2-d. Two 3-d tensors have a group for each
    index and no offs. Places behind the last end are 0.

    Args:
        mat_a: (M, K) or (G, M, K) of float32, float16 or bfloat16.
        mat_b: (K, N) or (G, K, N).
        offs: int32, (G).
        bias: must be None.
        out_dtype: must be None or the dtype of mat_a.

    Returns:
        (M, N), or (G, M, N) when mat_a and mat_b have the same number of dimensions.

    Raises:
        RuntimeError: if dtypes or sizes do not fit.

    Example:
        >>> rows, experts = torch.ones(4, 2), torch.ones(2, 2, 3)
        >>> ends = torch.tensor([1, 4], dtype=torch.int32)
        >>> torch.nn.functional.grouped_mm(rows, experts, offs=ends).shape
        torch.Size([4, 3])
    """
    ends = _checked_ends(mat_a, mat_b, offs)
    if bias is not None:
        raise RuntimeError("grouped_mm: Bias not supported yet; add it to the result.")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError("grouped_mm: Grouped gemm output dtype must match `mat_a` dtype.")
    if ends is None:
        return mat_a @ mat_b
    groups = [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    if mat_a.dim() == mat_b.dim():
        return rl.stack([mat_a[:, g] @ mat_b[g] for g in groups])
    if mat_a.dim() == 2:
        parts = [mat_a[g] @ b for g, b in zip(groups, mat_b, strict=True)]
        parts.append(mat_a.new_zeros(mat_a.shape[0] - ends[-1], mat_b.shape[-1]))
        return rl.cat(parts)
    parts = [a @ mat_b[:, g] for g, a in zip(groups, mat_a, strict=True)]
    parts.append(mat_a.new_zeros(mat_a.shape[1], mat_b.shape[1] - ends[-1]))
    return rl.cat(parts, 1)


def _checked_ends(mat_a: Tensor, mat_b: Tensor, offs: Tensor | None) -> list[int] | None:
    """The ends of the groups as numbers, which the device is asked for once."""
    for name, mat in (("mat_a", mat_a), ("mat_b", mat_b)):
        if mat.dtype not in (rl.float32, rl.bfloat16, rl.float16):
            raise RuntimeError(
                f"grouped_mm: Expected {name} to be Float32, BFloat16 or Float16 matrix, got "
                f"{mat.dtype}."
            )
        if mat.dim() not in (2, 3):
            raise RuntimeError(f"grouped_mm: {name} has to be 2 or 3d, got {mat.dim()}d.")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(
            "grouped_mm: contraction dimension of mat_a and mat_b must match, got "
            f"{mat_a.shape[-1]} and {mat_b.shape[-2]}."
        )
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError(
            "grouped_mm: Have to provide offsets if there is a 2d matrix, or no offset if both "
            "matrices are 3d."
        )
    counts = [len(mat) for mat in (mat_a, mat_b) if mat.dim() == 3]
    ends = None
    if offs is not None:
        if offs.dtype != rl.int32:
            raise RuntimeError(f"grouped_mm: Offsets have to be int32, got {offs.dtype}.")
        if offs.dim() != 1 or len(offs) == 0:
            raise RuntimeError(f"grouped_mm: offs has to be a vector, got {tuple(offs.shape)}.")
        counts.append(len(offs))
        cut = (mat_a.shape[0], mat_b.shape[1])[mat_a.dim() == 3]
        if mat_a.dim() == mat_b.dim():
            cut = mat_a.shape[1]
        ends = offs.tolist()
        if [0, *ends] != sorted([0, *ends]) or ends[-1] > cut:
            raise RuntimeError(
                f"grouped_mm: offs {ends} are no ends of groups of {cut}. They increase."
            )
    if len(set(counts)) > 1:
        raise RuntimeError(f"grouped_mm: matrix batch sizes have to match, got {counts}.")
    return ends
