"""Tensors in the hands of programs that pickle them by themselves, storage by storage."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import _utils, nn
from rushlight._tensor import _rebuild_from_type_v2


class Saver:
    """Saves objects as torch.save does, with a pickler and a file of its own."""

    def __init__(self, file: Any) -> None:
        self.writer = torch.PyTorchFileWriter(file)
        self.keys: dict[int, str] = {}

    def save(self, obj: Any) -> None:
        buffer = io.BytesIO()
        saver = self

        class Pickler(pickle.Pickler):
            def persistent_id(self, obj: Any) -> Any:
                return saver.reference_to(obj) if torch.is_storage(obj) else None

        Pickler(buffer, protocol=2).dump(obj)
        self.writer.write_record("data.pkl", buffer.getvalue(), len(buffer.getvalue()))
        self.writer.write_end_of_file()

    def reference_to(self, obj: Any) -> tuple[Any, ...]:
        kind, count = torch.UntypedStorage, obj.nbytes()
        if isinstance(obj, torch.storage.TypedStorage):
            kind, count = getattr(torch, obj._pickle_storage_type()), obj._size()
        storage = obj.untyped()
        key = self.keys.get(storage._cdata)
        if key is None:
            key = self.keys[storage._cdata] = str(len(self.keys))
            self.writer.write_record(f"data/{key}", storage, storage.nbytes())
        return "storage", kind, key, torch.serialization.location_tag(storage), count


def tensors() -> dict[str, Any]:
    whole = torch.arange(6.0).view(2, 3)
    marked, marked_parameter = torch.ones(2), nn.Parameter(torch.ones(3), requires_grad=False)
    marked.note = marked_parameter.note = "seen"
    return {
        "whole": whole,
        "part": whole[1],
        "transposed": whole.t(),
        "expanded": torch.ones(1).expand(4),
        "empty": torch.zeros(0, 3),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "no storage class": torch.tensor([1, 2], dtype=torch.uint16),
        "learns": torch.ones(2, requires_grad=True),
        "marked": marked,
        "parameter": nn.Parameter(torch.ones(3)),
        "marked parameter": marked_parameter,
        "buffer": nn.Buffer(torch.ones(2), persistent=False),
        "meta": torch.ones(2, device="meta"),
        "sparse": torch.eye(2).to_sparse(),
    }


def check_same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted) and found.requires_grad == wanted.requires_grad
    assert found.shape == wanted.shape and found.dtype is wanted.dtype
    assert vars(found) == vars(wanted) and found.device == wanted.device
    if wanted.is_sparse:
        assert torch.equal(found.to_dense(), wanted.to_dense())
    elif not wanted.is_meta:
        assert found.stride() == wanted.stride() and torch.equal(found, wanted)


def test_a_program_saves_storage_by_storage(tmp_path: Path) -> None:
    saved = tensors()
    del saved["sparse"]
    Saver(tmp_path / "x.pt").save({"tensors": saved, "dtype": torch.half, "size": torch.Size([2])})
    loaded = torch.load(tmp_path / "x.pt")
    assert loaded["dtype"] is torch.half and loaded["size"] == (2,)
    for name, wanted in saved.items():
        check_same(loaded["tensors"][name], wanted)
    loaded["tensors"]["whole"][1, 0] = 9
    assert loaded["tensors"]["part"][0] == 9


def test_tensors_say_how_they_are_made_again() -> None:
    made = tensors()
    function, (storage, *rest) = made["part"].__reduce_ex__(2)
    assert function is _utils._rebuild_tensor_v2 and rest == [3, (3,), (1,), False, {}]
    assert isinstance(storage, torch.storage.TypedStorage) and storage._size() == 6
    assert storage._cdata == made["whole"].untyped_storage()._cdata
    function, (inner, cls, arguments, state) = made["marked"].__reduce_ex__(2)
    assert function is _rebuild_from_type_v2 and inner is _utils._rebuild_tensor_v2
    assert cls is torch.Tensor and len(arguments) == 6 and state == {"note": "seen"}
    assert made["parameter"].__reduce_ex__(2)[0] is _utils._rebuild_parameter
    function, arguments = made["marked parameter"].__reduce_ex__(2)
    assert function is _utils._rebuild_parameter_with_state and arguments[3] == {"note": "seen"}
    assert made["no storage class"].__reduce_ex__(2)[0] is _utils._rebuild_tensor_v3
    assert made["meta"].__reduce_ex__(2)[0] is _utils._rebuild_meta_tensor_no_storage


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickle_gives_the_same_tensors(protocol: int) -> None:
    for wanted in tensors().values():
        check_same(pickle.loads(pickle.dumps(wanted, protocol)), wanted)
    storage = pickle.loads(pickle.dumps(torch.ones(2).storage(), protocol))
    assert isinstance(storage, torch.FloatStorage) and storage.tolist() == [1, 1]
    empty = pickle.loads(pickle.dumps(torch.UntypedStorage(0), protocol))
    assert isinstance(empty, torch.UntypedStorage) and empty.nbytes() == 0


def test_a_writer_writes_entries_until_the_end(tmp_path: Path) -> None:
    writer = torch.PyTorchFileWriter(str(tmp_path / "x.pt"))
    writer.write_record("text", "abc", 3)
    writer.write_record("part", bytearray(b"abcdef"), 2)
    writer.write_record("storage", torch.ones(2).storage(), 8)
    assert writer.get_all_written_records() == {"text", "part", "storage"}
    writer.write_end_of_file()
    with zipfile.ZipFile(tmp_path / "x.pt") as archive:
        names = ["text", "part", "storage", "version"]
        assert archive.namelist() == [f"archive/{name}" for name in names]
        assert archive.read("archive/part") == b"ab" and len(archive.read("archive/storage")) == 8
    for late in (lambda: writer.write_record("y", b"", 0), writer.write_end_of_file):
        with pytest.raises(RuntimeError, match="written"):
            late()


def test_a_writer_refuses_what_it_cannot_write() -> None:
    writer = torch.PyTorchFileWriter(io.BytesIO())
    writer.write_record("x", b"abc", 3)
    with pytest.raises(RuntimeError, match="already"):
        writer.write_record("x", b"abc", 3)
    for size in (-1, 4):
        with pytest.raises(RuntimeError, match="has 3 bytes"):
            writer.write_record("y", b"abc", size)
    for data in (torch.ones(2), torch.ones(2).data_ptr(), None):
        with pytest.raises(TypeError, match="bytes, text or a storage"):
            writer.write_record("y", data, 1)


def test_files_call_what_is_checked_by_our_names_too() -> None:
    class Calls:
        def __reduce__(self) -> Any:
            return _utils._rebuild_tensor_v2, (torch.ones(1), 0, (1,), (1,), False, None)

    class Other:
        def __reduce__(self) -> Any:
            return _utils._element_size, (torch.half,)

    for hostile, problem in ((Calls(), "not a storage"), (Other(), "_element_size")):
        file = io.BytesIO()
        Saver(file).save(hostile)
        with pytest.raises(pickle.UnpicklingError, match=problem):
            torch.load(file)
