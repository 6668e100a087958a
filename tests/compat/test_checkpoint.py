"""Programs with planners and storage of their own, here and over PyTorch's gloo on two ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
from compat.ranks import check_agreement, results_of

pytest.importorskip("torch")

PROGRAM = r"""
import dataclasses, importlib, io, json, logging, sys, warnings
framework, path, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch = importlib.import_module(framework)
dist = importlib.import_module(framework + ".distributed")
T = importlib.import_module(framework + ".distributed.tensor")
dcp = importlib.import_module(framework + ".distributed.checkpoint")
default, kinds, planners, storage, nested, helpers, utils = (
    importlib.import_module(f"{framework}.distributed.checkpoint.{name}")
    for name in ("default_planner", "metadata", "planner", "storage", "_nested_dict",
                 "planner_helpers", "utils"))
Future = importlib.import_module(framework + ".futures").Future
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
torch.set_num_threads(1)
dist.init_process_group("gloo", f"file://{path}-{framework}", rank=rank, world_size=2)
mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
results = {}

def tree(value):
    if isinstance(value, T.DTensor):
        value = value.full_tensor()
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).split(".")[-1]
        return [list(value.shape), dtype, value.double().flatten().tolist()]
    if dataclasses.is_dataclass(value):
        return [type(value).__name__, *(tree(getattr(value, f.name))
                                        for f in dataclasses.fields(value))]
    if isinstance(value, dict):
        return {str(k): tree(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [tree(v) for v in value]
    if isinstance(value, (int, float, str, type(None))):
        return value
    return str(value).replace(framework + ".", "torch.")

def error(name, call):
    try:
        call()
        results[name] = "nothing"
    except Exception as raised:
        results[name] = isinstance(raised, dcp.CheckpointException)
    except BaseException as raised:  # PyTorch's is one
        results[name] = isinstance(raised, dcp.CheckpointException)

def cut(tensor, *placements):
    return T.distribute_tensor(tensor, mesh, placements or [T.Shard(0)])

def state():
    return {"model": {"rows": cut(torch.arange(15.0).view(5, 3)),
                      "copied": cut(torch.arange(4.0), T.Replicate()), "plain": torch.ones(3)},
            "list": [{"lr": 0.5}, torch.tensor(3)], "step": 7, "table": {1: [1, 2]}}

def blank():
    return {"model": {"rows": cut(torch.zeros(5, 3), T.Shard(1)),
                      "copied": torch.zeros(4), "plain": torch.zeros(3)},
            "list": [{"lr": 0.0}, torch.tensor(0)], "step": 0, "table": {"1": None}}

# Storage in memory: what each rank writes, all get.
LOG = []

class Writer(storage.StorageWriter):
    def __init__(self, shelf):
        self.shelf, self.given = shelf, None
    def reset(self, checkpoint_id=None):
        LOG.append(["reset", checkpoint_id])
    def storage_meta(self):
        return kinds.StorageMeta(checkpoint_id="shelf", save_id="s")
    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        LOG.append(["set up writer", is_coordinator])
    def prepare_local_plan(self, plan):
        LOG.append(["local", len(plan.items)])
        return dataclasses.replace(plan, storage_data=f"rank {rank}")
    def prepare_global_plan(self, plans):
        LOG.append(["global", [[len(p.items), p.storage_data] for p in plans]])
        return [dataclasses.replace(p, storage_data=[p.storage_data, i])
                for i, p in enumerate(plans)]
    def write_data(self, plan, planner):
        LOG.append(["write", plan.storage_data, sorted(item.index.fqn for item in plan.items)])
        written = []
        for item in plan.items:
            data = planner.resolve_data(item)
            if isinstance(data, torch.Tensor):
                data = data.detach().clone()
            else:
                LOG.append(["bytes", data.tell() > 0])
                data = data.getvalue()
            written.append(storage.WriteResult(item.index, len(data) if data is bytes else 1, data))
        future = Future()
        future.set_result(written)
        return future
    def finish(self, metadata, results):
        LOG.append(["finish", [sorted(r.index.fqn for r in every) for every in results]])
        metadata.storage_data = {r.index: r.storage_data for every in results for r in every}
        self.shelf["metadata"] = metadata
    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True

class Reader(storage.StorageReader):
    def __init__(self, shelf):
        self.shelf = shelf
    def reset(self, checkpoint_id=None):
        LOG.append(["reset reader", checkpoint_id])
    def read_metadata(self, *args, **kwargs):
        return self.shelf["metadata"]
    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        LOG.append(["set up reader", is_coordinator, len(metadata.state_dict_metadata)])
        self.data = metadata.storage_data
    def prepare_local_plan(self, plan):
        return dataclasses.replace(plan, storage_data=rank)
    def prepare_global_plan(self, plans):
        LOG.append(["global", [[len(p.items), p.storage_data] for p in plans]])
        return plans
    def read_data(self, plan, planner):
        for item in plan.items:
            data = self.data[item.storage_index]
            if item.type == planners.LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(data))
                continue
            target = planner.resolve_tensor(item).detach()
            for dim, (offset, length) in enumerate(zip(item.storage_offsets, item.lengths)):
                data = data.narrow(dim, offset, length)
            target.copy_(data)
            planner.commit_tensor(item, target)
        future = Future()
        future.set_result(None)
        return future
    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True

shelf = {}
saved = dcp.save(state(), checkpoint_id="there", storage_writer=Writer(shelf))
told = [shelf.get("metadata")]
dist.broadcast_object_list(told, 0)
shelf["metadata"] = told[0]
results["metadata"] = [tree(saved.state_dict_metadata), tree(saved.planner_data),
                       sorted(map(str, map(tree, shelf["metadata"].storage_data)))]
target = blank()
dcp.load(target, storage_reader=Reader(shelf))
results["loaded"] = tree(target)
found = {}
planner = default._EmptyStateDictLoadPlanner(keys={"list", "step"})
importlib.import_module(dcp.__name__ + ".state_dict_loader")._load_state_dict(
    found, Reader(shelf), planner=planner)
results["into nothing"] = tree(found)
results["log"] = LOG

# Planners of one's own, on the folders of each framework.
class Renamed(dcp.DefaultSavePlanner):
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        results["told"] = [type(storage_meta).__name__, is_coordinator]
        super().set_up_planner({"new_" + k: v for k, v in state_dict.items()}, storage_meta,
                               is_coordinator)

class Half(dcp.DefaultSavePlanner):
    def create_local_plan(self):
        plan = super().create_local_plan()
        items = []
        for item in plan.items:
            if item.tensor_data is not None:
                properties = dataclasses.replace(item.tensor_data.properties, dtype=torch.float16)
                data = dataclasses.replace(item.tensor_data, properties=properties)
                item = dataclasses.replace(item, tensor_data=data)
            items.append(item)
        return dataclasses.replace(plan, items=items)
    def transform_object(self, write_item, object):
        if write_item.type != planners.WriteItemType.BYTE_IO:
            object = object.half()
        return super().transform_object(write_item, object)

class Marked(dcp.DefaultSavePlanner):
    def create_global_plan(self, all_plans):
        plans, metadata = super().create_global_plan(all_plans)
        results["plans"] = [sorted(tree(i.index)[1] for i in p.items) for p in plans]
        return plans, dataclasses.replace(metadata, planner_data=["mark", len(plans)])

class Counting(dcp.DefaultLoadPlanner):
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        self.done = []
        super().set_up_planner(state_dict, metadata, is_coordinator)
    def load_bytes(self, read_item, value):
        self.done.append([read_item.dest_index.fqn, "bytes"])
        super().load_bytes(read_item, value)
    def commit_tensor(self, read_item, tensor):
        self.done.append([read_item.dest_index.fqn, list(tensor.shape),
                          list(read_item.dest_offsets), list(read_item.storage_offsets),
                          list(read_item.lengths)])

class Old(dcp.DefaultLoadPlanner):
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        self.original_state_dict = state_dict
        renamed = {"new_" + k: v for k, v in state_dict.items()}
        self.state_dict, self.mappings = nested.flatten_state_dict(renamed)
        self.metadata, self.is_coordinator = metadata, is_coordinator
    def load_bytes(self, read_item, value):
        if "step" in read_item.dest_index.fqn:
            self.original_state_dict["step"] = torch.load(value, weights_only=True)

lowest = dcp.DefaultSavePlanner(dedup_save_to_lowest_rank=True)
for planner in (Renamed(), Half(), Marked(), lowest):
    name = type(planner).__name__
    folder = f"{path}-{framework}-{name}"
    saved = dcp.save(state(), checkpoint_id=folder, planner=planner)
    results["saved " + name] = [tree(saved.state_dict_metadata), tree(saved.planner_data)]
    reader = dcp.FileSystemReader(folder)
    results["paths " + name] = tree(reader.read_metadata().planner_data)
    target = blank()
    counting = Counting()
    if name == "Renamed":
        dcp.load(target, storage_reader=reader, planner=Old())
        target.pop("list"), target.pop("table")
    else:
        dcp.load(target, storage_reader=reader, planner=counting)
        results["reads " + name] = sorted(counting.done, key=str)
    results["read " + name] = tree(target)
    results["stored " + name] = sorted(str(tree(i)) for i in reader.storage_data)

whole = dcp.DefaultSavePlanner(flatten_state_dict=False)
dcp.save({"a": {"b": 1, "c": [2.5]}, "x": torch.ones(2)}, checkpoint_id=f"{path}-{framework}-whole",
         planner=whole)
target = {"a": None, "x": torch.zeros(2)}
dcp.load(target, checkpoint_id=f"{path}-{framework}-whole",
         planner=dcp.DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False))
results["not flattened"] = tree(target)

# The parts that planners are made of.
flat, paths = nested.flatten_state_dict(state())
results["flat"] = [tree(flat), tree(paths)]
plan = default.create_default_local_save_plan(flat, rank == 0)
results["local save plan"] = tree(plan)
results["sizes"] = [item.tensor_storage_size() for item in plan.items]
plans, metadata = default.create_default_global_save_plan([plan]) if rank == 0 else (None, None)
results["global save plan"] = [tree(plans), tree(metadata)]
if rank == 0:
    mine = {"model.rows": flat["model.rows"], "step": 0}
    results["local load plan"] = tree(default.create_default_local_load_plan(mine, metadata))
    wrong = {"step": 1, "list.1": torch.ones(2)}
    error("shape", lambda: default.create_default_local_load_plan(wrong, metadata))
    results["partial"] = tree(default.create_default_local_load_plan({"no": 1}, metadata, False))
index = kinds.MetadataIndex("model.rows", [0, 0])
results["index"] = [tree(index), index == kinds.MetadataIndex("model.rows", torch.Size([0, 0]), 3),
                    len({index, kinds.MetadataIndex("model.rows", (0, 0), 1)})]
results["object"] = [tree(utils.find_state_dict_object(flat, kinds.MetadataIndex("step"))),
                     tree(utils.find_state_dict_object(flat, plan.items[0].index))]
error("absent", lambda: utils.find_state_dict_object(flat, kinds.MetadataIndex("no")))
error("no part", lambda: utils.find_state_dict_object(flat, kinds.MetadataIndex("step", [0])))
try:
    storage.StorageWriter()
except TypeError:
    results["abstract"] = True

class Failing(dcp.DefaultSavePlanner):
    def resolve_data(self, write_item):
        raise OSError("no")

error("fails", lambda: dcp.save(state(), checkpoint_id=f"{path}-{framework}-f", planner=Failing()))
error("missing", lambda: dcp.load({"no": 1}, storage_reader=Reader(shelf)))
future = dcp.async_save(state(), storage_writer=Writer(shelf), planner=Marked())
results["async"] = tree(future.result().planner_data)
dist.destroy_process_group()
print(json.dumps(results))
"""


def test_planners_and_storage_are_asked_the_same(tmp_path: Path) -> None:
    theirs = results_of(PROGRAM, "torch", tmp_path / "checkpoint")
    ours = results_of(PROGRAM, "rushlight", tmp_path / "checkpoint")
    check_agreement(ours, theirs, lambda name: 1e-6)
