"""Checkpoints in folders and in single files, and the older names of save and load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight.distributed.checkpoint import format_utils
from rushlight.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from rushlight.distributed.checkpoint.state_dict_loader import _load_state_dict


def state() -> dict[str, Any]:
    return {
        "model": {"layer.weight": torch.arange(6.0).view(2, 3), "layer.bias": torch.ones(3)},
        "list": [{"lr": 0.1}, torch.tensor(3), [torch.zeros(2), "text"]],
        "pair": (torch.ones(2), [torch.zeros(1)]),
        "step": 7,
    }


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b)
    else:
        assert a == b


def test_a_folder_becomes_a_file_and_a_folder_again(tmp_path: Path) -> None:
    dcp.save(state(), checkpoint_id=tmp_path / "a")
    format_utils.dcp_to_torch_save(tmp_path / "a", tmp_path / "file")
    assert_same(torch.load(tmp_path / "file"), state())
    format_utils.torch_save_to_dcp(tmp_path / "file", tmp_path / "b")
    format_utils.dcp_to_torch_save(tmp_path / "b", tmp_path / "again")
    assert_same(torch.load(tmp_path / "again"), state())


@pytest.mark.parametrize("key", ["model", "model.layer.weight"])
def test_parts_of_a_checkpoint_are_read_into_an_empty_dict(tmp_path: Path, key: str) -> None:
    dcp.save(state(), checkpoint_id=tmp_path)
    found: dict[str, Any] = {}
    _load_state_dict(
        found, dcp.FileSystemReader(tmp_path), planner=_EmptyStateDictLoadPlanner(keys={key})
    )
    expected = state()["model"]
    if key != "model":
        expected.pop("layer.bias")
    assert_same(found, {"model": expected})


def test_a_damaged_path_is_told(tmp_path: Path) -> None:
    dcp.save({"a": {"b": 1, "c": 2}}, checkpoint_id=tmp_path)
    file = tmp_path / "metadata.json"
    text = file.read_text()
    assert text.count('["a", "c"]') == 1
    file.write_text(text.replace('["a", "c"]', '["a", "b"]'))
    with pytest.raises(dcp.CheckpointException, match=r"the path .* is taken"):
        format_utils.dcp_to_torch_save(tmp_path, tmp_path / "file")
    file.write_text(text.replace('["a", "c"]', "[]"))
    with pytest.raises(dcp.CheckpointException, match="is no path"):
        format_utils.dcp_to_torch_save(tmp_path, tmp_path / "file")


def test_a_file_fills_a_state_dict(tmp_path: Path) -> None:
    torch.save(state(), tmp_path / "file")
    wanted = {"model": {"layer.weight": torch.zeros(2, 3)}, "step": 0}
    reader = format_utils.BroadcastingTorchSaveReader()
    planner = format_utils.DynamicMetaLoadPlanner()
    dcp.load(wanted, checkpoint_id=tmp_path / "file", storage_reader=reader, planner=planner)
    assert torch.equal(wanted["model"]["layer.weight"], state()["model"]["layer.weight"])
    assert wanted["step"] == 7
    with pytest.raises(dcp.CheckpointException, match="cannot read"):
        dcp.load(wanted, checkpoint_id=tmp_path / "none", storage_reader=reader)


def test_older_names_warn(tmp_path: Path) -> None:
    with pytest.warns(FutureWarning, match="use `save`"):
        dcp.save_state_dict({"x": torch.ones(2)}, dcp.FileSystemWriter(tmp_path))
    found = {"x": torch.zeros(2)}
    with pytest.warns(FutureWarning, match="use `load`"):
        dcp.load_state_dict(found, dcp.FileSystemReader(tmp_path))
    assert torch.equal(found["x"], torch.ones(2))


def test_the_state_of_an_optimizer_is_read_alone(tmp_path: Path) -> None:
    moments = {"w": {"exp_avg": torch.ones(2), "step": torch.tensor(3.0)}}
    saved = {"model": {"w": torch.ones(2)}, "optim": {"state": moments, "lr": 0.1}}
    dcp.save(saved, checkpoint_id=tmp_path)
    found = dcp.load_sharded_optimizer_state_dict(
        saved["model"], "optim", dcp.FileSystemReader(tmp_path)
    )
    assert_same(found, {"optim": saved["optim"]})
