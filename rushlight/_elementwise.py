"""Which ops compute each element by itself: what classes that divide or mask tensors ask."""

from __future__ import annotations

from functools import lru_cache

from rushlight import _C

# The op table has them as made of other ops.
_OTHERS = {
    "angle", "detach", "empty_like", "full_like", "masked_fill", "ones_like", "positive",
    "zeros_like",
}  # fmt: skip


@lru_cache(None)
def elementwise_ops() -> frozenset[str]:
    """Returns the names of the ops whose every element depends on those at its place alone."""
    named = {op["name"] for op in _C._op_table() if op["batch"] == "by_elements"}
    return frozenset((named | _OTHERS) - {"_glu", "_matmul"})


# Python asks the right operand of 2 - x by __rsub__.
_OPERATORS = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"}


def is_elementwise(name: str) -> bool:
    """Returns whether the op, operator or op in place of this name is one of them.

    Example:
        >>> is_elementwise("add_"), is_elementwise("__rsub__"), is_elementwise("sum")
        (True, True, False)
    """
    if name.startswith("__"):
        base = name.strip("_")
        return base in _OPERATORS or base.removeprefix("r") in _OPERATORS
    return name in elementwise_ops() or name.removesuffix("_") in elementwise_ops()
