"""torch.Tag: what programs say of operators that they define."""

from __future__ import annotations

from enum import Enum, auto


class Tag(Enum):
    """What libraries say of an operator for a compiler that is not here."""

    core = auto()
    cudagraph_unsafe = auto()
    data_dependent_output = auto()
    dynamic_output_shape = auto()
    flexible_layout = auto()
    generated = auto()
    inplace = auto()
    inplace_view = auto()
    maybe_aliasing_or_mutating = auto()
    needs_contiguous_strides = auto()
    needs_exact_strides = auto()
    needs_fixed_stride_order = auto()
    nondeterministic_bitwise = auto()
    nondeterministic_seeded = auto()
    out = auto()
    out_variant = auto()
    pointwise = auto()
    pt2_compliant_tag = auto()
    reduction = auto()
    view_copy = auto()
