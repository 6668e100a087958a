"""rearrange: dims by name, permuted, joined and split, as einops writes them."""

from __future__ import annotations

import math
import re
from itertools import chain
from typing import Any

from rushlight import Tensor, stack

__all__ = ["rearrange"]

_TOKEN = re.compile(r"\s*(\.\.\.|[A-Za-z_]\w*|1|[()])")


def _read(side: str, rest: int) -> list[list[str]]:
    """A group of names for each dim; an ellipsis becomes `rest` names."""
    groups: list[list[str]] = []
    joined: list[str] | None = None
    at, side = 0, side.strip()
    while at < len(side):
        token = _TOKEN.match(side, at)
        if token is None:
            raise ValueError(f"rearrange: unexpected {side[at:]!r} in {side!r}")
        at, word = token.end(), token[1]
        if word in "()":
            if (word == "(") == (joined is not None):
                raise ValueError(f"rearrange: brackets do not match in {side!r}")
            joined = [] if word == "(" else None
            if joined is not None:
                groups.append(joined)
            continue
        words = [f"...{i}" for i in range(rest)] if word == "..." else [word] * (word != "1")
        if joined is not None:
            joined += words
        else:
            groups += [[w] for w in words] if word != "1" else [[]]
    if joined is not None:
        raise ValueError(f"rearrange: brackets do not match in {side!r}")
    return groups


def _sizes(group: list[str], size: int, known: dict[str, int]) -> None:
    """Finds the one size of a group that is not given, and checks their product."""
    unknown = [name for name in group if name not in known]
    product = math.prod(known[name] for name in group if name in known)
    if len(unknown) == 1 and product and size % product == 0:
        known[unknown[0]] = size // product
    elif unknown or product != size:
        raise ValueError(
            f"rearrange: ({' '.join(group)}) cannot be a dim of size {size}"
            + (f", as {', '.join(unknown)} would not be whole or known" if unknown else "")
        )


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """Permutes, joins and splits dims, by a pattern of names such as "b c h w -> b (h w) c".

    Args:
        tensor: one, or a list that is stacked along a new first dim.
        pattern: names of the dims, "->", and the same names in the order of the result. (a b) is
            one dim that holds both, 1 a dim of size 1, and ... all dims that are not named.
        axes_lengths: sizes of names, for dims that are split.

    Raises:
        ValueError: if the pattern does not fit.

    Example:
        >>> torch.func.rearrange(torch.arange(6), "(a b) -> b a", a=2)
        tensor([[0, 3],
                [1, 4],
                [2, 5]])
    """
    given: Any = tensor if isinstance(tensor, Tensor) else stack(list(tensor))
    left, arrow, right = pattern.partition("->")
    if not arrow or "->" in right:
        raise ValueError("rearrange: Pattern must contain a single '->' separator")
    before = left.partition("...")[0]
    if "..." in left and before.count("(") > before.count(")"):
        raise ValueError(f"rearrange: brackets around ... stand on the right only, got {left!r}")
    rest = given.dim() - len(_read(left, 0)) if "..." in left else 0
    groups, results = _read(left, rest), _read(right, rest)
    names, order = list(chain(*groups)), list(chain(*results))
    if len({*names}) < len(names) or sorted(names) != sorted(order):
        raise ValueError(f"rearrange: each name must be once on both sides of {pattern!r}")
    if unknown := axes_lengths.keys() - {*names}:
        raise ValueError(f"rearrange: {sorted(unknown)} are not in {pattern!r}")
    if len(groups) != given.dim():
        raise ValueError(
            f"rearrange: {pattern!r} has {len(groups)} dims, but the tensor has {given.dim()}"
        )
    sizes = dict(axes_lengths)
    for group, size in zip(groups, given.shape, strict=True):
        _sizes(group, size, sizes)
    split = given.reshape([sizes[name] for name in names])
    ordered = split.permute([names.index(name) for name in order])
    return ordered.reshape([math.prod(sizes[name] for name in group) for group in results])
