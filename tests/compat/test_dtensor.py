"""The same programs with DTensors on two ranks, here and over PyTorch's gloo."""

from __future__ import annotations

from pathlib import Path

import pytest
from compat.ranks import check_agreement, results_of

pytest.importorskip("torch")

FRAMEWORKS = ("rushlight", "torch")

PROGRAM = r"""
import importlib, json, sys, warnings
framework, path, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch = importlib.import_module(framework)
dist = importlib.import_module(framework + ".distributed")
T = importlib.import_module(framework + ".distributed.tensor")
P = importlib.import_module(framework + ".distributed.tensor.parallel")
nn, F = torch.nn, torch.nn.functional
warnings.simplefilter("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo", f"file://{path}", rank=rank, world_size=2)
mesh = T.init_device_mesh("cpu", (2,)) if hasattr(T, "init_device_mesh") else None
Shard, Replicate, Partial, DTensor = T.Shard, T.Replicate, T.Partial, T.DTensor
results = {}

def numbers(value):
    if isinstance(value, DTensor):
        value = value.full_tensor()
    return [list(value.shape), value.detach().flatten().tolist()]

def note(name, value, layout=True):
    results[name] = numbers(value)
    if layout and isinstance(value, DTensor):
        results[name + " placements"] = [str(p) for p in value.placements]
        results[name + " local"] = list(value.to_local().shape)
        results[name + " stride"] = list(value.stride())

def error(name, call):
    try:
        call()
        results[name] = "nothing"
    except Exception as e:
        kinds = (TypeError, ValueError, AssertionError, IndexError, RuntimeError)
        results[name] = next(k.__name__ for k in kinds if isinstance(e, k))

def grid(*shape):
    count = 1
    for n in shape:
        count *= n
    return torch.sin(torch.arange(float(count)) * 1.7).view(shape)

placements = (Shard(1), Replicate(), Partial(), Partial("max"))
results["texts"] = [f(p) for p in placements for f in (str, repr)]
results["questions"] = [Shard(1).is_shard(), Shard(1).is_shard(0), Partial().is_partial("sum"),
                        Replicate().is_replicate(), Shard(0) == Shard(0), Shard(0) == Replicate()]
whole = grid(5, 3)
for source in (Shard(0), Shard(1), Replicate()):
    x = T.distribute_tensor(whole, mesh, [source])
    note(f"{source}", x)
    results[f"{source} repr"] = repr(x).replace("torch.Size", "Size").split("device_mesh")[0]
    for target in (Shard(0), Shard(1), Replicate()):
        note(f"{source} to {target}", x.redistribute(placements=[target]))

local = (grid(2, 3) * (rank + 1)).requires_grad_()
for placement in (Shard(0), Shard(1), Replicate(), Partial()):
    local.grad = None
    x = DTensor.from_local(local, mesh, [placement])
    note(f"from_local {placement}", x)
    part = x.redistribute(placements=[Shard(0)]).to_local()
    (part * grid(*part.shape)).sum().backward()
    note(f"from_local {placement} gradient", local.grad)
    local.grad = None
    (DTensor.from_local(local, mesh, [placement]).full_tensor() ** 2).sum().backward()
    note(f"full_tensor {placement} gradient", local.grad)
w = T.distribute_tensor(torch.ones(3), mesh).requires_grad_()
(w.to_local(grad_placements=[Partial()]) * (rank + 1)).sum().backward()
note("grad_placements", w.grad, layout=False)  # PyTorch leaves the gradient as addends
note("avg", DTensor.from_local(local.detach(), mesh, [Partial("avg")]).full_tensor())
note("max", DTensor.from_local(local.detach(), mesh, [Partial("max")]).full_tensor())

# Layouts of results on which both have the same rule.
a = T.distribute_tensor(grid(4, 6), mesh, [Shard(0)])
b = T.distribute_tensor(grid(6, 4), mesh, [Shard(1)])
r = T.distribute_tensor(grid(4, 6), mesh)
for name, result in {
    "pointwise": (a * 2 + 1).tanh() * a,
    "replicated": r * r,
    "matmul": a @ T.distribute_tensor(grid(6, 4), mesh),
    "columns": r @ b,
    "rows": r.redistribute(placements=[Shard(1)]) @ b.redistribute(placements=[Shard(0)]),
    "sum": a.sum(), "sum 0": a.sum(0), "sum 1": a.sum(1), "keepdim": a.sum(1, keepdim=True),
    "transpose": a.t(), "unsqueeze": a.unsqueeze(0), "view": a.view(2, 2, 6),
    "flatten": a.view(24), "softmax": a.softmax(1), "split": a.split(3, 1)[0],
    "linear": F.linear(r, b.t()), "cat": torch.cat([a, a], 1),
    "clone": a.clone(), "zeros_like": torch.zeros_like(a), "relu": F.relu(a),
    "norm": a.norm(),
}.items():
    note(name, result, layout=name != "norm")
for name, result in {"mean": a.mean(), "max": a.amax(0), "cumsum": a.cumsum(0), "index": a[1:3],
                     "std": a.std(0), "stack": torch.stack([a, r]), "mixed": a + b.t()}.items():
    note(name, result, layout=False)
note("zeros", T.zeros(5, 2, device_mesh=mesh, placements=[Shard(0)]))
note("ones", T.ones((5, 2), device_mesh=mesh, placements=[Shard(1)]))
note("full", T.full((5, 2), 3.0, device_mesh=mesh))

class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 6)
        self.norm = nn.LayerNorm(6)
        self.up, self.down = nn.Linear(6, 8), nn.Linear(8, 7)
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(grid(*p.shape))
    def forward(self, ids):
        return self.down(F.gelu(self.up(self.norm(self.embed(ids)))))

for style in ("plain", "sequence"):
    model = MLP()
    plan = {"up": P.ColwiseParallel(), "down": P.RowwiseParallel()}
    if style == "sequence":
        plan = {
            "embed": P.RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": P.SequenceParallel(),
            "up": P.ColwiseParallel(input_layouts=Shard(1)),
            "down": P.RowwiseParallel(output_layouts=Replicate()),
        }
    model = P.parallelize_module(model, mesh, plan)
    results[style + " styles"] = [repr(plan["up"]), repr(plan["down"])]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    ids = (torch.arange(12) * 5 % 7).view(2, 6)
    for step in range(3):
        out = model(ids)
        note(f"{style} {step}", out)
        optimizer.zero_grad()
        F.cross_entropy(out.flatten(0, 1), ids.flatten()).backward()
        for name, p in model.named_parameters():
            # Without the layout: PyTorch leaves the gradients of the norm as addends.
            note(f"{style} {step} {name} gradient", p.grad, layout=False)
        optimizer.step()
    for name, value in model.state_dict().items():
        note(f"{style} {name}", value)

logits = T.distribute_tensor(grid(4, 6), mesh, [Shard(1)]).requires_grad_()
with P.loss_parallel():
    loss = F.cross_entropy(logits, torch.tensor([0, 5, -100, 2]))
    loss.backward()
note("loss_parallel", loss, layout=False)
note("loss_parallel gradient", logits.grad)

error("mixed", lambda: a + torch.ones(4, 6))
error("no placements", lambda: a.redistribute())
error("too many", lambda: T.distribute_tensor(whole, mesh, [Shard(0), Shard(1)]))
error("no leaf", lambda: T.distribute_tensor(torch.ones(2, requires_grad=True) * 2, mesh))
error("of a DTensor", lambda: DTensor.from_local(a, mesh))
error("again", lambda: T.distribute_tensor(a, mesh, [Replicate()]))
error("style", lambda: P.parallelize_module(nn.ReLU(), mesh, P.ColwiseParallel()))
error("plan", lambda: P.parallelize_module(nn.ReLU(), mesh, "colwise"))
error("twice", lambda: T.distribute_module(T.distribute_module(nn.Linear(2, 2), mesh), mesh))
error("lengths", lambda: P.PrepareModuleInput(input_layouts=Shard(0)))
results["a number"] = numbers(a + torch.tensor(1.0))
dist.destroy_process_group()
print(json.dumps(results))
"""


def test_two_ranks_agree_with_gloo(tmp_path: Path) -> None:
    ours, theirs = (results_of(PROGRAM, name, tmp_path / name) for name in FRAMEWORKS)
    check_agreement(ours, theirs, lambda name: 1e-4)
