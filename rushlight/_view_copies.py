"""torch.view_copy and its kin: what the view of that name shows, as a copy."""

from __future__ import annotations

from functools import wraps

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    def __getattr__(name: str) -> Any: ...


_VIEWS = (
    "as_strided",
    "ccol_indices",
    "col_indices",
    "crow_indices",
    "detach",
    "diagonal",
    "expand",
    "indices",
    "narrow",
    "permute",
    "row_indices",
    "select",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "values",
    "view",
    "view_as_complex",
    "view_as_real",
)
NAMES = ("alias_copy", *(f"{view}_copy" for view in _VIEWS))


def _copied(view: Tensor, out: Tensor | None = None) -> Tensor:
    return rl.clone(view, memory_format=rl.contiguous_format, out=out)


@overridable
def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a row-major copy.

    Example:
        >>> torch.alias_copy(torch.ones(2, 3).t()).stride()
        (2, 1)
    """
    return _copied(input, out)


def _copy_of(name: str) -> Callable[..., Any]:
    view: Callable[..., Any] = getattr(Tensor, name, None) or getattr(rl, name)

    @wraps(view)
    def copy(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        made = view(*args, **kwargs)
        if isinstance(made, Tensor):
            return _copied(made, out)
        outs = [None] * len(made) if out is None else out
        if len(outs) != len(made):
            raise RuntimeError(f"{name}_copy: out has {len(outs)} tensors for {len(made)} results.")
        return tuple(_copied(piece, place) for piece, place in zip(made, outs, strict=True))

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__module__ = "rushlight"
    copy.__doc__ = f"Returns what `{name}` shows, as a row-major copy that shares no memory."
    return copy


for _name in _VIEWS:
    globals()[f"{_name}_copy"] = overridable(_copy_of(_name))
