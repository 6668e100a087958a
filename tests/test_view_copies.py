"""Copies of views: torch.view_copy and its kin."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight._view_copies import NAMES

LAYOUTS = {
    "ccol_indices_copy": "sparse_csc",
    "col_indices_copy": "sparse_csr",
    "crow_indices_copy": "sparse_csr",
    "indices_copy": "sparse_coo",
    "row_indices_copy": "sparse_csc",
    "values_copy": "sparse_coo",
}
CASES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(LAYOUTS, ()),
    "alias_copy": (),
    "as_strided_copy": ((2, 2), (1, 3), 1),
    "detach_copy": (),
    "diagonal_copy": (1,),
    "expand_copy": ((2, 3, 4),),
    "narrow_copy": (1, 1, 2),
    "permute_copy": ((1, 0),),
    "select_copy": (1, 2),
    "split_copy": (2, 1),
    "split_with_sizes_copy": ([1, 2],),
    "squeeze_copy": (),
    "t_copy": (),
    "transpose_copy": (0, 1),
    "unbind_copy": (1,),
    "unfold_copy": (1, 2, 1),
    "unsqueeze_copy": (1,),
    "view_copy": ((2, 6),),
    "view_as_complex_copy": (),
    "view_as_real_copy": (),
}


def view_and_copy(name: str) -> tuple[list[Any], list[Any], Any]:
    x = torch.arange(12.0).view(3, 4)
    if name in LAYOUTS:
        x = x.to_sparse(layout=getattr(torch, LAYOUTS[name]))
    if name == "view_as_real_copy":
        x = x * 1j
    if name == "view_as_complex_copy":
        x = x.view(6, 2)
    base = name.removesuffix("_copy")
    views = x if base == "alias" else (getattr(x, base, None) or getattr(torch, base))
    if callable(views):
        views = views(*CASES[name]) if hasattr(x, base) else views(x, *CASES[name])
    copies = getattr(torch, name)(x, *CASES[name])
    as_list = lambda many: list(many) if isinstance(many, tuple) else [many]  # noqa: E731
    return as_list(views), as_list(copies), x


@pytest.mark.parametrize("name", CASES)
def test_a_copy_equals_the_view_and_shares_nothing(name: str) -> None:
    views, copies, x = view_and_copy(name)
    for view, copy in zip(views, copies, strict=True):
        assert torch.equal(view, copy) and copy.is_contiguous()
        assert copy.untyped_storage().data_ptr() != view.untyped_storage().data_ptr()
    outs = tuple(torch.empty_like(copy) for copy in copies)
    out = outs if name.startswith(("split", "unbind")) else outs[0]
    getattr(torch, name)(x, *CASES[name], out=out)
    assert all(torch.equal(a, b) for a, b in zip(outs, copies, strict=True))


def test_every_copy_is_tried() -> None:
    assert set(CASES) == set(NAMES)
    assert torch.view_copy.__name__ == "view_copy"


def test_gradients_flow_through_copies() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    torch.permute_copy(x, (1, 0)).mul(torch.arange(6.0).view(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 2, 4], [1, 3, 5]]
    assert torch.ones(4).narrow_copy(0, 1, 2).shape == (2,)


def test_a_wrong_number_of_outputs_is_refused() -> None:
    with pytest.raises(RuntimeError, match="2 tensors for 3 results"):
        torch.unbind_copy(torch.ones(3), out=(torch.empty(()), torch.empty(())))
