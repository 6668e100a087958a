"""embedding_bag: what its arguments may be, in front of the core's op.

nn.functional installs it; it holds no state.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import overridable

__all__ = ["embedding_bag"]

_MODES = {"sum": 0, "mean": 1, "max": 2}


def _flat_bags(input: Tensor, offsets: Tensor | None) -> tuple[Tensor, Tensor]:
    """The entries of all bags and where each bag begins."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "embedding_bag: if input is 2D, then offsets has to be None, as input is treated "
                "is a mini-batch of fixed length sequences."
            )
        count, length = input.shape
        starts = (rl.arange(count, device=input.device) * length).to(input.dtype)
        return input.reshape(-1), starts
    if input.dim() != 1:
        raise ValueError(
            f"embedding_bag: input has to be 1D or 2D Tensor, but got Tensor of dimension "
            f"{input.dim()}"
        )
    if offsets is None or offsets.dim() != 1:
        got = "None" if offsets is None else f"shape {tuple(offsets.shape)}"
        raise ValueError(f"embedding_bag: offsets has to be a 1D Tensor but got {got}")
    return input, offsets


@overridable
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Returns the sums, means or maxima of bags of rows of weight, zeros for empty bags.

    Args:
        input: row numbers: (bags, entries), or (entries,) of all bags one after the other.
        weight: table (rows, columns).
        offsets: where each bag begins in an input of one dim.
        max_norm: rows that are used and longer than this are scaled to it, in place.
        norm_type: order of the norm for max_norm.
        scale_grad_by_freq: whether to divide each row's gradient by how often it was used.
        mode: "sum", "mean" or "max".
        sparse: whether the gradient of weight is a sparse tensor of the rows that were used.
        per_sample_weights: factors of the rows in a sum, of the shape of input.
        include_last_offset: whether offsets ends with the end of the last bag.
        padding_idx: a row that counts in no bag and gets no gradient.

    Returns:
        (bags, columns).

    Raises:
        ValueError: if the arguments do not fit together.
        NotImplementedError: for per_sample_weights in another mode than "sum".

    Example:
        >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> entries, offsets = torch.tensor([0, 1, 2]), torch.tensor([0, 2])
        >>> torch.nn.functional.embedding_bag(entries, table, offsets).tolist()
        [[2.0, 3.0], [5.0, 6.0]]
    """
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({tuple(per_sample_weights.shape)}) is not "
            f"None, then it must have the same shape as the input ({tuple(input.shape)})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"embedding_bag: weight has to be a 2D Tensor, but got Tensor of dimension "
            f"{weight.dim()}"
        )
    include_last: Any = include_last_offset and input.dim() == 1
    input, offsets = _flat_bags(input, offsets)
    if mode not in _MODES:
        raise ValueError("embedding_bag: mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        what = "scaling the gradient by the frequency" if scale_grad_by_freq else "sparse weights"
        raise ValueError(f"embedding_bag: max mode does not support {what}")
    if max_norm is not None:
        with rl.no_grad():
            rl.embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                f"supported for mode='sum' (got mode='{mode}')."
            )
        per_sample_weights = per_sample_weights.reshape(-1)
    return rl.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _MODES[mode],
        sparse,
        per_sample_weights,
        include_last,
        padding_idx,
    )[0]
