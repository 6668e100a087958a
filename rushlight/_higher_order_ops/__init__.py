"""Control flow as functions, which programs write so that PyTorch can compile them.

Here they are Python's own: a branch or a loop runs as it is called. A graph that is traced has what
ran.
"""

from __future__ import annotations

from rushlight import Tensor
from rushlight.utils import _pytree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["cond", "while_loop"]


def cond(
    pred: Tensor | bool | float,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any] = (),
) -> Any:
    """Returns what one of two functions makes of the operands.

    Args:
        pred: whether it is the first one; a tensor has one element.
        true_fn, false_fn: take the operands.
        operands: tensors, or what holds them.

    Raises:
        RuntimeError: if pred has several elements.

    Example:
        >>> torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(2),))
        tensor([0., 0.])
    """
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> tuple[Any, ...]:
    """Returns values after a function has changed them for as long as a condition holds.

    Args:
        cond_fn: takes the values, and returns a bool or a tensor with one element.
        body_fn: takes the values, and returns as many.
        carried_inputs: the values at the beginning.

    Raises:
        RuntimeError: if body_fn returns another structure.

    Example:
        >>> torch.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2), (0, torch.ones(2)))
        (3, tensor([8., 8.]))
    """
    values = tuple(carried_inputs)
    structure = _pytree.tree_structure(values)
    while cond_fn(*values):
        made = body_fn(*values)
        values = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if _pytree.tree_structure(values) != structure:
            raise RuntimeError(
                f"while_loop: body_fn returned {len(values)} values that are not like the "
                f"{len(structure.children_specs)} that it takes. They must be of one structure."
            )
    return values
