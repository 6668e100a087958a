"""Checkpoints of one process: what they hold, and what damaged ones do."""

from __future__ import annotations

import json
import math
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight.distributed.checkpoint import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from rushlight.distributed.checkpoint.metadata import TensorStorageMetadata
from rushlight.utils import safetensors

VALUES: dict[str, Any] = {
    "number": 3,
    "text": "a\n",
    "nothing": None,
    "bounds": (math.inf, -math.inf, 1 + 2j),
    "bytes": b"\x00\xff",
    "kinds": [torch.float16, torch.device("cpu"), {1, 2}, torch.Size([2])],
    "table": {1: "one", "!": "tag"},
}


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    tensors = {
        "half": torch.arange(3.0).to(torch.bfloat16),
        "flags": torch.tensor([True, False]),
        "number": torch.tensor(7),
        "empty": torch.ones(0, 3),
        "turned": torch.arange(6).view(2, 3).T,
    }
    tensors["again"] = tensors["half"]
    dcp.save({"v": VALUES, "t": tensors, "l": [torch.ones(1), {"x": 1}]}, checkpoint_id=tmp_path)
    zeros = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    state: dict[str, Any] = {
        "v": dict.fromkeys(VALUES),
        "t": zeros,
        "l": [torch.zeros(1), {"x": 0}],
    }
    state["v"]["table"] = {1: None, "!": None}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["v"] == VALUES and state["l"] == [torch.ones(1), {"x": 1}]
    assert type(state["v"]["bounds"]) is tuple
    for name, tensor in tensors.items():
        assert state["t"][name] is zeros[name] and torch.equal(zeros[name], tensor)


def test_tensors_without_elements_are_refused(tmp_path: Path) -> None:
    with pytest.raises(dcp.CheckpointException, match="save: a.b is on meta"):
        dcp.save({"a": {"b": torch.ones(2, device="meta")}}, checkpoint_id=tmp_path)


def test_objects_save_and_load_their_state(tmp_path: Path) -> None:
    model, other = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    dcp.save({"model": model, "step": 5}, storage_writer=dcp.FileSystemWriter(tmp_path))
    state = {"model": other, "step": 0}
    dcp.load(state, storage_reader=dcp.FileSystemReader(tmp_path))
    assert state["model"] is other and state["step"] == 5
    assert torch.equal(model.weight, other.weight)


def test_a_save_replaces_the_one_before(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        dcp.async_save({"x": torch.full((2,), value)}, checkpoint_id=tmp_path).result()
    assert len(os.listdir(tmp_path)) == 2
    state = {"x": torch.zeros(2)}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [2.0, 2.0]
    writer = dcp.FileSystemWriter(tmp_path, overwrite=False)
    with pytest.raises(dcp.CheckpointException, match="overwrite is False"):
        dcp.save(state, storage_writer=writer)


class Slow(dcp.FileSystemWriter):
    """Waits before it says that the tensors are written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.may_end = threading.Event()

    def write_data(self, *args: Any) -> Any:
        written = super().write_data(*args)
        self.may_end.wait()
        return written


def test_saves_that_are_begun_are_written_one_after_the_other(tmp_path: Path) -> None:
    writer = Slow(tmp_path)
    state: dict[str, Any] = {"x": torch.ones(2), "seen": [1]}
    first = dcp.async_save(state, storage_writer=writer)
    assert not first.cancel()
    state["seen"].append(2)
    second = dcp.async_save({"x": torch.full((2,), 2.0), "seen": []}, checkpoint_id=tmp_path)
    threading.Timer(0.2, writer.may_end.set).start()
    dcp.save({"x": torch.full((2,), 3.0), "seen": [3]}, checkpoint_id=tmp_path)
    assert sorted(first.result().state_dict_metadata) == ["seen", "x"] and second.done()
    state = {"x": torch.zeros(2), "seen": None}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [3.0, 3.0] and state["seen"] == [3]


def test_an_error_goes_to_other_processes() -> None:
    error = pickle.loads(pickle.dumps(dcp.CheckpointException("save", {1: "OSError: full"})))
    assert str(error) == "save: rank 1: OSError: full" and error.failures == {1: "OSError: full"}


def test_an_optimizer_stays_as_it_was_if_it_cannot_step() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5)
    with pytest.raises(TypeError, match="closure"):
        dcp.state_dict.get_optimizer_state_dict(model, optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.5 and model.weight.grad is None


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    dcp.save({"x": torch.ones(2), "y": 1}, checkpoint_id=tmp_path)
    state: dict[str, Any] = {"x": torch.zeros(2)}
    dcp.load(state, checkpoint_id=tmp_path)
    state["z"] = 4
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint state_dict: z"):
        dcp.load(state, checkpoint_id=tmp_path)
    dcp.load(state, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert state["z"] == 4


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"x": object()}, "x is <object.*no pickled objects"),
        ({"x": {"y": [len]}}, "x.y is "),
        ({"x": {1: 2}, "x.1": 3}, "two values have the key x.1"),
        ({"x": torch.ones(2).to_sparse()}, "sparse_coo"),
    ],
)
def test_what_cannot_be_saved_is_told(tmp_path: Path, state: Any, message: str) -> None:
    with pytest.raises(dcp.CheckpointException, match=message):
        dcp.save(state, checkpoint_id=tmp_path)
    assert not (tmp_path / "metadata.json").exists()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"x": torch.ones(3)}, "Size mismatch between saved"),
        ({"x": torch.ones(2, device="meta")}, "x is on meta"),
        ({"y": (0, {"a": 0})}, "Missing key in checkpoint state_dict: y"),
    ],
)
def test_what_cannot_be_filled_is_told(tmp_path: Path, state: Any, message: str) -> None:
    dcp.save({"x": torch.ones(2), "y": [1, {"a": 2}]}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match=message):
        dcp.load(state, checkpoint_id=tmp_path)


def damage(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        content = json.loads((folder / "metadata.json").read_text())
        change(content)
        (folder / "metadata.json").write_text(json.dumps(content))

    return apply


def part(content: dict[str, Any]) -> dict[str, Any]:
    return content["tensors"]["x"]["parts"][0]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "metadata.json").unlink(),
        lambda folder: (folder / "metadata.json").write_text("{"),
        lambda folder: (folder / "metadata.json").write_text("[" * 100_000),
        lambda folder: (folder / "metadata.json").write_bytes(b"\xff\xfe"),
        lambda folder: [file.unlink() for file in folder.glob("part-*")],
        lambda folder: [file.write_bytes(b"short") for file in folder.glob("part-*")],
        damage(lambda c: c.update(version=99)),
        damage(lambda c: c.pop("tensors")),
        damage(lambda c: c["tensors"].update(x=3)),
        damage(lambda c: c["tensors"]["x"].update(dtype="torch.load")),
        damage(lambda c: c["tensors"]["x"].update(parts=[])),
        damage(lambda c: part(c).update(file="../metadata.json")),
        damage(lambda c: part(c).update(offsets=[1])),
        damage(lambda c: c["tensors"]["x"].update(parts=2 * [part(c) | {"shape": [2]}])),
        damage(lambda c: part(c).update(offsets=[-1])),
        damage(lambda c: part(c).update(shape=[2**62])),
        damage(lambda c: part(c).update(shape=[])),
        damage(lambda c: part(c).update(name="y")),
        damage(lambda c: c["values"].update(y={"!": "exec", "value": "1"})),
        damage(lambda c: c["values"].update(y={"!": "bytes", "value": "???"})),
    ],
)
def test_a_damaged_checkpoint_raises(tmp_path: Path, change: Callable[[Path], Any]) -> None:
    dcp.save({"x": torch.ones(4), "y": 1}, checkpoint_id=tmp_path)
    change(tmp_path)
    with pytest.raises(dcp.CheckpointException):
        dcp.load({"x": torch.zeros(4), "y": 0}, checkpoint_id=tmp_path)


class Attack:
    def __reduce__(self) -> Any:
        return os.mkdir, ("attacked",)


@pytest.mark.parametrize("content", [pickle.dumps(Attack()), b"", b"\x80\x04N.", b"no pickle"])
def test_a_pickle_of_pytorch_runs_no_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".metadata").write_bytes(content)
    with pytest.raises(dcp.CheckpointException):
        dcp.load({"x": torch.zeros(4)}, checkpoint_id=tmp_path)
    assert not (tmp_path / "attacked").exists()


def test_files_of_several_saves_are_not_mixed(tmp_path: Path) -> None:
    parts = HuggingFaceStorageWriter(str(tmp_path), save_distributed=True)
    old = tmp_path / "shard-00002-model-00001-of-00001.safetensors"
    safetensors.save_file({"x": torch.zeros(3)}, old)
    dcp.save({"x": torch.ones(3)}, storage_writer=parts)
    assert not old.exists() and len(os.listdir(tmp_path)) == 1
    for files in {}, {"x": 2}:
        writer = HuggingFaceStorageWriter(str(tmp_path), files)
        dcp.save({"x": torch.ones(3)}, storage_writer=writer)
    reader = HuggingFaceStorageReader(str(tmp_path))
    with pytest.raises(dcp.CheckpointException, match="have the same elements of x. Remove"):
        dcp.load({"x": torch.zeros(3)}, storage_reader=reader)


class Cut(dcp.FileSystemReader):
    def read_data(self, *args: Any) -> Any:
        raise EOFError("Ran out of input")


def test_whatever_goes_wrong_is_told_alike(tmp_path: Path) -> None:
    dcp.save({"x": torch.ones(3)}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="rank 0: EOFError: Ran out"):
        dcp.load({"x": torch.ones(3)}, storage_reader=Cut(tmp_path))


def test_complex_numbers_of_either_width_are_kept(tmp_path: Path) -> None:
    state = {
        "single": torch.randn(3, dtype=torch.complex64),
        "double": torch.randn(2, 3, dtype=torch.complex128).T,
        "one": torch.tensor(1 + 2j, dtype=torch.complex128),
        "none": torch.empty(0, 2, dtype=torch.complex128),
    }
    dcp.save(state, checkpoint_id=tmp_path)
    loaded = {key: torch.zeros_like(value) for key, value in state.items()}
    dcp.load(loaded, checkpoint_id=tmp_path)
    for key, value in state.items():
        assert torch.equal(loaded[key], value)
    narrow = {"double": torch.zeros(3, 2, dtype=torch.complex64)}
    dcp.load(narrow, checkpoint_id=tmp_path)
    assert torch.equal(narrow["double"], state["double"].to(torch.complex64))


def test_a_place_must_be_given() -> None:
    for call in (dcp.save, dcp.load):
        with pytest.raises(RuntimeError, match="needs a checkpoint_id"):
            call({})
    with pytest.raises(TypeError, match="such as FileSystemWriter"):
        dcp.save({}, storage_writer="here")


def test_a_folder_of_safetensors_is_read_by_the_names_of_tensors(tmp_path: Path) -> None:
    reader = HuggingFaceStorageReader(str(tmp_path))
    target = {"x": torch.zeros(3)}
    with pytest.raises(dcp.CheckpointException, match="there are no .safetensors files"):
        dcp.load(target, storage_reader=reader)
    writer = HuggingFaceStorageWriter(str(tmp_path))
    with pytest.raises(dcp.CheckpointException, match="step are no tensors"):
        dcp.save({"x": torch.ones(3), "step": 1}, storage_writer=writer)
    assert os.listdir(tmp_path) == []
    safetensors.save_file({"x": torch.arange(3.0)}, tmp_path / "model.safetensors")
    dcp.load(target, storage_reader=reader)
    assert target["x"].tolist() == [0, 1, 2]
    found = reader.read_metadata().state_dict_metadata
    assert list(found) == ["x"] and isinstance(found["x"], TensorStorageMetadata)
    assert found["x"].size == (3,) and found["x"].properties.dtype is torch.float32
    assert [(chunk.offsets, chunk.sizes) for chunk in found["x"].chunks] == [((0,), (3,))]
    safetensors.save_file({"x": torch.ones(3)}, tmp_path / "model.safetensors")
    dcp.load(target, storage_reader=reader)
    assert target["x"].tolist() == [1, 1, 1]
    with pytest.raises(dcp.CheckpointException, match="no file for x"):
        dcp.save(target, storage_writer=HuggingFaceStorageWriter(str(tmp_path), {"y": 1}))


@pytest.mark.parametrize(
    "offsets",
    ["no json", "[]", '{"x": {}}', '{"x": {"saved_offsets": [-1]}}', '{"x": 3}', "null"],
)
def test_damaged_offsets_are_refused(tmp_path: Path, offsets: str) -> None:
    texts = {"DCP_SHARDING_INFO": offsets}
    safetensors.save_file({"x": torch.ones(2)}, tmp_path / "model.safetensors", texts)
    with pytest.raises(dcp.CheckpointException, match="cannot read DCP_SHARDING_INFO"):
        dcp.load({"x": torch.ones(2)}, storage_reader=HuggingFaceStorageReader(str(tmp_path)))


@pytest.mark.parametrize("offsets", [[1], [1, 0], [2**61]])
def test_parts_that_do_not_make_a_whole_are_refused(tmp_path: Path, offsets: list[int]) -> None:
    texts = {"DCP_SHARDING_INFO": json.dumps({"x": {"saved_offsets": offsets}})}
    safetensors.save_file({"x": torch.ones(2)}, tmp_path / "model.safetensors", texts)
    for state in ({"x": torch.ones(3)}, {"x": 0}):
        with pytest.raises(dcp.CheckpointException):
            dcp.load(state, storage_reader=HuggingFaceStorageReader(str(tmp_path)))
