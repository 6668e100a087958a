"""Planners and storage that programs write for save and load."""

from __future__ import annotations

import io
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight.distributed.checkpoint._nested_dict import flatten_state_dict
from rushlight.distributed.checkpoint.default_planner import (
    create_default_global_save_plan,
    create_default_local_load_plan,
    create_default_local_save_plan,
)
from rushlight.distributed.checkpoint.metadata import MetadataIndex
from rushlight.distributed.checkpoint.planner import LoadItemType, WriteItemType
from rushlight.distributed.checkpoint.staging import DefaultStager, StagingOptions
from rushlight.distributed.checkpoint.state_dict_saver import (
    AsyncCheckpointerType,
    AsyncSaveResponse,
)
from rushlight.distributed.checkpoint.storage import WriteResult
from rushlight.distributed.checkpoint.utils import find_state_dict_object
from rushlight.futures import Future


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class Shelf(dcp.StorageWriter, dcp.StorageReader):
    """Keeps checkpoints in memory, by name."""

    def __init__(self) -> None:
        self.kept: dict[Any, dcp.Metadata] = {}
        self.name: Any = None

    def reset(self, checkpoint_id: Any = None) -> None:
        self.name = checkpoint_id

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        assert is_coordinator

    def prepare_local_plan(self, plan: Any) -> Any:
        return replace(plan, storage_data="local")

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        return [replace(plan, storage_data=[plan.storage_data, "global"]) for plan in plans]

    def write_data(self, plan: dcp.SavePlan, planner: dcp.SavePlanner) -> Future[Any]:
        assert plan.storage_data == ["local", "global"]
        results = []
        for item in plan.items:
            data = planner.resolve_data(item)
            kept = data.clone() if isinstance(data, torch.Tensor) else data.getvalue()
            results.append(WriteResult(item.index, 0, kept))
        return done(results)

    def finish(self, metadata: dcp.Metadata, results: list[list[WriteResult]]) -> None:
        metadata.storage_data = {r.index: r.storage_data for every in results for r in every}
        self.kept[self.name] = metadata

    def read_metadata(self, *args: Any, **kwargs: Any) -> dcp.Metadata:
        return self.kept[self.name]

    def set_up_storage_reader(
        self, metadata: dcp.Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self.data = metadata.storage_data

    def read_data(self, plan: dcp.LoadPlan, planner: dcp.LoadPlanner) -> Future[None]:
        assert plan.storage_data == ["local", "global"]
        for item in plan.items:
            data = self.data[item.storage_index]
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(data))
            else:
                target = planner.resolve_tensor(item).detach()
                target.copy_(data)
                planner.commit_tensor(item, target)
        return done(None)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return True


def test_storage_of_ones_own_keeps_a_checkpoint() -> None:
    shelf = Shelf()
    state = {"a": {"x": torch.arange(3.0), "n": 3}, "l": [torch.ones(2), {"k": "v"}]}
    saved = dcp.save(state, checkpoint_id="first", storage_writer=shelf)
    assert saved.planner_data["l.1.k"] == ("l", 1, "k")
    later = dcp.async_save(
        {"a": {"x": torch.zeros(3)}}, checkpoint_id="second", storage_writer=shelf
    )
    assert list(later.result().state_dict_metadata) == ["a.x"]
    target: dict[str, Any] = {
        "a": {"x": torch.zeros(3), "n": 0},
        "l": [torch.zeros(2), {"k": None}],
    }
    dcp.load(target, checkpoint_id="first", storage_reader=shelf)
    assert torch.equal(target["a"]["x"], torch.arange(3.0)) and target["a"]["n"] == 3
    assert torch.equal(target["l"][0], torch.ones(2)) and target["l"][1] == {"k": "v"}
    with pytest.raises(dcp.CheckpointException, match="KeyError: 'third'"):
        dcp.load(target, checkpoint_id="third", storage_reader=shelf)
    with pytest.raises(TypeError, match="abstract"):
        dcp.StorageReader()  # pyright: ignore[reportAbstractUsage]


class Renamed(dcp.DefaultSavePlanner):
    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: Any = None, is_coordinator: bool = False
    ) -> None:
        self.told = storage_meta.checkpoint_id, is_coordinator
        renamed = {f"new_{key}": value for key, value in state_dict.items()}
        super().set_up_planner(renamed, storage_meta, is_coordinator)


class Half(dcp.DefaultSavePlanner):
    def transform_object(self, write_item: dcp.WriteItem, object: Any) -> Any:
        if write_item.type is WriteItemType.BYTE_IO:
            return io.BytesIO(str(object).encode())
        return object.half()


class Texts(dcp.DefaultLoadPlanner):
    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Any = None, is_coordinator: bool = False
    ) -> None:
        super().set_up_planner(state_dict, metadata, is_coordinator)
        self.read: list[Any] = []

    def load_bytes(self, read_item: dcp.ReadItem, value: io.BytesIO) -> None:
        self.state_dict[read_item.dest_index.fqn] = value.read().decode()

    def commit_tensor(self, read_item: dcp.ReadItem, tensor: torch.Tensor) -> None:
        self.read.append((read_item.dest_index.fqn, tuple(tensor.shape)))


def test_a_planner_renames_what_is_saved(tmp_path: Path) -> None:
    planner = Renamed()
    dcp.save({"x": torch.ones(2), "n": 1}, checkpoint_id=tmp_path, planner=planner)
    assert planner.told == (tmp_path, True)
    target = {"new_x": torch.zeros(2), "new_n": 0}
    dcp.load(target, checkpoint_id=tmp_path)
    assert torch.equal(target["new_x"], torch.ones(2)) and target["new_n"] == 1


def test_planners_change_what_is_written_and_read(tmp_path: Path) -> None:
    state = {"x": torch.tensor([1.0, 1e-9]), "n": 12}
    dcp.save(state, checkpoint_id=tmp_path, planner=Half())
    planner = Texts()
    target = {"x": torch.zeros(2), "n": 0}
    dcp.load(target, checkpoint_id=tmp_path, planner=planner)
    assert target["x"].tolist() == [1, 0] and planner.state_dict["n"] == "12"
    assert planner.read == [("x", (2,))]


class Marked(dcp.DefaultSavePlanner):
    def create_global_plan(self, all_plans: list[Any]) -> Any:
        plans, metadata = super().create_global_plan(all_plans)
        return plans, replace(metadata, planner_data={"by": ("me", 1)})


def test_what_a_planner_adds_is_read_again(tmp_path: Path) -> None:
    dcp.save({"x": torch.ones(2)}, checkpoint_id=tmp_path, planner=Marked())
    assert dcp.FileSystemReader(tmp_path).read_metadata().planner_data == {"by": ("me", 1)}


def test_nested_values_may_stay_whole(tmp_path: Path) -> None:
    state = {"a": {"b": 1, "c": [torch.ones(2)]}, "x": torch.ones(2)}
    planner = dcp.DefaultSavePlanner(flatten_state_dict=False)
    saved = dcp.save(state, checkpoint_id=tmp_path, planner=planner)
    assert list(saved.state_dict_metadata) == ["a", "x"] and saved.planner_data is None
    target: dict[str, Any] = {"a": None, "x": torch.zeros(2)}
    reading = dcp.DefaultLoadPlanner(flatten_state_dict=False)
    dcp.load(target, checkpoint_id=tmp_path, planner=reading)
    assert target["a"]["b"] == 1 and torch.equal(target["a"]["c"][0], torch.ones(2))


class Tracing(dcp.FileSystemReader):
    """Says which files it will read, as readers that fetch them first do."""

    def read_data(self, plan: dcp.LoadPlan, planner: dcp.LoadPlanner) -> Future[None]:
        self.files = {self.storage_data[item.storage_index].relative_path for item in plan.items}
        assert all((self.path / file).exists() for file in self.files)
        return super().read_data(plan, planner)


def test_readers_of_folders_know_their_files(tmp_path: Path) -> None:
    writer = dcp.FileSystemWriter(tmp_path)
    for _ in range(2):  # one writer for several saves
        dcp.save({"x": torch.ones(2), "n": 1}, storage_writer=writer)
    reader = Tracing(tmp_path)
    dcp.load({"x": torch.zeros(2), "n": 0}, storage_reader=reader)
    assert len(reader.files) == 1 and reader.checkpoint_id == writer.checkpoint_id == tmp_path
    assert reader.validate_checkpoint_id(tmp_path / "new" / "folder")
    assert not writer.validate_checkpoint_id("s3://bucket/folder")


class Full(dcp.DefaultSavePlanner):
    def resolve_data(self, write_item: dcp.WriteItem) -> Any:
        raise OSError("disk is full")


def test_an_error_of_a_planner_is_told(tmp_path: Path) -> None:
    with pytest.raises(dcp.CheckpointException, match="save: rank 0: OSError: disk is full"):
        dcp.save({"x": torch.ones(2)}, checkpoint_id=tmp_path, planner=Full())
    assert not list(tmp_path.iterdir())
    planner = Texts()
    with pytest.raises(NotImplementedError, match="Texts has no resolve_bytes"):
        planner.resolve_bytes(None)  # pyright: ignore[reportArgumentType]


def test_plans_of_several_ranks_become_one() -> None:
    flat, _ = flatten_state_dict({"a": {"x": torch.ones(3), "y": torch.ones(2)}, "n": 1})
    plan = create_default_local_save_plan(flat, True)
    assert [item.tensor_storage_size() for item in plan.items] == [12, 8, None]
    planner = dcp.DefaultSavePlanner(flatten_state_dict=False)
    plans, metadata = planner.create_global_plan([plan, plan])
    assert [[item.index.fqn for item in p.items] for p in plans] == [["a.x"], ["a.y", "n"]]
    assert planner.finish_plan(plans[0]) is planner.plan
    first = dcp.DefaultSavePlanner(flatten_state_dict=False, dedup_save_to_lowest_rank=True)
    assert [len(p.items) for p in first.create_global_plan([plan, plan])[0]] == [3, 0]
    loads = create_default_local_load_plan(flat, metadata)
    assert [item.type.name for item in loads.items] == ["TENSOR", "TENSOR", "BYTE_IO"]
    other = create_default_local_save_plan({"n": torch.ones(2)}, False)
    with pytest.raises(ValueError, match=r"n is torch.float32 of shape \(2,\) on rank 1, but no"):
        planner.create_global_plan([plan, other])
    (item,) = other.items
    data = item.tensor_data
    assert data is not None
    half = replace(data, size=torch.Size([4]))
    short = dcp.SavePlan([replace(item, tensor_data=half)])
    with pytest.raises(ValueError, match="parts of n overlap, or are not all of its shape .4,"):
        planner.create_global_plan([short])
    first = replace(short.items[0], index=MetadataIndex("n", (1,)))
    with pytest.raises(ValueError, match="parts of n overlap"):  # 4 elements, the first two twice
        planner.create_global_plan([dcp.SavePlan([*short.items, first])])
    assert create_default_global_save_plan([other], False)[0] == [other]


def test_objects_are_found_by_index() -> None:
    state = {"x": torch.ones(2), "n": 1}
    assert find_state_dict_object(state, MetadataIndex("x", (0,))) is state["x"]
    assert MetadataIndex("x", (0,), 3) == MetadataIndex("x", torch.Size([0]))
    with pytest.raises(ValueError, match="there is no y"):
        find_state_dict_object(state, MetadataIndex("y"))
    with pytest.raises(ValueError, match="n is a int, of which there is no part at .0,"):
        find_state_dict_object(state, MetadataIndex("n", (0,)))


class Slow(DefaultStager):
    """Copies when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_begin = threading.Event()

    def stage(self, state_dict: dict[str, Any]) -> Any:
        assert self._executor is not None
        self._executor.submit(self.may_begin.wait)
        return super().stage(state_dict)


def test_a_stager_copies_what_is_written_later(tmp_path: Path) -> None:
    state, stager = {"x": torch.ones(2), "n": [1]}, Slow()
    told = dcp.async_save(state, checkpoint_id=tmp_path, async_stager=stager)
    assert isinstance(told, AsyncSaveResponse) and not told.staging_completion.done()
    state["x"].fill_(2)
    stager.may_begin.set()
    told.staging_completion.result()
    state["x"].fill_(3)
    told.upload_completion.result()
    target = {"x": torch.zeros(2), "n": None}
    dcp.load(target, checkpoint_id=tmp_path)
    assert target["x"].tolist() == [2, 2] and target["n"] == [1]
    stager.close()


class Staging(dcp.FileSystemWriter):
    """A writer that copies what it writes itself."""

    should_synchronize_after_execute = True
    _synchronize_after_execute = True

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        self.calls = ["stage"]
        return {key: value * 10 for key, value in state_dict.items()}

    def synchronize_staging(self) -> None:
        self.calls.append("synchronize")

    def close(self) -> None:
        raise AssertionError("it is the program's")


def test_writers_may_be_stagers(tmp_path: Path) -> None:
    writer, target = Staging(tmp_path), {"x": torch.zeros(2)}
    dcp.async_save({"x": torch.ones(2)}, storage_writer=writer, no_dist=True).result()
    dcp.load(target, checkpoint_id=tmp_path)
    assert target["x"].tolist() == [10, 10] and writer.calls == ["stage", "synchronize"]
    at_once = DefaultStager(StagingOptions(use_async_staging=False))
    assert isinstance(at_once.stage(target), dict) and at_once.should_synchronize_after_execute
    at_once.synchronize_staging()
    at_once.close()
    kind = AsyncCheckpointerType.PROCESS
    dcp.async_save(target, checkpoint_id=tmp_path, async_checkpointer_type=kind).result()
