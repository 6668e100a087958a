"""The same programs on two ranks, here and over PyTorch's gloo: results and classes of errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from compat.ranks import results_of

pytest.importorskip("torch")

FRAMEWORKS = ("rushlight", "torch")

PROGRAM = r"""
import importlib, json, sys, warnings
framework, path, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), 2
torch = importlib.import_module(framework)
dist = importlib.import_module(framework + ".distributed")
F = importlib.import_module(framework + ".distributed.nn.functional")
mesh_of = importlib.import_module(framework + ".distributed.device_mesh").init_device_mesh
warnings.simplefilter("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo", f"file://{path}", rank=rank, world_size=size)
results = {}

def note(name, value):
    if isinstance(value, torch.Tensor):
        value = [str(value.dtype).split(".")[-1], list(value.shape), value.cfloat().view(-1)
                 .view(torch.float32).tolist() if value.is_complex() else value.tolist()]
    results[name] = value

def error(name, call):
    try:
        call()
        results[name] = "nothing"
    except Exception as e:
        kinds = (TypeError, ValueError, AssertionError, RuntimeError, IndexError, KeyError)
        results[name] = next(kind.__name__ for kind in kinds if isinstance(e, kind))

x = torch.arange(6.0).view(2, 3) + 10 * rank
for op in ("SUM", "PRODUCT", "MIN", "MAX"):
    for dtype in ("float32", "float64", "int32", "int64", "uint8", "bfloat16", "float16"):
        y = x.to(getattr(torch, dtype))
        dist.all_reduce(y, getattr(dist.ReduceOp, op))
        note(f"all_reduce {op} {dtype}", y.float())
for op in ("BAND", "BOR", "BXOR"):
    y = x.long()
    dist.all_reduce(y, getattr(dist.ReduceOp, op))
    note(f"all_reduce {op}", y)
y = torch.complex(x, -x)
dist.all_reduce(y)
note("complex", y)
y = x.clone()
dist.broadcast(y, 1)
note("broadcast", y)
y = x.clone()
dist.reduce(y, 1)
note("reduce", y if rank == 1 else None)
outs = [torch.zeros(2, 3) for _ in range(size)]
dist.all_gather(outs, x)
note("all_gather", torch.stack(outs))
out = torch.zeros(2 * size, 3)
dist.all_gather_into_tensor(out, x)
note("all_gather_into_tensor", out)
dist.gather(x, outs if rank == 0 else None)
note("gather", torch.stack(outs))
y = torch.zeros(2, 3)
dist.scatter(y, [x * 2, x * 3] if rank == 0 else None)
note("scatter", y)
dist.reduce_scatter(y, [x, x + 1])
note("reduce_scatter", y)
dist.reduce_scatter_tensor(y, torch.cat([x, x + 1]))
note("reduce_scatter_tensor", y)
out = torch.zeros(3)
dist.all_to_all_single(out, torch.arange(3.0) + rank, [2, 1] if rank == 0 else [1, 2],
                       [2, 1] if rank == 0 else [1, 2])
note("all_to_all_single", out)
works = [dist.all_reduce(torch.ones(3), async_op=True) for _ in range(3)]
note("async", [work.wait() for work in works])
note("completed", [work.is_completed() for work in works])
other = 1 - rank
got = torch.zeros(2)
sent = dist.isend(torch.ones(2) * rank, other, tag=3)
note("recv", dist.recv(got, other, tag=3))
sent.wait()
note("received", got)
names = [None] * size
dist.all_gather_object(names, {"rank": rank})
note("objects", names)
group = dist.new_group([1])
note("group", [dist.get_rank(group), dist.get_world_size(group), dist.get_backend()])
mesh = mesh_of("cpu", (2, 1), mesh_dim_names=("dp", "tp"))
note("mesh", [mesh.size(), repr(mesh["dp"]), list(mesh.get_coordinate())])
note("rank in mesh", mesh.get_local_rank("dp"))
z = torch.ones(2, requires_grad=True)
for name, result in (
    ("all_reduce", lambda: F.all_reduce(z * (rank + 1))),
    ("all_gather", lambda: torch.stack(F.all_gather(z * (rank + 1)))),
    ("broadcast", lambda: F.broadcast(z * (rank + 1), 0)),
    ("reduce_scatter", lambda: F.reduce_scatter(torch.empty(2), [z, z * 2])),
    ("reduce", lambda: F.reduce(z * 3, 0)),
):
    y = result()
    note(f"functional {name}", y.detach())
    note(f"gradient of {name}", torch.autograd.grad((y * (rank + 2)).sum(), z)[0])
error("twice", lambda: dist.init_process_group("gloo", "env://"))
error("no tensor", lambda: dist.all_reduce([1]))
error("no list", lambda: dist.all_gather(x, x))
error("no source", lambda: dist.broadcast(x))
error("two sources", lambda: dist.broadcast(x, 0, group_src=0))
error("no such rank", lambda: dist.get_group_rank(group, 0) if rank else dist.broadcast(x, 2))
error("to itself", lambda: dist.send(x, rank))
error("complex max", lambda: dist.all_reduce(torch.complex(x, x), dist.ReduceOp.MAX))
error("wrong dtypes", lambda: dist.all_gather([x.int()] * 2, x))
error("nobody gathers", lambda: dist.gather(x, None if rank == 0 else [x]))
error("ranks twice", lambda: dist.new_group([0, 0]))
error("mesh too large", lambda: mesh_of("cpu", (3,)))
dist.barrier()
dist.destroy_process_group()
error("not initialized", lambda: dist.all_reduce(x))
error("no rank", lambda: dist.init_process_group("gloo", "tcp://127.0.0.1:1"))
error("no scheme", lambda: dist.init_process_group("gloo", "x://y", rank=0, world_size=1))
print(json.dumps(results))
"""


def test_two_ranks_agree_with_gloo(tmp_path: Path) -> None:
    ours, theirs = (results_of(PROGRAM, name, tmp_path / name) for name in FRAMEWORKS)
    assert ours == theirs
