"""Sequences of different lengths: padded to one tensor, or packed without padding.

Packed rows are those of all sequences at step 0, then at step 1, and so on, with the longest
sequences first. So every step is one block of rows, and nothing is computed for padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import rushlight as rl
from rushlight import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Parts(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Parts):
    """Sequences of different lengths in one tensor, as recurrent layers take and return them.

    Made by pack_padded_sequence and pack_sequence.

    Args:
        data: all elements, (rows, *), step by step.
        batch_sizes: how many sequences each step has: int64 on the CPU.
        sorted_indices: which sequence came to which place when they were sorted by length.
        unsorted_indices: the inverse of that, made from it unless given.

    Raises:
        ValueError: if batch_sizes are not on the CPU.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
        >>> packed.data.tolist(), packed.batch_sizes.tolist()
        ([1, 3, 2], [2, 1])
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:  # both in one argument
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                f"PackedSequence: batch_sizes should always be on CPU, but are on "
                f"{batch_sizes.device}. Use pack_sequence or pack_padded_sequence."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor, move: Callable[[Tensor], Tensor]) -> Self:
        moved = (t if t is None else move(t) for t in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *moved)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Returns it with data in another dtype or on another device, itself if nothing changes.

        Takes the arguments of Tensor.to.
        """
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data, lambda t: t.to(data.device))

    def cpu(self) -> Self:
        """Returns it on the CPU."""
        return self.to(device="cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Returns it on a CUDA device, the current one unless said; arguments as of Tensor.cuda."""
        data = self.data.cuda(*args, **kwargs)
        return self if data is self.data else self._with(data, lambda t: t.to(data.device))

    def pin_memory(self) -> Self:
        """Returns it in pinned memory."""
        return self._with(self.data.pin_memory(), Tensor.pin_memory)

    def double(self) -> Self:
        """Returns it as float64."""
        return self.to(rl.float64)

    def float(self) -> Self:
        """Returns it as float32."""
        return self.to(rl.float32)

    def half(self) -> Self:
        """Returns it as float16."""
        return self.to(rl.float16)

    def long(self) -> Self:
        """Returns it as int64."""
        return self.to(rl.int64)

    def int(self) -> Self:
        """Returns it as int32."""
        return self.to(rl.int32)

    def short(self) -> Self:
        """Returns it as int16."""
        return self.to(rl.int16)

    def char(self) -> Self:
        """Returns it as int8."""
        return self.to(rl.int8)

    def byte(self) -> Self:
        """Returns it as uint8."""
        return self.to(rl.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data lie on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data lie in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Returns the permutation that undoes another; None for None.

    Args:
        permutation: the numbers 0 to n - 1 in some order, int64 of shape (n,).

    Example:
        >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1])).tolist()
        [1, 2, 0]
    """
    if permutation is None:
        return None
    places = rl.arange(permutation.numel(), device=permutation.device)
    return rl.empty_like(permutation).scatter_(0, permutation, places)


def _below(limits: Tensor, count: int) -> Tensor:
    """Whether step t is below limits[i], as (count, len(limits))."""
    return rl.arange(count, device=limits.device).unsqueeze(1) < limits


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | list[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Returns padded sequences without their padding.

    Args:
        input: (time, batch, *), or (batch, time, *) with batch_first.
        lengths: of each sequence, positive; int64 on the CPU, or a list.
        batch_first: whether the batch is the first dim.
        enforce_sorted: whether lengths must not grow. If not, the sequences are sorted here, and
            what is unpacked has their old order.

    Raises:
        RuntimeError: if a length is not positive or too long, if there is not one for each
            sequence, or if they grow where they must not.

    Example:
        >>> padded = torch.tensor([[1, 2, 0], [3, 4, 5]])
        >>> pack = torch.nn.utils.rnn.pack_padded_sequence
        >>> pack(padded, [2, 3], batch_first=True, enforce_sorted=False).data.tolist()
        [3, 1, 4, 2, 5]
    """
    sizes = rl.as_tensor(lengths, dtype=rl.int64)
    if sizes.dim() != 1 or sizes.device.type != "cpu":
        raise RuntimeError(
            "pack_padded_sequence: 'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{sizes.dim()}D {sizes.device} {sizes.dtype} tensor. Use lengths.cpu()."
        )
    by_step = input.transpose(0, 1) if batch_first else input
    if by_step.numel() == 0:
        raise RuntimeError(
            f"pack_padded_sequence: Cannot pack empty tensors. input has shape "
            f"{tuple(input.shape)}."
        )
    steps, batch = by_step.shape[:2]
    if len(sizes) != batch:
        raise RuntimeError(
            f"pack_padded_sequence: Expected `len(lengths)` to be equal to batch_size, but got "
            f"{len(sizes)} (batch_size={batch})."
        )
    order = None
    if not enforce_sorted:
        sizes, order = sizes.sort(descending=True)
        order = order.to(input.device)
        by_step = by_step.index_select(1, order)
    elif (sizes[1:] > sizes[:-1]).any():
        raise RuntimeError(
            "pack_padded_sequence: `lengths` array must be sorted in decreasing order when "
            "`enforce_sorted` is True. You can pass `enforce_sorted=False` to "
            "pack_padded_sequence and/or pack_sequence to sidestep this requirement."
        )
    if sizes[-1] <= 0 or sizes[0] > steps:
        raise RuntimeError(
            "pack_padded_sequence: Length of all samples has to be greater than 0 and at most "
            f"{steps}, the length of input, but lengths go from {sizes[-1]} to {sizes[0]}."
        )
    exists = _below(sizes, int(sizes[0]))  # (time, batch)
    data = by_step[: len(exists)][exists.to(input.device)]
    return PackedSequence(data, exists.sum(1), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns packed sequences with padding, and their lengths.

    Args:
        sequence: what to pad.
        batch_first: whether the result is (batch, time, *) instead of (time, batch, *).
        padding_value: what stands after the end of a sequence.
        total_length: the time of the result, that of the longest sequence unless said.

    Raises:
        TypeError: if sequence is not a PackedSequence.
        ValueError: if total_length is less than the longest sequence.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
        >>> padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        >>> padded.tolist(), lengths.tolist()
        ([[1, 2], [3, 0]], [2, 1])
    """
    if not isinstance(sequence, PackedSequence):
        raise TypeError(
            f"pad_packed_sequence: expected a PackedSequence, got {type(sequence).__name__}."
        )
    data, batch_sizes, _, places = sequence
    longest = len(batch_sizes)
    if not longest:
        raise RuntimeError("pad_packed_sequence: the sequence has no elements.")
    if total_length is not None and total_length < longest:
        raise ValueError(
            "pad_packed_sequence: Expected total_length to be at least the length of the longest "
            f"sequence in input, but got total_length={total_length} and max sequence length "
            f"being {longest}."
        )
    exists = _below(batch_sizes, int(batch_sizes[0])).t()  # (time, batch)
    lengths = exists.sum(0)
    shape = (total_length or longest, exists.shape[1], *data.shape[1:])
    steps, sequences = exists.nonzero().to(data.device).unbind(1)
    padded = data.new_full(shape, padding_value).index_put((steps, sequences), data)
    if batch_first:
        padded = padded.transpose(0, 1)
    if places is not None:
        padded = padded.index_select(0 if batch_first else 1, places)
        lengths = lengths[places.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Returns sequences as one tensor, with padding where they end before the longest.

    Args:
        sequences: (length, *) each, alike but for their length.
        batch_first: whether the result is (batch, time, *) instead of (time, batch, *).
        padding_value: what stands where a sequence has nothing.
        padding_side: "right" for padding after the end, "left" for padding before the start.

    Raises:
        RuntimeError: if there are no sequences, or they differ in more than their length, or
            padding_side is another word.

    Example:
        >>> sequences = [torch.tensor([1, 2, 3]), torch.tensor([4])]
        >>> torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True).tolist()
        [[1, 2, 3], [4, 0, 0]]
    """
    if not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}."
        )
    parts = tuple(sequences)
    if not parts:
        raise RuntimeError("pad_sequence: received an empty list of sequences.")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: Expected padding_side to be one of left or right, but got "
            f"{padding_side}."
        )
    first = parts[0]
    for part in parts:
        if part.shape[1:] != first.shape[1:]:
            raise RuntimeError(
                f"pad_sequence: The sequences must have the same sizes after the first, but they "
                f"have shapes {tuple(first.shape)} and {tuple(part.shape)}."
            )
    lengths = rl.tensor([part.size(0) for part in parts])
    longest = int(lengths.max())
    exists = _below(lengths, longest).t()  # (batch, time)
    if padding_side == "left":
        exists = exists.flip(1)
    rows, steps = exists.nonzero().to(first.device).unbind(1)
    shape, places = (len(parts), longest), (rows, steps)
    if not batch_first:
        shape, places = shape[::-1], places[::-1]
    padded = first.new_full((*shape, *first.shape[1:]), padding_value)
    return padded.index_put(places, rl.cat([part.to(first.dtype) for part in parts]))


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Returns the sequences that pad_sequence padded on the right.

    Args:
        padded_sequences: (time, batch, *), or (batch, time, *) with batch_first.
        lengths: how many elements of each to keep.
        batch_first: whether the batch is the first dim.

    Example:
        >>> padded = torch.tensor([[1, 2, 3], [4, 0, 0]])
        >>> unpad = torch.nn.utils.rnn.unpad_sequence
        >>> [t.tolist() for t in unpad(padded, torch.tensor([3, 1]), batch_first=True)]
        [[1, 2, 3], [4]]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: max(length, 0)] for row, length in zip(rows, lengths.tolist(), strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Returns sequences of different lengths as one PackedSequence.

    Args:
        sequences: (length, *) each, alike but for their length.
        enforce_sorted: whether lengths must not grow, see pack_padded_sequence.

    Raises:
        RuntimeError: as pack_padded_sequence.

    Example:
        >>> sequences = [torch.tensor([1, 2]), torch.tensor([3, 4, 5])]
        >>> packed = torch.nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
        >>> packed.sorted_indices.tolist()
        [1, 0]
    """
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Returns the sequences that pack_sequence packed, in their old order.

    Example:
        >>> sequences = [torch.tensor([1, 2]), torch.tensor([3, 4, 5])]
        >>> packed = torch.nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
        >>> [t.tolist() for t in torch.nn.utils.rnn.unpack_sequence(packed)]
        [[1, 2], [3, 4, 5]]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
