"""The nested tensors: batches whose samples differ in size.

The core sees one plain tensor that holds all elements; gradients, hooks, optimizers and memory are
its own. The classes add how it is divided into parts, answer questions about sizes, and take over
ops (_dispatch.py). Backward therefore needs no knowledge of them.
"""

# pyright: reportIncompatibleVariableOverride=false
# Attributes of the plain tensor are properties here.

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import rushlight as rl
from rushlight import Tensor
from rushlight._dims import wrapped_dim
from rushlight._layout import jagged, strided
from rushlight._printing import nested_repr
from rushlight.nested._ragged import Ragged

__all__ = ["Nested", "NestedTensor", "StridedNestedTensor", "jagged_of", "strided_of"]

# Of the plain tensor.
_grad: Any = Tensor.grad
_data: Any = Tensor.data


class Nested(Tensor):
    """What nested tensors of both layouts share."""

    is_nested = True

    _hears_attributes = False

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        from rushlight.nested._dispatch import dispatch

        if not all(issubclass(other, Nested) for other in types):
            return NotImplemented
        return dispatch(func, args, kwargs or {})

    # What the layouts answer

    def _like(self, plain: Tensor) -> Self:
        """The nested tensor that is divided like this one and holds another plain tensor."""
        raise NotImplementedError

    def _batch(self) -> int:
        """The number of parts."""
        raise NotImplementedError

    def _parts(self) -> tuple[Tensor, ...]:
        """The parts, views of the plain tensor."""
        raise NotImplementedError

    def to_padded_tensor(
        self, padding: float, output_size: Sequence[int] | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Returns the parts in one plain tensor, each filled up to the size of the largest.

        Args:
            padding: what fills up.
            output_size: the shape of the result; as small as the parts allow if None. In layout
                jagged it may be less along the ragged dim: longer parts are cut.
            out: must be None.

        Raises:
            RuntimeError: if the parts do not fit output_size.
        """
        if out is not None:
            raise NotImplementedError("to_padded_tensor: out is not supported. Copy the result.")
        sizes = [self._batch(), *self._largest()]
        wanted = sizes if output_size is None else list(output_size)
        if len(wanted) != len(sizes) or self._cuts(sizes, wanted):
            raise RuntimeError(
                f"to_padded_tensor: output_size {tuple(wanted)} is less than {tuple(sizes)}, the "
                "size of the largest part in each dim. Truncation is not supported."
            )
        return self._padded(padding, wanted)

    def _largest(self) -> list[int]:
        """The largest size of a part along each of its dims."""
        raise NotImplementedError

    def _cuts(self, sizes: list[int], wanted: list[int]) -> bool:
        """Whether padding to the wanted sizes would cut what cannot be cut."""
        return any(w < size for w, size in zip(wanted, sizes, strict=True))

    def _padded(self, padding: float, sizes: list[int]) -> Tensor:
        raise NotImplementedError

    # Questions

    @property
    def _plain(self) -> Tensor:
        """All elements, on the same memory; gradients flow through it."""
        return self.as_subclass(Tensor)

    def values(self) -> Tensor:
        """Returns the plain tensor that holds the elements of all parts; gradients flow through."""
        return self._plain

    def dim(self) -> int:
        """Returns the number of dims, the batch and the ragged ones among them."""
        raise NotImplementedError

    ndimension = dim

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self.dim()

    def size(self, dim: int | None = None) -> Any:
        """Returns the sizes, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def nelement(self) -> int:
        """Returns the number of elements in all parts."""
        return self.numel()

    def __len__(self) -> int:
        return self._batch()

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._parts())

    def contiguous(self, *, memory_format: Any = None) -> Self:
        """Returns the tensor with its elements side by side, itself when they are."""
        return self if self.is_contiguous() else self._like(self._plain.contiguous())

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(
            "a nested tensor is not one block of numbers. Use unbind() for the parts, values() for "
            "all elements, or to_padded_tensor()."
        )

    tolist = numpy = __array__ = __dlpack__ = data_ptr = _refuse

    def item(self) -> Any:
        """Returns the number of a tensor with one element."""
        return self._plain.item()

    def __bool__(self) -> bool:
        return bool(self._plain)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    # Conversions, gradients, copies

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Returns the tensor with another dtype or device, itself when nothing changes."""
        args = tuple(arg._plain if isinstance(arg, Nested) else arg for arg in args)
        plain = self._plain
        moved = plain.to(*args, **kwargs)
        return self if moved is plain else self._like(moved)

    def pin_memory(self) -> Self:
        """Returns the tensor in pinned memory; see Tensor.pin_memory."""
        return self._like(self._plain.pin_memory())

    @property
    def grad(self) -> Self | None:
        """The gradient that backward has added up, divided likewise; None if there is none."""
        grad = _grad.__get__(self)
        return None if grad is None else self._like(grad)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, Nested):
            raise RuntimeError("the grad of a nested tensor must be a nested tensor.")
        _grad.__set__(self, None if value is None else value._plain)

    @grad.deleter
    def grad(self) -> None:
        _grad.__set__(self, None)

    @property
    def data(self) -> Self:
        """The tensor without its history, on the same memory."""
        return self._like(self._plain.detach())

    @data.setter
    def data(self, value: Tensor) -> None:
        raise RuntimeError("the data of a nested tensor cannot be assigned. Use copy_().")

    def _parts_text(self) -> str:
        raise NotImplementedError

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._parts_text()

    def _as_parameter(self, requires_grad: bool) -> Any:
        """What nn.Parameter would make of it."""
        raise TypeError("Parameter: a nested tensor cannot be a parameter. Use its values().")


class NestedTensor(Nested):
    """A nested tensor in layout torch.jagged: one dim is ragged, and the rows lie side by side.

    Made by torch.nested.nested_tensor and the functions beside it. The plain tensor is values();
    offsets() tells where each part begins along its ragged dim.

    Example:
        >>> x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
        >>> (x * 2).sum(1)
        tensor([4., 6.])
    """

    _ragged: Ragged
    _ragged_idx: int  # which dim is ragged, from 1; dim 0 is the batch

    @property
    def layout(self) -> rl.layout:
        """torch.jagged."""
        return jagged

    @property
    def _values(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._plain

    @property
    def _offsets(self) -> Tensor:
        return self._ragged.offsets

    @property
    def _lengths(self) -> Tensor | None:
        return self._ragged.lengths

    @property
    def _max_seqlen(self) -> int:
        return self._get_max_seqlen()

    @property
    def _min_seqlen(self) -> int:
        return self._get_min_seqlen()

    @property
    def _row_dim(self) -> int:
        """The dim of values along which the parts lie."""
        return self._ragged_idx - 1

    def offsets(self) -> Tensor:
        """Returns where each part begins in values, and where the last one ends."""
        return self._ragged.offsets

    def lengths(self) -> Tensor | None:
        """Returns the size of each part, where values has rows between them; else None."""
        return self._ragged.lengths

    def _get_max_seqlen(self) -> int:
        return self._ragged.longest

    def _get_min_seqlen(self) -> int:
        return min(self._ragged.sizes, default=0)

    def _like(self, plain: Tensor) -> NestedTensor:
        return jagged_of(plain, self._ragged.to(plain.device), self._ragged_idx)

    def _batch(self) -> int:
        return len(self._ragged.offsets) - 1

    def _parts(self) -> tuple[Tensor, ...]:
        values, dim = self._plain, self._row_dim
        if self._ragged.fills(values.shape[dim]):
            return tuple(values.split(self._ragged.sizes, dim))
        spans = zip(self._ragged.starts, self._ragged.sizes, strict=True)
        return tuple(values.narrow(dim, start, size) for start, size in spans)

    def _packed(self) -> Tensor:
        """The values without rows that are in no part."""
        values = self._plain
        if self._ragged.fills(values.shape[self._row_dim]):
            return values
        return values.index_select(self._row_dim, self._ragged.rows)

    def _largest(self) -> list[int]:
        sizes = list(self._plain.shape)
        sizes[self._row_dim] = self._ragged.longest
        return sizes

    def _cuts(self, sizes: list[int], wanted: list[int]) -> bool:
        # Parts longer than output_size says are cut, as PyTorch does in this layout.
        ragged = self._ragged_idx
        return wanted[ragged] < 0 or super()._cuts(
            [*sizes[:ragged], *sizes[ragged + 1 :]], [*wanted[:ragged], *wanted[ragged + 1 :]]
        )

    def _padded(self, padding: float, sizes: list[int]) -> Tensor:
        batch, (parts, places) = sizes[0], self._ragged.places
        rows = self._packed().movedim(self._row_dim, 0)  # (rows, dense dims...)
        longest = sizes[self._ragged_idx]
        if longest < self._ragged.longest:
            (kept,) = rl.where(places < longest)
            rows, parts, places = rows[kept], parts[kept], places[kept]
        room = rows.new_full((batch * longest, *rows.shape[1:]), padding)
        room = room.index_copy(0, parts * longest + places, rows)
        padded = room.unflatten(0, (batch, longest)).movedim(1, self._ragged_idx)
        for dim, (size, wanted) in enumerate(zip(padded.shape, sizes, strict=True)):
            if wanted > size:
                fill = [0, 0] * (padded.dim() - 1 - dim) + [0, wanted - size]
                padded = rl.nn.functional.pad(padded, fill, value=padding)
        return padded

    def dim(self) -> int:
        """Returns the number of dims, with the batch and the ragged one."""
        return self._plain.dim() + 1

    @property
    def shape(self) -> rl.Size:
        """The sizes; that of the ragged dim is a name, j1 say, which is equal only to itself."""
        sizes: list[Any] = [self._batch(), *self._plain.shape]
        sizes[self._ragged_idx] = self._ragged.size
        return rl.Size(sizes)

    def stride(self, dim: int | None = None) -> Any:
        """Returns the strides; that of the batch is a multiple of the ragged size."""
        inner = self._plain.stride()
        strides = (self._ragged.size * inner[self._row_dim], *inner)
        return strides if dim is None else strides[dim]

    def numel(self) -> int:
        """Returns the number of elements in all parts."""
        sizes = self._plain.shape
        rest = math.prod(size for dim, size in enumerate(sizes) if dim != self._row_dim)
        return sum(self._ragged.sizes) * rest

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Returns whether all rows lie side by side, and are in parts."""
        return self._ragged.lengths is None and self._plain.is_contiguous()

    def contiguous(self, *, memory_format: Any = None) -> NestedTensor:
        """Returns the tensor with its rows side by side, itself when they are."""
        if self._ragged.lengths is None:
            return super().contiguous()
        ragged = Ragged.of_sizes(self._ragged.sizes, self.device)
        return jagged_of(self._packed().contiguous(), ragged, self._ragged_idx)

    def _parts_text(self) -> str:
        return nested_repr(self, self._ragged.offsets)

    def __reduce_ex__(self, protocol: Any) -> Any:
        ragged = self._ragged
        parts = self._plain.detach(), ragged.offsets, ragged.lengths, self._ragged_idx
        return _rebuild_jagged, (*parts, self.requires_grad)


class StridedNestedTensor(Nested):
    """A nested tensor in layout torch.strided: the parts' elements lie side by side.

    Made by torch.nested.nested_tensor and as_nested_tensor. Any dim of the parts may be ragged.
    """

    _shapes: tuple[tuple[int, ...], ...]

    @property
    def layout(self) -> rl.layout:
        """torch.strided."""
        return strided

    def _like(self, plain: Tensor) -> StridedNestedTensor:
        return strided_of(plain, self._shapes)

    def _batch(self) -> int:
        return len(self._shapes)

    def _parts(self) -> tuple[Tensor, ...]:
        pieces = self._plain.split([math.prod(shape) for shape in self._shapes])
        return tuple(piece.view(shape) for piece, shape in zip(pieces, self._shapes, strict=True))

    def _largest(self) -> list[int]:
        return [max(sizes) for sizes in zip(*self._shapes, strict=True)]

    def _padded(self, padding: float, sizes: list[int]) -> Tensor:
        def filled_up(part: Tensor) -> Tensor:
            fill = [x for d in range(part.dim(), 0, -1) for x in (0, sizes[d] - part.shape[d - 1])]
            return rl.nn.functional.pad(part, fill, value=padding)

        padded = [filled_up(part) for part in self._parts()]
        padded += [self._plain.new_full(sizes[1:], padding)] * (sizes[0] - len(padded))
        return rl.stack(padded) if padded else self._plain.new_empty(sizes)

    def dim(self) -> int:
        """Returns the number of dims, with the batch."""
        return len(self._shapes[0]) + 1 if self._shapes else 1

    @property
    def shape(self) -> rl.Size:
        """Raises a RuntimeError: sizes are asked for one by one."""
        raise RuntimeError(
            "a nested tensor in layout torch.strided doesn't support sizes as a whole. Use "
            "size(dim) for a dim in which its parts agree, or unbind()."
        )

    def size(self, dim: int | None = None) -> Any:
        """Returns the size along a dim in which all parts agree.

        Raises:
            RuntimeError: if they do not.
        """
        if dim is None:
            return self.shape
        place = wrapped_dim(dim, self.dim())
        if place == 0:
            return self._batch()
        found = {shape[place - 1] for shape in self._shapes}
        if len(found) > 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    def stride(self, dim: int | None = None) -> Any:
        """Raises a RuntimeError: the parts have strides of their own."""
        raise RuntimeError("a nested tensor in layout torch.strided doesn't support strides.")

    def _tables(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The elements, and each part's sizes, strides and place among them, as PyTorch saves."""
        buffer, parts = self._plain.detach(), [part.detach() for part in self._parts()]
        shape = len(parts), self.dim() - 1
        sizes, strides, places = (
            rl.tensor(table, dtype=rl.int64)
            for table in (
                self._shapes,
                [part.stride() for part in parts],
                [part.storage_offset() - buffer.storage_offset() for part in parts],
            )
        )
        return buffer, sizes.reshape(shape), strides.reshape(shape), places

    def _parts_text(self) -> str:
        return nested_repr(self, self._parts())

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_strided, (self._plain.detach(), self._shapes, self.requires_grad)


def jagged_of(values: Tensor, ragged: Ragged, ragged_idx: int) -> NestedTensor:
    """Returns the nested tensor in layout jagged of its parts."""
    made: Any = values.as_subclass(NestedTensor)
    made._ragged, made._ragged_idx = ragged, ragged_idx
    return made


def strided_of(buffer: Tensor, shapes: Any) -> StridedNestedTensor:
    """Returns the nested tensor in layout strided of a plain buffer with parts of these shapes."""
    made: Any = buffer.as_subclass(StridedNestedTensor)
    made._shapes = tuple(tuple(shape) for shape in shapes)
    return made


def _rebuild_jagged(
    values: Tensor, offsets: Tensor, lengths: Tensor | None, ragged_idx: int, requires_grad: bool
) -> Tensor:
    """Makes a nested tensor from what __reduce_ex__ pickled."""
    ragged = Ragged(offsets, lengths)
    return jagged_of(values, ragged, ragged_idx).requires_grad_(requires_grad)


def _rebuild_strided(buffer: Tensor, shapes: Any, requires_grad: bool) -> Tensor:
    """Makes a nested tensor from what __reduce_ex__ pickled."""
    return strided_of(buffer, shapes).requires_grad_(requires_grad)
