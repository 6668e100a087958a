"""Packed and padded sequences."""

import pickle

import pytest

import rushlight as torch
from rushlight.nn.utils import rnn

SEQUENCES = [torch.arange(n, dtype=torch.float32) + 10 * n for n in (2, 4, 1)]


def test_packed_sequences_convert_and_keep_their_order():
    packed = rnn.pack_sequence(SEQUENCES, enforce_sorted=False)
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    assert packed.to(torch.float32) is packed
    assert packed.cpu() is packed
    assert not packed.is_cuda
    names = ["double", "float", "half", "long", "int", "short", "char", "byte"]
    dtypes = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8"]
    for name, dtype in zip(names, dtypes, strict=True):
        converted = getattr(packed, name)()
        assert isinstance(converted, rnn.PackedSequence)
        assert converted.data.dtype == getattr(torch, dtype)
        assert converted.sorted_indices.dtype == torch.int64
    assert packed.to("meta").unsorted_indices.is_meta
    assert packed.to("meta").batch_sizes.tolist() == [3, 2, 1, 1]
    other = pickle.loads(pickle.dumps(packed))
    assert [t.tolist() for t in rnn.unpack_sequence(other)] == [t.tolist() for t in SEQUENCES]
    data, batch_sizes, _, _ = packed
    assert rnn.PackedSequence((data, batch_sizes)).unsorted_indices is None


@pytest.mark.parametrize("batch_first", [False, True])
def test_padding_is_what_packing_removed(batch_first):
    padded = rnn.pad_sequence(SEQUENCES, batch_first, padding_value=-1.0)
    lengths = torch.tensor([2, 4, 1])
    packed = rnn.pack_padded_sequence(padded, lengths, batch_first, enforce_sorted=False)
    again, found = rnn.pad_packed_sequence(packed, batch_first, padding_value=-1.0)
    assert torch.equal(again, padded) and again.is_contiguous()
    assert torch.equal(found, lengths)
    for mine, theirs in zip(
        rnn.unpad_sequence(padded, lengths, batch_first), SEQUENCES, strict=True
    ):
        assert torch.equal(mine, theirs)


def test_padding_on_the_left():
    padded = rnn.pad_sequence(SEQUENCES, batch_first=True, padding_side="left")
    assert padded.tolist() == [[0, 0, 20, 21], [40, 41, 42, 43], [0, 0, 0, 10]]


def test_empty_sequences_are_padded():
    assert rnn.pad_sequence([torch.zeros(0), torch.ones(2)], True).tolist() == [[0, 0], [1, 1]]
    assert rnn.pad_sequence([torch.zeros(0, 3)]).shape == (0, 1, 3)


@pytest.mark.parametrize("batch_first", [True, False])
def test_padded_sequences_can_be_viewed_as_one_row(batch_first: bool) -> None:
    padded = rnn.pad_sequence(SEQUENCES, batch_first)
    assert padded.view(-1).shape == (padded.numel(),)


def test_padding_keeps_the_dtype_of_the_first():
    padded = rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([2.5])])
    assert padded.tolist() == [[1, 2], [2, 0]]


PADDED = torch.zeros(4, 3)
REFUSED = {
    "grow": ("sorted in decreasing order", lambda: rnn.pack_padded_sequence(PADDED, [1, 2, 3])),
    "count": ("equal to batch_size", lambda: rnn.pack_padded_sequence(PADDED, [2, 1])),
    "zero": ("has to be greater than 0", lambda: rnn.pack_padded_sequence(PADDED, [2, 1, 0])),
    "long": ("at most 4", lambda: rnn.pack_padded_sequence(PADDED, [5, 1, 1])),
    "dim": ("1D CPU int64", lambda: rnn.pack_padded_sequence(PADDED, torch.ones(1, 3))),
    "empty": ("Cannot pack empty", lambda: rnn.pack_padded_sequence(PADDED[:, :0], [])),
    "nothing": ("empty list", lambda: rnn.pad_sequence([])),
    "number": ("Expected iterable", lambda: rnn.pad_sequence(3)),
    "side": ("one of left or right", lambda: rnn.pad_sequence(SEQUENCES, padding_side="top")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    text, call = REFUSED[name]
    with pytest.raises(RuntimeError, match=text):
        call()


def test_total_length_must_suffice():
    packed = rnn.pack_sequence(SEQUENCES, enforce_sorted=False)
    with pytest.raises(ValueError, match="total_length=3"):
        rnn.pad_packed_sequence(packed, total_length=3)
    with pytest.raises(ValueError, match="always be on CPU"):
        rnn.PackedSequence(packed.data, packed.batch_sizes.to("meta"))


def test_a_packed_sequence_without_elements_cannot_be_padded() -> None:
    packed = rnn.PackedSequence(torch.randn(0, 5), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="no elements"):
        rnn.pad_packed_sequence(packed)
