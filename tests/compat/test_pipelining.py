"""The same pipelines on two ranks, here and over PyTorch's gloo."""

from __future__ import annotations

from pathlib import Path

import pytest
from compat.ranks import check_agreement, results_of

pytest.importorskip("torch")

FRAMEWORKS = ("rushlight", "torch")

PROGRAM = r"""
import importlib, json, logging, sys, warnings
framework, path, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch = importlib.import_module(framework)
dist = importlib.import_module(framework + ".distributed")
P = importlib.import_module(framework + ".distributed.pipelining")
M = importlib.import_module(framework + ".distributed.pipelining.microbatch")
S = importlib.import_module(framework + ".distributed.pipelining.schedules")
fsdp = importlib.import_module(framework + ".distributed.fsdp")
nn, F = torch.nn, torch.nn.functional
DDP = nn.parallel.DistributedDataParallel
warnings.simplefilter("ignore")
logging.disable()
torch.set_num_threads(1)
dist.init_process_group("gloo", f"file://{path}-{framework}", rank=rank, world_size=2)
alone = [dist.new_group([r]) for r in range(2)][rank]
results = {}

def tree(value):
    if isinstance(value, torch.Tensor):
        value = value.full_tensor() if hasattr(value, "full_tensor") else value
        return [list(value.shape), value.detach().float().flatten().tolist()]
    if isinstance(value, dict):
        return {str(k): tree(v) for k, v in value.items()}
    return [tree(v) for v in value] if isinstance(value, (list, tuple)) else value

def grid(*shape):
    count = 1
    for n in shape:
        count *= n
    return torch.sin(torch.arange(float(count)) * 1.7).view(shape)

def error(name, call):
    try:
        call()
        results[name] = "nothing"
    except BaseException as e:
        kinds = AttributeError, NotImplementedError, TypeError, ValueError, RuntimeError
        results[name] = next(k.__name__ for k in kinds if isinstance(e, k))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(6), nn.Linear(6, 5), nn.Linear(5, 6)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

def filled(module):
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(grid(*p.shape) * 0.4 + 0.02 * i)
    return module

def blocks(count):
    return list(filled(nn.Sequential(*(Block() for _ in range(count)))))

def mine_of(name, per):
    return [rank, 3 - rank] if name == "ZBVZeroBubble" else list(range(rank, 2 * per, 2))

def schedule_of(name, parts, mine, n, **options):
    stages = [P.PipelineStage(parts[i], i, len(parts), torch.device("cpu")) for i in mine]
    kind = S.get_schedule_class(name)
    single = issubclass(kind, S.PipelineScheduleSingle)
    return kind(stages[0] if single else stages, n, **options)

def steps(name, schedule, parts, mine, x, y, count=2, **options):
    for step in range(count):
        losses = []
        out = schedule.step(*([x] if 0 in mine else []), losses=losses,
                            **({"target": y} if len(parts) - 1 in mine else {}), **options)
        results[f"{name} {step}"] = [tree(out), tree(losses)]
        results[f"{name} {step} gradients"] = {
            f"{i} {k}": tree(p.grad) for i in mine for k, p in parts[i].named_parameters()}
        for i in mine:
            parts[i].zero_grad()

x, y = grid(8, 3, 6), grid(8, 3, 6) * 0.3
CASES = [("GPipe", 1), ("1F1B", 1), ("LoopedBFS", 2), ("Interleaved1F1B", 2),
         ("InterleavedZeroBubble", 1), ("InterleavedZeroBubble", 2), ("ZBVZeroBubble", 2)]
for name, per in CASES:
    for n in (2, 4):
        for scale, loss_fn in ((True, F.mse_loss), (False, nn.MSELoss(reduction="sum"))):
            parts, mine = blocks(2 * per), mine_of(name, per)
            schedule = schedule_of(name, parts, mine, n, loss_fn=loss_fn, scale_grads=scale)
            key = f"{name} {per} {n} {scale}"
            steps(key, schedule, parts, mine, x, y)
            order = [[str(a) for a in schedule.pipeline_order[r] if a is not None
                      and a.computation_type.value in ("F", "B", "I", "W")] for r in range(2)]
            if name != "1F1B":  # PyTorch follows another one than it gives for the last rank
                results[key + " order"] = order
            if name == "ZBVZeroBubble":
                continue  # PyTorch's eval fails
            losses = []
            with torch.no_grad():
                out = schedule.eval(*([x] if 0 in mine else []), losses=losses,
                                    **({"target": y} if len(parts) - 1 in mine else {}))
            results[key + " eval"] = [tree(out), tree(losses)]

# Stages that are averaged or sharded, over one rank: the sums over microbatches must come through.
for wrapper in ("ddp", "fully_shard"):
    for name, per in CASES[:4]:
        parts, mine = blocks(2 * per), mine_of(name, per)
        mesh = dist.device_mesh.DeviceMesh.from_group(alone, "cpu")
        for i in mine:
            if wrapper == "ddp":
                parts[i] = DDP(parts[i], process_group=alone)
            else:
                fsdp.fully_shard(parts[i], mesh=mesh)
        schedule = schedule_of(name, parts, mine, 4, loss_fn=F.mse_loss)
        count = 1 if wrapper == "ddp" else 2  # PyTorch's DDP fails in the second step
        steps(f"{wrapper} {name}", schedule, parts, mine, x, y, count)

class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 2)
    def forward(self, x):
        return self.a(x), self.b(x)

class Join(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.d = nn.Linear(6, 3), nn.Linear(2, 3)
    def forward(self, a, b):
        out = self.c(a.tanh()) + self.d(b)
        return out, out.detach() * 2

parts = [filled(Two()), filled(Join())]
loss_fn = lambda output, target, factor=1.0: (output[0] - target).square().mean() * factor
schedule = P.ScheduleGPipe(P.PipelineStage(parts[rank], rank, 2, torch.device("cpu")), 4,
                           loss_fn=loss_fn)
steps("two", schedule, parts, [rank], grid(8, 6), grid(8, 3), 1, loss_kwargs={"factor": 0.5})

# Cut by itself.
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 6)
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(6, 7)
    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

class Marked(Net):
    def forward(self, ids):
        x = self.layers[0](self.embed(ids))
        P.pipe_split()
        return self.head(self.layers[1](x))

ids = (torch.arange(24) * 5 % 7).view(8, 3)
token_loss = lambda output, target: F.cross_entropy(output.flatten(0, 1), target.flatten())
for name, net, options in (
    ("beginning", Net(), {"split_spec": {"layers.1": P.SplitPoint.BEGINNING}}),
    ("end", Net(), {"split_spec": {"layers.0": P.SplitPoint.END}}),
    ("marked", Marked(), {}),
):
    pipe = P.pipeline(filled(net), (ids[:2],), **options)
    out = pipe(ids[:2])
    out = out[0] if isinstance(out, (list, tuple)) else out  # PyTorch's is sometimes in a tuple
    results[name + " pipe"] = [pipe.num_stages, tree(out), pipe.replicated_params]
    results[name + " names"] = [sorted(k for k, _ in pipe.get_stage_module(i).named_parameters())
                                for i in range(2)]
    stage = pipe.build_stage(rank, torch.device("cpu"))
    schedule = P.Schedule1F1B(stage, 4, loss_fn=token_loss)
    losses = []
    out = schedule.step(*([ids] if rank == 0 else []), losses=losses,
                        **({"target": ids} if rank else {}))
    results[name] = [tree(out), tree(losses)]
    results[name + " gradients"] = {k: tree(p.grad) for k, p in stage.submod.named_parameters()}
policy = lambda traced: traced
results["one stage"] = P.pipeline(filled(Net()), (ids,), split_policy=policy).num_stages
error("both", lambda: P.pipeline(Net(), (ids,), split_spec={}, split_policy=policy))
error("no module", lambda: P.pipeline(Net(), (ids,), split_spec={"a.b": P.SplitPoint.END}))
error("no stage", lambda: pipe.get_stage_module(2))

# Microbatches.
spec = M.TensorChunkSpec
for name, args, kwargs, n, specs in (
    ("plain", (x, 3), {"y": y}, 4, ()), ("uneven", (x,), {}, 3, ()), ("few", (x[:2],), {}, 4, ()),
    ("nested", ({"a": x, "b": [y, y]},), {}, 2, ()),
    ("specs", (x, y), {"z": x}, 2, (spec.from_tuple((0, 1)), spec.from_dict({"z": 2}))),
    ("whole", (x, y), {}, 2, ((spec(0), M._Replicate()),)),
):
    results["split " + name] = tree(M.split_args_kwargs_into_chunks(args, kwargs, n, *specs))
results["merge"] = [
    tree(M.merge_chunks([x, y], None)), tree(M.merge_chunks([(x, 3), (y, 3)], (spec(1), None))),
    tree(M.merge_chunks([torch.ones(()), torch.ones(())], M.sum_reducer)),
]
error("merge other", lambda: M.merge_chunks([(x, y)], (spec(0),)))
error("bad spec", lambda: M.split_args_kwargs_into_chunks((3,), {}, 2, (spec(0),)))

part = Block()
stage = P.PipelineStage(part, rank, 2, torch.device("cpu"))
error("stage index", lambda: P.PipelineStage(part, 2, 2, torch.device("cpu")))
error("group size", lambda: P.PipelineStage(part, 0, 1, torch.device("cpu")))
error("few microbatches", lambda: P.Schedule1F1B(stage, 1))
error("rounds", lambda: P.ScheduleInterleaved1F1B([stage], 5))
error("two stages", lambda: P.ScheduleZBVZeroBubble([stage], 4))
error("schedule", lambda: S.get_schedule_class("none"))
with torch.no_grad():
    error("no grad", lambda: P.ScheduleGPipe(stage, 2, loss_fn=F.mse_loss).step(x))
error("losses", lambda: P.ScheduleGPipe(stage, 2, loss_fn=F.mse_loss).step(x, losses=()))
error("rows", lambda: P.ScheduleGPipe(stage, 4).step(x[:3]))
dist.destroy_process_group()
print(json.dumps(results))
"""


def test_two_ranks_agree_with_gloo(tmp_path: Path) -> None:
    ours, theirs = (results_of(PROGRAM, name, tmp_path / "store") for name in FRAMEWORKS)
    check_agreement(ours, theirs, lambda name: 1e-4 if name.endswith("gradients") else 1e-5)
