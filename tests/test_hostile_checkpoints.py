"""Checkpoints that are damaged, of another kind, or made to do harm: only clean errors come out."""

import argparse
import builtins
import collections
import contextlib
import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import (
    CLEAN,
    archive,
    call,
    checkpoint,
    entries_of,
    loaded,
    name,
    number,
    program,
    saved,
    text,
    tuple_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as torch


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"hello, this is text", "not a zip archive"),
        (pickle.dumps([1]), "not a zip archive"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "ends too early"),
        (saved(torch.ones(9))[:-1], "cut off or damaged"),
        (saved(torch.ones(9))[:300], "cut off or damaged"),
        (archive({"other.txt": b""}), "without a data.pkl"),
        (archive({"constants.pkl": b"", "data.pkl": b""}), "TorchScript"),
        (archive({"data.pkl": saved(1)}, zipfile.ZIP_DEFLATED), "must be stored plainly"),
        (archive({"data.pkl": b""}), "ends too early"),
    ],
)
def test_what_is_no_checkpoint_is_told_in_one_line(data, message, tmp_path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(data)
    with pytest.raises(CLEAN, match=message) as caught:
        torch.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_file_has_pythons_error_for_it(tmp_path) -> None:
    (tmp_path / "x.pt").touch()
    with pytest.raises(EOFError, match="it is empty"):
        torch.load(tmp_path / "x.pt")


LEGACY = (Path(__file__).parent / "files" / "pytorch_legacy.pt").read_bytes()


def test_old_files_that_are_cut_off_or_changed_end_cleanly() -> None:
    for end in range(len(LEGACY)):
        with pytest.raises(CLEAN):
            loaded(LEGACY[:end])
    start = LEGACY.index(b"collections")  # what is before tells the format
    for position in range(15, len(LEGACY)):
        for bit in (0x01, 0x80) if position < start + 600 else (0x10,):
            data = bytearray(LEGACY)
            data[position] ^= bit
            with contextlib.suppress(*CLEAN):
                loaded(bytes(data))


def test_a_flipped_bit_in_a_tensor_is_noticed() -> None:
    data = bytearray(saved(torch.zeros(100)))
    data[data.index(bytes(400)) + 200] ^= 1
    with pytest.raises(RuntimeError, match="data/0 is damaged"):
        loaded(data)


def test_entries_over_the_same_bytes_are_refused() -> None:
    data = bytearray(archive({"data.pkl": pickle.dumps(1), "data/0": bytes(1000), "data/1": b""}))
    directory = data.rindex(b"PK\x01\x02")
    first = data.index(b"PK\x01\x02", 1000)
    second = data.index(b"PK\x01\x02", first + 1)
    data[directory + 16 : directory + 28] = data[second + 16 : second + 28]  # CRC and sizes
    data[directory + 42 : directory + 46] = data[second + 42 : second + 46]  # position
    with pytest.raises(RuntimeError, match="entries are larger than the file"):
        loaded(data)


def test_entries_of_the_same_name_are_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zip_file:
        zip_file.writestr("archive/data.pkl", pickle.dumps(1))
        with pytest.warns(UserWarning, match="Duplicate name"):
            zip_file.writestr("archive/data.pkl", pickle.dumps(2))
    with pytest.raises(RuntimeError, match="have the same name"):
        loaded(file.getvalue())


def test_storages_of_the_wrong_size_are_refused() -> None:
    entries = entries_of(saved(torch.ones(4)))
    for storage in (b"", bytes(15), bytes(20)):
        with pytest.raises(pickle.UnpicklingError, match="another size than the pickle says"):
            loaded(archive({**entries, "data/0": storage}))
    del entries["data/0"]
    with pytest.raises(pickle.UnpicklingError, match="data/0 is missing"):
        loaded(archive(entries))


def test_bytes_of_the_other_order_are_swapped() -> None:
    x = torch.tensor([1.0, -2.5, 3e10])
    entries = entries_of(saved([x, torch.tensor([1 + 2j]), torch.tensor([True])]))
    swapped = {
        **entries,
        "byteorder": b"big",
        "data/0": np.frombuffer(entries["data/0"], np.float32).byteswap().tobytes(),
        "data/1": np.frombuffer(entries["data/1"], np.float32).byteswap().tobytes(),
    }
    floats, complexes, bools = loaded(archive(swapped))
    assert torch.equal(floats, x)
    assert complexes.tolist() == [1 + 2j]
    assert bools.tolist() == [True]


def test_bools_are_0_or_1_whatever_the_file_says() -> None:
    entries = entries_of(saved(torch.tensor([True, False, True])))
    result = loaded(archive({**entries, "data/0": b"\xff\x00\x02"}))
    assert result.view(torch.uint8).tolist() == [1, 0, 1]


# Hostile pickles

STORAGE = (
    tuple_of(text("storage"), name("torch", "FloatStorage"), text("0"), text("cpu"), number(4))
    + pickle.BINPERSID
)
REBUILD = name("torch._utils", "_rebuild_tensor_v2")
NO_HOOKS = call(name("collections", "OrderedDict"))


def tensor_program(offset, size, stride, requires_grad=pickle.NEWFALSE):
    return program(
        call(
            REBUILD,
            STORAGE,
            number(offset),
            tuple_of(*map(number, size)),
            tuple_of(*map(number, stride)),
            requires_grad,
            NO_HOOKS,
        )
    )


def test_the_programs_of_these_tests_are_right() -> None:
    result = loaded(checkpoint(tensor_program(1, (3,), (1,)), **{"0": bytes(16)}))
    assert result.tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [
        (0, (5,), (1,)),
        (1, (4,), (1,)),
        (4, (), ()),
        (0, (2,), (4,)),
        (0, (2, 2), (2, 2)),
        (-1, (2,), (1,)),
        (0, (-2,), (1,)),
        (0, (2,), (-1,)),
        (0, (2,), (1, 1)),
        (2**63, (1,), (1,)),
        (2**62, (1,), (1,)),
        (0, (2,), (2**62,)),
        (0, (2**32, 2**32), (0, 0)),
        (0, (0, 2**62, 2**62), (1, 1, 1)),
        (2**64, (), ()),
        (0, (1,) * 100, (1,) * 100),
    ],
)
def test_tensors_that_leave_their_storage_are_refused(offset, size, stride) -> None:
    with pytest.raises(pickle.UnpicklingError, match="load: cannot read the file: a "):
        loaded(checkpoint(tensor_program(offset, size, stride), **{"0": bytes(16)}))


class Bomb:
    """Pickles as a call of a function that must never run."""

    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    "bomb",
    [
        Bomb(os.system, "exit 1"),
        Bomb(builtins.eval, "1 / 0"),
        Bomb(builtins.getattr, dict, "get"),
        Bomb(builtins.open, "file"),
        Bomb(print, "ran"),
        Bomb(argparse.Namespace),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_code_in_a_file_is_not_run(bomb, protocol, capsys) -> None:
    with pytest.raises(pickle.UnpicklingError, match="was not an allowed global by default"):
        loaded(checkpoint(pickle.dumps(bomb, protocol)))
    assert capsys.readouterr().out == ""


MEMORY = call(name("builtins", "bytearray"), number(10**15))
DEEP_KEY = pickle.EMPTY_TUPLE + pickle.TUPLE1 * 100_000
DICT = pickle.EMPTY_DICT
WIDE_KEY = pickle.NONE + (pickle.BINPUT + b"\x00" + pickle.BINGET + b"\x00" + pickle.TUPLE2) * 40
PARAMETER = name("torch._utils", "_rebuild_parameter_with_state")
TENSOR = call(REBUILD, STORAGE, number(0), tuple_of(), tuple_of(), pickle.NEWFALSE, NO_HOOKS)


@pytest.mark.parametrize(
    "parts",
    [
        [MEMORY],
        [DICT, DEEP_KEY, pickle.NONE, pickle.SETITEM],
        [call(name("builtins", "set"), pickle.EMPTY_LIST + DEEP_KEY + pickle.APPEND)],
        [DICT, WIDE_KEY, pickle.NONE, pickle.SETITEM],
        [DICT, DICT, pickle.NONE, pickle.SETITEM],  # an unhashable key
        [REBUILD, DICT, text("__kwdefaults__"), DICT, pickle.SETITEM, pickle.BUILD],
        [NO_HOOKS, DICT, text("items"), pickle.NONE, pickle.SETITEM, pickle.BUILD],
        [NO_HOOKS, DICT, DEEP_KEY, pickle.NONE, pickle.SETITEM, pickle.BUILD],
        [
            call(
                PARAMETER,
                TENSOR,
                pickle.NEWTRUE,
                NO_HOOKS,
                DICT + text("__class__") + name("builtins", "set") + pickle.SETITEM,
            )
        ],
        [name("collections", "OrderedDict"), pickle.EMPTY_TUPLE, pickle.NEWOBJ],
        [name("builtins", "set"), pickle.NONE, pickle.APPEND],
        [call(text("text"))],
        [call(pickle.EMPTY_LIST)],
        [call(DEEP_KEY)],
        [call(name("torch", "float32"))],
        [call(name("torch", "FloatStorage"), number(10**12))],
        [call(name("torch", "Size"), number(3))],
        [call(name("torch", "device"), text("no such device"))],
        [call(name("_codecs", "encode"), text("a"), text("zip"))],
        [call(REBUILD, text("storage"))],
        [call(REBUILD, *[DEEP_KEY] * 6)],
        [call(REBUILD, STORAGE, *[DEEP_KEY] * 5)],
        [text("storage"), pickle.BINPERSID],
        [tuple_of(*[DEEP_KEY] * 5), pickle.BINPERSID],
        [pickle.LONG4, struct.pack("<i", -5)],
        [pickle.BINUNICODE8, struct.pack("<Q", 2**63)],
        [pickle.BINUNICODE, struct.pack("<I", 1), b"\xff"],
        [pickle.LONG_BINGET, struct.pack("<I", 2**32 - 1)],
        [pickle.GLOBAL, b"torch"],
        [pickle.INST, b"os\nsystem\n"],
        [pickle.EXT1, b"\x01"],
        [pickle.TUPLE3],
        [pickle.TUPLE],
        [],
    ],
)
def test_hostile_pickles_are_refused(parts) -> None:
    with pytest.raises(pickle.UnpicklingError, match="load: cannot read the file: "):
        loaded(checkpoint(program(*parts), **{"0": bytes(16)}))


def test_large_memo_numbers_take_no_memory() -> None:
    put = pickle.LONG_BINPUT + struct.pack("<I", 2**32 - 1)
    assert loaded(checkpoint(program(pickle.NONE, put))) is None


def test_one_storage_cannot_be_used_with_two_types() -> None:
    other = (
        tuple_of(text("storage"), name("torch", "IntStorage"), text("0"), text("cpu"), number(4))
        + pickle.BINPERSID
    )
    with pytest.raises(pickle.UnpicklingError, match="storage 0 is used with two types"):
        loaded(checkpoint(program(tuple_of(STORAGE, other)), **{"0": bytes(16)}))


def test_what_pytorch_has_and_we_have_not_is_named() -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=r"torch\.QUInt4x2Storage, which Rushlight does"
    ):
        loaded(checkpoint(program(name("torch", "QUInt4x2Storage"))))


# Fuzzing

X = torch.arange(6.0)
VALID = saved(
    {
        "net": collections.OrderedDict(w=X, v=X[2:4], p=torch.nn.Parameter(X.reshape(2, 3).t())),
        "other": [torch.ones(2).to(torch.uint16), torch.tensor([True]), torch.Size([1]), {1, 2}],
        "plain": (1, -5, 0.5, "text", b"bytes", None, 2**70, torch.float16),
    }
)
VALID_ENTRIES = entries_of(VALID)
SNIPPETS = [
    *(bytes([code]) for code in range(256)),
    STORAGE,
    REBUILD,
    TENSOR,
    NO_HOOKS,
    PARAMETER,
    text("0"),
    number(3),
    number(2**62),
    number(-1),
    name("torch", "Size"),
    name("torch", "float32"),
    name("torch", "UntypedStorage"),
    name("builtins", "set"),
]


def use(value, depth=0):
    """Reads all the tensors in a loaded value, so that a sanitizer sees a wrong address."""
    if isinstance(value, torch.Tensor):
        if value.numel() <= 1000:
            value.tolist()
    elif depth < 20 and isinstance(value, dict):
        use(list(value.items()), depth + 1)
    elif depth < 20 and isinstance(value, list | tuple | set):
        for item in list(value)[:100]:
            use(item, depth + 1)


def load_or_fail_cleanly(data):
    try:
        value = loaded(data)
    except CLEAN:
        return
    use(value)


def mutated(data, edits):
    result = bytearray(data)
    for place, replacement, removed in edits:
        start = int(place * len(result))
        result[start : start + removed] = replacement
    return bytes(result)


edits = st.lists(
    st.tuples(st.floats(0, 1), st.binary(max_size=4), st.integers(0, 4)), min_size=1, max_size=4
)
fuzz = settings(max_examples=300, derandomize=True)


@fuzz
@given(edits)
def test_damaged_files_fail_cleanly(edits) -> None:
    load_or_fail_cleanly(mutated(VALID, edits))


@fuzz
@given(st.integers(0, len(VALID) - 1))
def test_files_cut_off_anywhere_fail_cleanly(size) -> None:
    with pytest.raises(CLEAN):
        loaded(VALID[:size])


@fuzz
@given(edits)
def test_damaged_pickles_fail_cleanly(edits) -> None:
    pickled = mutated(VALID_ENTRIES["data.pkl"], edits)
    load_or_fail_cleanly(archive({**VALID_ENTRIES, "data.pkl": pickled}))


@fuzz
@given(st.lists(st.sampled_from(SNIPPETS), max_size=30))
def test_random_programs_fail_cleanly(parts) -> None:
    load_or_fail_cleanly(checkpoint(program(*parts), **{"0": bytes(16)}))


@fuzz
@given(
    st.integers(-1, 8),
    st.lists(st.tuples(st.integers(-1, 6), st.integers(-1, 6)), max_size=3),
)
def test_a_tensor_either_lies_in_its_storage_or_is_refused(offset, dims) -> None:
    size = tuple(n for n, _ in dims)
    stride = tuple(step for _, step in dims)
    values = np.arange(4, dtype=np.float32)
    data = checkpoint(tensor_program(offset, size, stride), **{"0": values.tobytes()})
    is_bad = min((offset, *size, *stride)) < 0
    fits = 0 in size or offset + sum((n - 1) * step for n, step in dims) < 4
    if is_bad or not fits:
        with pytest.raises(pickle.UnpicklingError):
            loaded(data)
        return
    result = loaded(data).numpy()
    assert result.shape == size
    for index in np.ndindex(*size):
        place = offset + sum(i * step for i, step in zip(index, stride, strict=True))
        assert result[index] == values[place]
