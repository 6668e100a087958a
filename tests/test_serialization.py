"""Checkpoints: what comes back, what the file looks like, and the options of save and load."""

import argparse
import collections
import copy
import errno
import io
import mmap
import os
import pickle
import stat
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_files import archive, checkpoint, entries_of, loaded, round_trip, saved, text

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


class Point:
    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("x",)


# What comes back


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


def test_buffers_stay_buffers() -> None:
    buffer = torch.nn.Buffer(torch.ones(2), persistent=False)
    same, kept, plain = round_trip([buffer, torch.nn.Buffer(torch.zeros(1)), buffer.detach()])
    assert type(same) is type(kept) is torch.nn.Buffer and type(plain) is torch.Tensor
    assert same.tolist() == [1, 1] and (same.persistent, kept.persistent) == (False, True)
    assert same.data_ptr() == plain.data_ptr() and "_is_buffer" not in vars(same)


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


# The file


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


@pytest.mark.parametrize("as_zip", [True, False])
def test_a_map_of_a_file_is_loaded(as_zip: bool) -> None:
    file = io.BytesIO()
    torch.save(torch.arange(3), file, _use_new_zipfile_serialization=as_zip)
    with mmap.mmap(-1, file.tell()) as mapped:
        mapped[:] = file.getvalue()
        assert torch.load(mapped).tolist() == [0, 1, 2]


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


def test_another_pickle_module_is_refused() -> None:
    with pytest.raises(ValueError, match="pickle_module must be Python's pickle, not argparse"):
        saved(1, pickle_module=argparse)


# Load's options


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
    other = torch.tensor([7, 8, 9])
    assert loaded(data, map_location=lambda *_: other.untyped_storage()).tolist() == [7, 8, 9]


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


def test_names_of_python_2_are_those_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_by(name: bytes) -> bytes:
        return checkpoint(b"\x80\x02c" + name + b"\nK\x03\x85R.")

    monkeypatch.setattr(serialization, "_safe_globals", {})
    assert loaded(checkpoint(b"\x80\x02c__builtin__\nset\n]K\x03a\x85R.")) == {3}
    unknown = made_by(b"__builtin__\nxrange")
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(unknown)) == ["builtins.range"]
    with pytest.raises(pickle.UnpicklingError, match="GLOBAL builtins.range was not an allowed"):
        loaded(unknown)
    with serialization.safe_globals([range, int]):
        assert loaded(unknown) == range(3)
        assert loaded(made_by(b"__builtin__\nlong")) == 3


def test_a_file_reader_gives_single_entries(tmp_path: Path) -> None:
    torch.save({"x": torch.arange(3.0)}, tmp_path / "x.pt")
    reader = torch.PyTorchFileReader(tmp_path / "x.pt")
    assert reader.has_record("data/0") and not reader.has_record("data/1")
    assert {"data.pkl", "data/0", "version"} <= set(reader.get_all_records())
    assert reader.get_record("data/0") == torch.arange(3.0).numpy().tobytes()
    assert reader.get_storage_from_record("data/0", 3, torch.float32).tolist() == [0, 1, 2]
    bytes_ = reader.get_storage_from_record("data/0", 12, torch.UntypedStorage)
    assert bytes_.dtype is torch.uint8 and bytes_.numel() == reader.get_record_size("data/0")
    with pytest.raises(RuntimeError, match="file not found: data/7"):
        reader.get_record("data/7")
    with pytest.raises(RuntimeError, match="data/0 has 12 elements, not 13"):
        reader.get_storage_from_record("data/0", 13, torch.uint8)
    (tmp_path / "y.pt").write_text("no archive")
    with pytest.raises(RuntimeError, match="it is not a zip archive"):
        torch.PyTorchFileReader(tmp_path / "y.pt")


class OfItsOwn(torch.Tensor):
    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, ((("shape", 2),),)


def test_classes_of_tensors_may_say_how_they_are_pickled() -> None:
    file = io.BytesIO()
    torch.save(torch.ones(2).as_subclass(OfItsOwn), file)
    assert pickle.loads(zipfile.ZipFile(file).read("archive/data.pkl")) == {"shape": 2}


@pytest.mark.parametrize("content", [b"<!DOCTYPE html>", b"version https://git-lfs", b"\x80", b"x"])
def test_files_of_other_kinds_are_no_pickles(content: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match="it is not a zip archive"):
        torch.load(io.BytesIO(content))


class Named(torch.Tensor):
    name = "none"


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint16])
def test_registered_classes_of_tensors_keep_their_class_and_attributes(dtype: Any) -> None:
    x = torch.ones(2, dtype=dtype).as_subclass(Named)
    x.name, x.parts = "a", ["b"]
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[Named\]\)"):
        loaded(saved(x), weights_only=False)
    with torch.serialization.safe_globals([Named]):
        y, same, plain = round_trip([x, x, torch.ones(1, device="meta").as_subclass(Named)])
    assert type(y) is type(plain) is Named and y is same and y.parts == ["b"]
    assert y.tolist() == [1, 1] and y.dtype is dtype and (y.name, plain.name) == ("a", "none")


class InSlots(torch.Tensor):
    __slots__ = ("diag", "log")  # the first would be a method else


def test_attributes_in_slots_are_copied_pickled_and_saved() -> None:
    x = torch.ones(2).as_subclass(InSlots)
    x.diag, x.free = ["b"], 3
    with torch.serialization.safe_globals([InSlots]):
        copies = copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), round_trip(x)
    for y in copies:
        assert (type(y), y.diag, y.free, hasattr(y, "log")) == (InSlots, ["b"], 3, False)
    x = torch.ones(2).as_subclass(InSlots)
    x.diag = 1
    with torch.serialization.safe_globals([InSlots]):
        assert round_trip(x).diag == copy.deepcopy(x).diag == 1


class Stated(torch.Tensor):
    def __getstate__(self) -> Any:
        return "state", self.name

    def __setstate__(self, state: Any) -> None:
        self.name = [*state]


def test_a_class_may_say_what_its_state_is() -> None:
    x = torch.ones(2).as_subclass(Stated)
    x.name = "a"
    with torch.serialization.safe_globals([Stated]):
        copies = copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), round_trip(x)
    assert [y.name for y in copies] == [["state", "a"]] * 4


@pytest.mark.parametrize("mmap", [True, False])
def test_the_old_format_may_stand_between_other_things(tmp_path: Path, mmap: bool) -> None:
    path = tmp_path / "objects"
    with open(path, "w+b") as file:
        for i in range(2):
            pickle.dump(i, file)
            torch.save(torch.full((3,), i), file, _use_new_zipfile_serialization=False)
        pickle.dump(2, file)
        file.seek(0)
        for i in range(2):
            assert (pickle.load(file), torch.load(file).tolist()) == (i, [i] * 3)
        assert pickle.load(file) == 2
    with open(path, "wb") as file:
        torch.save(torch.arange(3), file, _use_new_zipfile_serialization=False)
    assert torch.load(path, mmap=mmap).tolist() == [0, 1, 2]


def test_the_native_order_of_bytes_may_be_asked_for() -> None:
    file = io.BytesIO()
    torch.save(torch.arange(3), file)
    whole = zipfile.ZipFile(file)
    bare = io.BytesIO()
    with zipfile.ZipFile(bare, "w") as archive:
        for name in whole.namelist():
            if not name.endswith("byteorder"):
                archive.writestr(name, whole.read(name))
    torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.NATIVE)
    try:
        bare.seek(0)
        assert torch.load(bare).tolist() == [0, 1, 2]
    finally:
        torch.serialization.set_default_load_endianness(None)


@pytest.mark.parametrize("as_zip", [True, False])
def test_storages_are_saved_and_share_memory_with_tensors(as_zip: bool) -> None:
    x, bits = torch.arange(3.0), torch.tensor([1, 2], dtype=torch.uint8)
    file = io.BytesIO()
    whole = [x, x.storage(), x[1:], bits.untyped_storage(), bits, torch.FloatStorage()]
    torch.save(whole, file, _use_new_zipfile_serialization=as_zip)
    file.seek(0)
    x, numbers, part, bytes, bits, empty = torch.load(file)
    numbers[1], bytes[0] = 5, 7
    assert type(numbers) is torch.TypedStorage and numbers.tolist() == [0, 5, 2]
    assert x.tolist() == [0, 5, 2] and part.tolist() == [5, 2] and bits.tolist() == [7, 2]
    assert bytes.dtype is torch.uint8 and empty.dtype is torch.float32 and not len(empty)
    with pytest.raises(RuntimeError, match="different types"):
        torch.save([x, x.untyped_storage()], io.BytesIO())
    with pytest.raises(RuntimeError, match=r"no storages of torch.uint16. Save untyped\(\)"):
        torch.save(bits.to(torch.uint16).storage(), io.BytesIO())
