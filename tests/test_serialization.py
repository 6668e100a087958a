"""Checkpoints: what comes back, what the file looks like, and what a hostile file can do."""

import argparse
import builtins
import collections
import errno
import io
import os
import pickle
import stat
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as torch
from rushlight import serialization

PYTORCH_FILE = Path(__file__).parent / "files" / "pytorch_2_13.pt"
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "uint16",
    "uint32",
    "uint64",
]
CLEAN = (pickle.UnpicklingError, RuntimeError)


def saved(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    return file.getvalue()


def loaded(data, **options):
    return torch.load(io.BytesIO(data), **options)


def round_trip(obj):
    return loaded(saved(obj))


def archive(entries, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as zip_file:
        for name, data in entries.items():
            zip_file.writestr(f"archive/{name}", data)
    return file.getvalue()


def entries_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as zip_file:
        return {
            info.filename.partition("/")[2]: zip_file.read(info) for info in zip_file.infolist()
        }


def checkpoint(pickled, **storages):
    """A file with this pickle, whose checksums are right."""
    return archive({"data.pkl": pickled, **{f"data/{k}": v for k, v in storages.items()}})


class Point:
    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("x",)


# ---- what comes back ----


@pytest.mark.parametrize("name", DTYPES)
def test_tensors_of_every_dtype_come_back(name) -> None:
    dtype = getattr(torch, name)
    tensor = torch.tensor([[0, 1, 2], [3, 0, 1]]).to(dtype)
    result = round_trip(tensor)
    assert result.dtype == dtype
    assert result.tolist() == tensor.tolist()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:3],
        lambda x: x[:, 2],
        lambda x: x.t(),
        lambda x: x[:1].expand(5, 4),
        lambda x: x[2, 1],
        lambda x: x[3:],
        lambda x: x[:, :0],
    ],
)
def test_views_keep_their_layout(view) -> None:
    tensor = view(torch.arange(12.0).reshape(3, 4))
    result = round_trip(tensor)
    assert result.shape == tensor.shape
    assert result.tolist() == tensor.tolist()
    if tensor.numel():
        assert result.stride() == tensor.stride()
        assert result.storage_offset() == tensor.storage_offset()


def test_views_share_memory_again() -> None:
    x = torch.zeros(6)
    result = round_trip({"all": x, "part": x[2:4], "other": torch.zeros(6)})
    result["all"][2] = 7
    assert result["part"].tolist() == [7.0, 0.0]
    assert result["other"].tolist() == [0.0] * 6
    assert len(entries_of(saved([x, x[1:], x.view(2, 3)]))) == len(entries_of(saved(x)))


def test_one_object_in_two_places_is_one_again() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    first, second = round_trip([weight, weight])
    assert first is second


def test_memory_seen_in_two_dtypes_is_refused() -> None:
    x = torch.zeros(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        saved([x, x.view(torch.int32)])


def test_empty_tensors_of_different_dtypes_are_no_conflict() -> None:
    result = round_trip([torch.empty(0, 3), torch.empty(0, dtype=torch.int64)])
    assert [(x.shape, x.dtype) for x in result] == [((0, 3), torch.float32), ((0,), torch.int64)]


def test_gradients_are_asked_for_again() -> None:
    leaf = torch.ones(2, requires_grad=True)
    result = round_trip({"leaf": leaf, "computed": leaf * 2})
    assert result["leaf"].requires_grad
    assert result["computed"].is_leaf
    assert result["computed"].tolist() == [2.0, 2.0]


def test_parameters_keep_their_class_and_attributes() -> None:
    weight = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    weight.group = "slow"
    result = round_trip(weight)
    assert type(result) is torch.nn.Parameter
    assert not result.requires_grad
    assert result.group == "slow"
    assert type(round_trip(torch.nn.Parameter(torch.ones(2)))) is torch.nn.Parameter


def test_state_dicts_keep_order_and_metadata() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    state = net.state_dict()
    result = round_trip(state)
    assert type(result) is collections.OrderedDict
    assert list(result) == list(state)
    assert result._metadata == state._metadata
    net.load_state_dict(result)


def test_optimizers_continue_from_a_file() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    optimizer = torch.optim.Adam([weight], lr=0.1)
    optimizer.step()
    twin_weight = torch.nn.Parameter(weight.detach().clone())
    twin_weight.grad = torch.ones(2)
    twin = torch.optim.Adam([twin_weight])
    twin.load_state_dict(round_trip(optimizer.state_dict()))
    optimizer.step()
    twin.step()
    assert torch.equal(weight, twin_weight)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_back(protocol) -> None:
    obj = {
        "numbers": [0, 255, 65536, -1, 2**40, -(2**1000), 0.5, -0.0, 1 + 2j],
        "text": ["", "naïve", "\ud800", "x" * 300],
        "bytes": [b"", b"\x00\xff", b"x" * 300, bytearray(), bytearray(b"\x80")],
        "flags": (True, False, None),
        "nested": {1: {(2, (3,)): [[]]}, "set": {1, "a"}, "empty": (set(), (), {}, [])},
        "ordered": collections.OrderedDict(b=1, a=2),
        "counts": collections.Counter("aab"),
        "torch": [torch.Size([2, 3]), torch.device("cpu"), torch.bfloat16],
    }
    result = loaded(saved(obj, pickle_protocol=protocol))
    assert result == obj
    assert type(result["counts"]) is collections.Counter
    assert type(result["torch"][0]) is torch.Size
    assert result["torch"][2] is torch.bfloat16


def test_a_container_may_hold_itself() -> None:
    loop = [1]
    loop.append(loop)
    result = round_trip(loop)
    assert result[1] is result


def test_a_file_of_pytorch_is_read() -> None:
    result = torch.load(PYTORCH_FILE)
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(result["state"]["weight"].numpy(), base)
    np.testing.assert_array_equal(result["transposed"].numpy(), base.T)
    assert result["state"]._metadata == {"": {"version": 1}}
    result["state"]["weight"][1, 0] = 99
    assert result["state"]["bias"].tolist() == [99.0, 5.0, 6.0, 7.0]
    assert type(result["parameter"]) is torch.nn.Parameter
    assert result["parameter"].tolist() == [1.5, -2.5]
    assert result["size"] == torch.Size([2, 3])
    assert result["device"] == torch.device("cpu")
    assert result["dtype"] is torch.float16
    plain = [1, -(2**70), 0.5, True, None, "text", b"bytes", (1, (2,)), {3}, 1 + 2j]
    assert result["plain"] == plain
    for name in DTYPES:
        assert result[name].dtype == getattr(torch, name)
        assert result[name].tolist() == [0, 1, 1]
    assert result["empty"].shape == (0, 3)
    assert result["conjugate"].tolist() == [1 - 2j]


# ---- the file ----


def test_entries_are_stored_plainly_and_aligned() -> None:
    data = saved([torch.ones(3), torch.ones(1000)])
    with zipfile.ZipFile(io.BytesIO(data)) as zip_file:
        assert zip_file.testzip() is None
        names = [info.filename for info in zip_file.infolist()]
        assert names == [
            f"archive/{name}" for name in ("data.pkl", "byteorder", "data/0", "data/1", "version")
        ]
        for info in zip_file.infolist():
            sizes = struct.unpack_from("<HH", data, info.header_offset + 26)
            start = info.header_offset + 30 + sum(sizes)
            assert start % 64 == 0
            assert data[start : start + info.file_size] == zip_file.read(info)
        assert zip_file.read("archive/version") == b"3\n"


def test_the_same_object_makes_the_same_file() -> None:
    assert saved({"x": torch.ones(3)}) == saved({"x": torch.ones(3)})


def test_the_pickle_names_pytorch_only() -> None:
    obj = [torch.nn.Parameter(torch.ones(1)), torch.ones(1).short(), torch.float16, torch.Size([1])]
    assert b"rushlight" not in entries_of(saved(obj))["data.pkl"]


def test_paths_and_open_files_are_taken(tmp_path) -> None:
    path = tmp_path / "x.pt"
    torch.save(1, path)
    torch.save(2, str(tmp_path / "y.pt"))
    assert torch.load(str(path)) == 1
    with open(tmp_path / "y.pt", "rb") as file:
        assert torch.load(file) == 2
    with open(path, "wb") as file:
        torch.save(3, file)
    assert torch.load(path) == 3


def test_a_stream_that_cannot_seek_is_written() -> None:
    class Pipe:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += data

    pipe = Pipe()
    torch.save(torch.arange(3), pipe)
    assert loaded(pipe.data).tolist() == [0, 1, 2]


def test_a_file_that_can_only_read_seek_and_tell_is_loaded() -> None:
    class Minimal:
        def __init__(self, data):
            file = io.BytesIO(data)
            self.read, self.seek, self.tell = file.read, file.seek, file.tell

    assert torch.load(Minimal(saved(torch.arange(3)))).tolist() == [0, 1, 2]


def test_a_failed_save_leaves_the_old_file_alone(tmp_path) -> None:
    path = tmp_path / "x.pt"
    torch.save("old", path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save([torch.ones(1000), lambda: None], path)
    assert torch.load(path) == "old"
    assert os.listdir(tmp_path) == ["x.pt"]


def test_a_full_disk_is_an_error() -> None:
    class Full(io.BytesIO):
        def write(self, data):
            if self.tell() + len(data) > 3000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    with pytest.raises(OSError, match="No space left"):
        torch.save([torch.ones(100), torch.ones(1000)], Full())


def test_a_file_that_cannot_take_its_place_is_removed(tmp_path, monkeypatch) -> None:
    def refuse(*paths):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        torch.save(1, tmp_path / "x.pt")
    assert os.listdir(tmp_path) == []


def test_the_new_file_takes_the_place_and_mode_of_the_old(tmp_path) -> None:
    path = tmp_path / "x.pt"
    link = tmp_path / "link.pt"
    torch.save("old", path)
    path.chmod(0o640)
    link.symlink_to(path)
    torch.save("new", link)
    assert link.is_symlink()
    assert torch.load(path) == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_devices_are_written_to_directly() -> None:
    torch.save(torch.ones(2), os.devnull)
    assert not os.path.isfile(os.devnull)


def test_a_missing_folder_is_named(tmp_path) -> None:
    with pytest.raises(RuntimeError, match=r"Parent directory .*nowhere does not exist"):
        torch.save(1, tmp_path / "nowhere" / "x.pt")
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "x.pt")
    with pytest.raises(IsADirectoryError):
        torch.save(1, tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pickle_module": argparse}, "pickle_module must be Python's pickle, not argparse"),
        ({"_use_new_zipfile_serialization": False}, "the format from before PyTorch 1.6"),
    ],
)
def test_options_that_would_write_something_else_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        saved(1, **options)


# ---- load's options ----


def test_map_location_in_all_its_forms() -> None:
    entries = entries_of(saved(torch.arange(3)))
    data = archive({**entries, "data.pkl": entries["data.pkl"].replace(text("cpu"), text("gpu"))})
    with pytest.raises(RuntimeError, match=r"device gpu.*Pass map_location='cpu'"):
        loaded(data)
    seen = []

    def keep(storage, location):
        seen.append((storage.nbytes(), location))
        return storage

    for where in ("cpu", torch.device("cpu"), {"gpu": "cpu"}, keep):
        assert loaded(data, map_location=where).tolist() == [0, 1, 2]
    assert seen == [(24, "gpu")]


def test_mapped_tensors_do_not_change_the_file(tmp_path) -> None:
    path = tmp_path / "x.pt"
    torch.save([torch.arange(5), torch.empty(0)], path)
    x, _ = torch.load(path, mmap=True)
    x += 1
    assert x.tolist() == [1, 2, 3, 4, 5]
    assert torch.load(path)[0].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="mmap needs the path"):
        torch.load(io.BytesIO(saved(1)), mmap=True)


def test_loading_is_restricted_whatever_weights_only_says() -> None:
    for weights_only in (True, False, None):
        assert loaded(saved([1]), weights_only=weights_only) == [1]
        with pytest.raises(pickle.UnpicklingError, match="was not an allowed global"):
            loaded(saved(Point(1)), weights_only=weights_only)


def test_registered_classes_are_rebuilt() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[Point\]\)"):
        round_trip(Point(1))
    with serialization.safe_globals([Point, Slotted, argparse.Namespace, collections.deque]):
        assert round_trip(Point(torch.ones(1))).x.tolist() == [1.0]
        assert round_trip(argparse.Namespace(lr=0.1)) == argparse.Namespace(lr=0.1)
        slotted = Slotted()
        slotted.x = 3
        assert round_trip(slotted).x == 3
        assert round_trip(collections.deque([1, 2], maxlen=2)).maxlen == 2
    assert serialization.get_safe_globals() == []


def test_registered_names_can_be_renamed() -> None:
    data = saved(Point(5))
    name = f"{Point.__module__}.{Point.__qualname__}"
    try:
        serialization.add_safe_globals([(argparse.Namespace, name)])
        assert loaded(data) == argparse.Namespace(x=5)
    finally:
        serialization.clear_safe_globals()
    with pytest.raises(ValueError, match="expected a class, a function or a pair"):
        serialization.add_safe_globals([(Point, 3)])


# ---- files that are not what they should be ----


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"hello, this is text", "not a zip archive"),
        (pickle.dumps([1]), "not a zip archive"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "before version 1.6"),
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
    with pytest.raises(RuntimeError):
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


# ---- hostile pickles ----


def text(value):
    data = value.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def number(value):
    data = pickle.encode_long(value)
    return pickle.LONG1 + struct.pack("<B", len(data)) + data


def tuple_of(*parts):
    return pickle.MARK + b"".join(parts) + pickle.TUPLE


def name(module, attribute):
    return pickle.GLOBAL + f"{module}\n{attribute}\n".encode()


def call(function, *arguments):
    return function + tuple_of(*arguments) + pickle.REDUCE


def program(*parts):
    return pickle.PROTO + b"\x02" + b"".join(parts) + pickle.STOP


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
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.QInt8Storage, which Rushlight does"):
        loaded(checkpoint(program(name("torch", "QInt8Storage"))))


# ---- fuzzing ----

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
fuzz = settings(max_examples=300, deadline=None, derandomize=True)


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
