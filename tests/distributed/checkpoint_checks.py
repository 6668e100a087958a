"""What each rank of a world checks of sharded checkpoints."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from distributed.fsdp_models import batches, loss_of, made, same, sharded, whole, wrapped

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight import distributed as dist
from rushlight.distributed.checkpoint.format_utils import BroadcastingTorchSaveReader
from rushlight.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from rushlight.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from rushlight.distributed.tensor import DTensor, Shard, distribute_tensor
from rushlight.nn.parallel import DistributedDataParallel
from rushlight.utils import safetensors


def step(model: Any, optimizer: Any, ids: Any) -> None:
    optimizer.zero_grad()
    loss_of(model, ids[dist.get_rank()]).backward()
    optimizer.step()


def adam(model: Any) -> Any:
    return torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.8, 0.9))


def saves(folder: str) -> None:
    """Leaves a trained model, and what it is after another step of one process, behind."""
    model = sharded(made())
    optimizer = adam(model)
    first, _ = batches(2)
    step(model, optimizer, first)
    states = get_state_dict(model, optimizer)
    saved = dcp.save(
        {"model": states[0], "optimizer": states[1], "epoch": 3, "name": ("a", 1.5)},
        checkpoint_id=f"{folder}/trained",
    )
    weight = saved.state_dict_metadata["model.embed.weight"]
    assert [tuple(part.sizes) for part in weight.chunks] == [(4, 6), (3, 6)]
    files = sorted(os.listdir(f"{folder}/trained"))
    assert len(files) == 3 and files[0] == "metadata.json"
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    if dist.get_rank() == 0:
        torch.save(full, f"{folder}/full.pt")


def loads(folder: str) -> None:
    """Reads what `saves` left, with any number of ranks, into modules sharded in any way."""
    full = torch.load(f"{folder}/full.pt")
    trained = made()
    trained.load_state_dict(full)
    plain = made()
    for model in (sharded(made()), wrapped(), DistributedDataParallel(plain)):
        optimizer = adam(model)
        states = get_state_dict(model, optimizer)
        state = {"model": states[0], "optimizer": states[1], "epoch": 0, "name": None}
        dcp.load(state, checkpoint_id=f"{folder}/trained")
        assert (state["epoch"], state["name"]) == (3, ("a", 1.5))
        keys = set_state_dict(
            model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
        assert not keys.missing_keys and not keys.unexpected_keys
        same(plain if isinstance(model, DistributedDataParallel) else model, trained)
        assert optimizer.param_groups[0]["betas"] == (0.8, 0.9)
        moments = {tuple(whole(s["exp_avg"]).shape) for s in optimizer.state.values()}
        assert (7, 6) in moments and all(s["step"] == 1 for s in optimizer.state.values())


def trains_on_from_a_checkpoint(folder: str) -> None:
    model = sharded(made())
    optimizer = adam(model)
    first, second = batches(2)
    step(model, optimizer, first)
    states = get_state_dict(model, optimizer)
    writing = dcp.async_save({"m": states[0], "o": states[1]}, checkpoint_id=f"{folder}/later")
    step(model, optimizer, second)  # changes what is being written
    assert isinstance(writing.result(), dcp.Metadata)
    dcp.async_save({"x": torch.ones(1)}, checkpoint_id=f"{folder}/other").result()
    other = wrapped()
    its_optimizer = adam(other)
    states = get_state_dict(other, its_optimizer)
    state = {"m": states[0], "o": states[1]}
    dcp.load(state, checkpoint_id=f"{folder}/later")
    set_state_dict(other, its_optimizer, model_state_dict=state["m"], optim_state_dict=state["o"])
    step(other, its_optimizer, second)
    reference = made()
    reference.load_state_dict(other.state_dict())
    same(model, reference)


def options_of_state_dicts(folder: str) -> None:
    rank = dist.get_rank()
    model = sharded(made())
    optimizer = adam(model)
    step(model, optimizer, batches(1)[0])
    assert isinstance(get_model_state_dict(model)["head.bias"], DTensor)
    on_cpu = StateDictOptions(full_state_dict=True, cpu_offload=True)
    full, states = get_state_dict(model, optimizer, options=on_cpu)
    assert bool(full) == bool(states) == (rank == 0)
    meta: Any = torch.device("meta")
    with meta:
        other: Any = made()
    sharded(other, dist.init_device_mesh("cpu", (dist.get_world_size(),)))
    from_first = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(other, full, options=from_first)
    its_optimizer = adam(other)
    set_optimizer_state_dict(other, its_optimizer, states, options=from_first)
    for mine, param in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(whole(mine), whole(param))
        moment = its_optimizer.state[mine]["exp_avg"]
        assert isinstance(moment, DTensor) and moment.placements == mine.placements
        assert torch.equal(whole(moment), whole(optimizer.state[param]["exp_avg"]))
    flat = StateDictOptions(flatten_optimizer_state_dict=True)
    states = get_optimizer_state_dict(model, optimizer, options=flat)
    assert states["param_groups.head.bias.lr"] == 0.01 and "state.head.bias.exp_avg" in states
    fresh = adam(model)
    set_optimizer_state_dict(model, fresh, states, options=flat)
    assert torch.equal(
        whole(fresh.state[model.head.bias]["exp_avg"]),
        whole(optimizer.state[model.head.bias]["exp_avg"]),
    )
    model.blocks[0].requires_grad_(False)
    kept = get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))
    assert "head.bias" in kept and "blocks.0.up.weight" not in kept
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        StateDictOptions(broadcast_from_rank0=True)
    with pytest.raises(RuntimeError, match="that the model does not have"):
        get_optimizer_state_dict(other, optimizer)


def what_is_loaded_may_lie_otherwise(folder: str) -> None:
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    values = torch.arange(35.0).view(7, 5)
    state = {"rows": distribute_tensor(values, mesh, [Shard(0)]), "copies": values * 2}
    dcp.save(state, checkpoint_id=f"{folder}/cut")
    target: dict[str, Any] = {
        "rows": distribute_tensor(torch.zeros(7, 5), mesh, [Shard(1)]),
        "copies": distribute_tensor(torch.zeros(7, 5), mesh, [Shard(0)]),
    }
    dcp.load(target, checkpoint_id=f"{folder}/cut")
    assert torch.equal(target["rows"].full_tensor(), values)
    assert torch.equal(target["copies"].full_tensor(), values * 2)
    plain = {"rows": torch.zeros(7, 5, dtype=torch.float64)}
    dcp.load(plain, checkpoint_id=f"{folder}/cut")
    assert torch.equal(plain["rows"], values.double())


def files_of_tensors_by_name(folder: str) -> None:
    """What HuggingFaceStorageWriter writes, any reader of safetensors reads."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    values = torch.arange(35.0).view(7, 5)
    state = {"rows": distribute_tensor(values, mesh, [Shard(0)]), "copy": values * 2}
    parts, together = f"{folder}/parts", f"{folder}/together"
    dcp.save(state, storage_writer=HuggingFaceStorageWriter(parts, save_distributed=True))
    names = {f"shard-{r + 1:05d}-model-00001-of-00001.safetensors" for r in range(mesh.size())}
    assert set(os.listdir(parts)) == names
    target: dict[str, Any] = {
        "rows": distribute_tensor(torch.zeros(7, 5), mesh, [Shard(1)]),
        "copy": torch.zeros(7, 5),
    }
    dcp.load(target, storage_reader=HuggingFaceStorageReader(parts))
    assert torch.equal(target["rows"].full_tensor(), values)
    assert torch.equal(target["copy"], values * 2)
    writer = HuggingFaceStorageWriter(
        together, {"rows": 1, "copy": 2}, save_distributed=True, enable_consolidation=True
    )
    dcp.save(state, storage_writer=writer)
    first = safetensors.load_file(f"{together}/model-00001-of-00002.safetensors")
    assert list(first) == ["rows"] and torch.equal(first["rows"], values)
    assert os.path.exists(f"{together}/model.safetensors.index.json")
    with pytest.raises(dcp.CheckpointException, match="rows is in 2 parts. Pass save_dis"):
        dcp.save(state, storage_writer=HuggingFaceStorageWriter(f"{folder}/whole"))


def one_rank_reads_a_file_for_all(folder: str) -> None:
    """The others need not reach it; a file that cannot be read is told on all."""
    table = torch.arange(21.0).view(7, 3)
    here = f"{folder}/one{dist.get_rank()}.pt"
    if dist.get_rank() == 1:
        torch.save({"model": {"table": table}, "step": 3}, here)
    reader = BroadcastingTorchSaveReader(here, coordinator_rank=1)
    mesh = torch.distributed.init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"model": {"table": distribute_tensor(torch.zeros(7, 3), mesh, [Shard(0)])}, "step": 0}
    dcp.load(state, storage_reader=reader)
    assert state["step"] == 3 and torch.equal(state["model"]["table"].full_tensor(), table)
    with pytest.raises(dcp.CheckpointException, match="cannot read"):
        dcp.load(state, storage_reader=BroadcastingTorchSaveReader(f"{folder}/nothing.pt"))


def optimizers_are_read_as_the_model_lies(folder: str) -> None:
    """Of the states of parameters that are cut each rank reads its part."""
    mesh = torch.distributed.init_device_mesh("cpu", (dist.get_world_size(),))
    moment = torch.arange(21.0).view(7, 3)
    state = {"w": {"exp_avg": moment, "step": torch.tensor(2.0)}}
    dcp.save({"optim": {"state": state, "lr": 0.5}}, checkpoint_id=f"{folder}/moments")
    model = {"w": distribute_tensor(torch.zeros(7, 3), mesh, [Shard(0)])}
    found = dcp.load_sharded_optimizer_state_dict(
        model, "optim", dcp.FileSystemReader(f"{folder}/moments")
    )
    read = found["optim"]["state"]["w"]
    assert found["optim"]["lr"] == 0.5 and read["step"] == 2
    assert read["exp_avg"].placements == (Shard(0),)
    assert torch.equal(read["exp_avg"].full_tensor(), moment)


class Unsendable(dcp.DefaultSavePlanner):
    def create_local_plan(self) -> dcp.SavePlan:
        plan = super().create_local_plan()
        return replace(plan, storage_data=lambda: None) if dist.get_rank() == 1 else plan


def mistakes_are_told_on_all_ranks(folder: str) -> None:
    with pytest.raises(dcp.CheckpointException, match="rank 0: TypeError: save: bad is <object"):
        dcp.save({"bad": object()}, checkpoint_id=f"{folder}/bad")
    with pytest.raises(dcp.CheckpointException, match="rank 0: ValueError: save: x is .* of shape"):
        dcp.save({"x": torch.ones(dist.get_rank() + 1)}, checkpoint_id=f"{folder}/bad")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    held = {"held": (distribute_tensor(torch.ones(4), mesh, [Shard(0)]),)}
    with pytest.raises(dcp.CheckpointException, match="held has a DTensor in a value"):
        dcp.save(held, checkpoint_id=f"{folder}/bad")
    with pytest.raises(dcp.CheckpointException, match=r"save: rank 1: \w+: .*<lambda>"):
        dcp.save({"x": torch.ones(2)}, checkpoint_id=f"{folder}/bad", planner=Unsendable())
    listed: Any = [torch.ones(2)]
    with pytest.raises(dcp.CheckpointException, match="rank 1: TypeError: save: .* is a list"):
        dcp.save(listed, checkpoint_id=f"{folder}/bad")
    with pytest.raises(TypeError, match="load: state_dict is a list"):
        dcp.load(listed, checkpoint_id=f"{folder}/bad")
    with open(f"{folder}/file", "w"):
        pass
    with pytest.raises(dcp.CheckpointException, match="rank 0: "):
        dcp.save({"x": torch.ones(2)}, checkpoint_id=f"{folder}/file/below")


OF_TWO = [
    saves,
    loads,
    trains_on_from_a_checkpoint,
    options_of_state_dicts,
    what_is_loaded_may_lie_otherwise,
    files_of_tensors_by_name,
    one_rank_reads_a_file_for_all,
    optimizers_are_read_as_the_model_lies,
    mistakes_are_told_on_all_ranks,
]
OF_FOUR = [loads, what_is_loaded_may_lie_otherwise, one_rank_reads_a_file_for_all]
