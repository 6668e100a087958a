"""The text of a tensor, by the names that libraries import; _printing makes it."""

from __future__ import annotations

from contextlib import contextmanager

from rushlight._printing import _body, _options, _with_notes
from rushlight._printing import set_printoptions as set_printoptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rushlight import Tensor

PRINT_OPTS = _options


def get_printoptions() -> dict[str, Any]:
    """How tensors are printed, as the arguments of set_printoptions."""
    return dict(vars(PRINT_OPTS))


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Prints tensors with other options for a while.

    Args:
        options: those of set_printoptions.
    """
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        vars(PRINT_OPTS).update(before)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text of a tensor with notes behind its numbers, on a line of their own if need be."""
    return _with_notes(tensor_str, suffixes, indent, force_newline)


def _tensor_str(tensor: Tensor, indent: int) -> str:
    """The numbers of a tensor in brackets, without its name and dtype."""
    return "[]" if tensor.numel() == 0 else _body(tensor.detach(), indent)
