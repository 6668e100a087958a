"""How the rows of a jagged nested tensor are divided into parts, and the size that stands for it.

Invariant: two tensors have the same ragged size, j1 say, only if one is computed from the other or
both were made from the same offsets; only then do ops take them together.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import rushlight as rl
from rushlight import Tensor
from rushlight._symbolic import SymInt

__all__ = ["NestedInt", "Ragged"]


class NestedInt(SymInt):
    """The size of a ragged dim: a number of its own for each part, with one name for all.

    Args:
        number: which ragged dim it is of.
        factor: what it is multiplied by.

    Example:
        >>> x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
        >>> x.size(1) == (x + 1).size(1), x.size(1) == 2
        (True, False)
    """

    __slots__ = ("_factor", "_number")

    def __init__(self, number: int, factor: int = 1) -> None:
        self._number, self._factor = number, factor

    def __mul__(self, other: Any) -> NestedInt:
        if not isinstance(other, int):
            return NotImplemented
        return NestedInt(self._number, self._factor * other)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NestedInt):
            return False
        return (self._number, self._factor) == (other._number, other._factor)

    def __hash__(self) -> int:
        return hash((NestedInt, self._number, self._factor))

    def _is_more(self, other: Any, least: int) -> bool:
        if other is not self and not (isinstance(other, int) and other <= least):
            raise ValueError(
                f"{self}: is not known to be more or less than {other}. Ask offsets().diff() for "
                "the sizes of the parts."
            )
        return True

    def __gt__(self, other: Any) -> bool:
        return self._is_more(other, 1)

    def __ge__(self, other: Any) -> bool:
        return self._is_more(other, 2)

    def __lt__(self, other: Any) -> bool:
        return not self._is_more(other, 2)

    def __le__(self, other: Any) -> bool:
        return not self._is_more(other, 1)

    def __repr__(self) -> str:
        return f"j{self._number}" if self._factor == 1 else f"{self._factor}*j{self._number}"


_numbers = itertools.count(1)
_known: WeakValueDictionary[tuple[int, int], Ragged] = WeakValueDictionary()


class Ragged:
    """Where the parts begin among the rows, and how many rows each has.

    Args:
        offsets: integers of shape (parts + 1): where each part begins, and the last one ends.
        lengths: integers of shape (parts): how many rows each has, where some lie between parts.
        size: the ragged size, a new one when None.
    """

    def __init__(
        self, offsets: Tensor, lengths: Tensor | None = None, size: NestedInt | None = None
    ) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.size = NestedInt(next(_numbers)) if size is None else size

    @staticmethod
    def of(offsets: Tensor, lengths: Tensor | None = None) -> Ragged:
        """Returns the division by these very tensors: the same one again as long as it lives."""
        key = id(offsets), id(lengths)
        known = _known.get(key)
        if known is None:
            known = _known[key] = Ragged(offsets, lengths)
        return known

    @staticmethod
    def of_sizes(sizes: list[int], device: Any) -> Ragged:
        """Returns a new division into parts of these sizes, side by side."""
        ends = [0, *itertools.accumulate(sizes)]
        made = Ragged(rl.tensor(ends, device=device))
        made.starts, made.sizes = ends[:-1], list(sizes)  # known without a look at the device
        return made

    def check(self, rows: int) -> None:
        """Raises a RuntimeError if the parts are not among so many rows."""
        for name, tensor in (("offsets", self.offsets), ("lengths", self.lengths)):
            if tensor is not None and (
                tensor.dim() != 1 or tensor.dtype not in (rl.int64, rl.int32)
            ):
                raise RuntimeError(
                    f"nested_tensor_from_jagged: {name} must be integers of shape (parts), int64 "
                    f"or int32, but is {tensor.dtype} of shape {tuple(tensor.shape)}."
                )
        if not self.offsets.numel() or (
            self.lengths is not None and self.lengths.numel() + 1 != self.offsets.numel()
        ):
            raise RuntimeError(
                "nested_tensor_from_jagged: needs an offset for each part and one more, and as "
                f"many lengths as parts, if any; got {self.offsets.numel()} offsets."
            )
        ends = [start + size for start, size in zip(self.starts, self.sizes, strict=True)]
        if min(self.starts + self.sizes, default=0) < 0 or max(ends, default=0) > rows:
            raise RuntimeError(
                f"nested_tensor_from_jagged: the parts that offsets {self.offsets.tolist()} and "
                f"lengths tell do not lie in values with {rows} rows. Offsets begin at 0, do not "
                "decrease, and end at the number of rows."
            )

    @cached_property
    def starts(self) -> list[int]:
        """Where each part begins."""
        return self.offsets.tolist()[:-1]

    @cached_property
    def sizes(self) -> list[int]:
        """How many rows each part has."""
        return (self.offsets.diff() if self.lengths is None else self.lengths).tolist()

    @property
    def longest(self) -> int:
        """The size of the longest part."""
        return max(self.sizes, default=0)

    def fills(self, rows: int) -> bool:
        """Returns whether every one of so many rows is in a part."""
        return self.lengths is None and sum(self.sizes) == rows

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """Of each row in a part, the number of the part and the place in it."""
        device = self.offsets.device
        sizes = rl.tensor(self.sizes, device=device, dtype=rl.int64)
        parts = rl.arange(len(self.sizes), device=device).repeat_interleave(sizes)
        begins = sizes.cumsum(0) - sizes
        return parts, rl.arange(len(parts), device=device) - begins[parts]

    @property
    def rows(self) -> Tensor:
        """The rows that are in parts."""
        parts, places = self.places
        return self.offsets[parts] + places

    def to(self, device: Any) -> Ragged:
        """Returns the same division with its tensors on a device."""
        offsets = self.offsets.to(device)
        if offsets is self.offsets:
            return self
        lengths = None if self.lengths is None else self.lengths.to(device)
        made = Ragged(offsets, lengths, self.size)
        made.starts, made.sizes = self.starts, self.sizes
        return made

    def __deepcopy__(self, memo: Any) -> Ragged:
        return self
