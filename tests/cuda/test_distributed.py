"""Collectives and messages of tensors on a GPU, which go through the memory of the CPU."""

from __future__ import annotations

from pathlib import Path

from cuda.conftest import RunPython

PROGRAM = """
import sys
import rushlight as torch
import rushlight.distributed as dist
import rushlight.multiprocessing as mp

def work(rank, path):
    dist.init_process_group("cpu:gloo,cuda:nccl", f"file://{path}", rank=rank, world_size=2)
    x = torch.arange(4.0, device="cuda") + rank
    dist.all_reduce(x)
    assert x.is_cuda and x.tolist() == [1, 3, 5, 7]
    outs = [torch.zeros(4, device="cuda") for _ in range(2)]
    dist.all_gather(outs, x * rank)
    assert [out.tolist() for out in outs] == [[0] * 4, x.tolist()]
    y = torch.zeros(2, 2, device="cuda").t()
    if rank == 0:
        dist.send(torch.tensor([[1.0, 2], [3, 4]], device="cuda"), 1)
    else:
        dist.recv(y, 0)
    dist.broadcast(y, 1, async_op=True).wait()
    assert y.is_cuda and y.tolist() == [[1, 2], [3, 4]]
    dist.destroy_process_group()

mp.start_processes(work, (sys.argv[1],), nprocs=2, start_method="fork")
print("done")
"""


def test_tensors_of_a_gpu_are_staged(run_on_shim: RunPython, tmp_path: Path) -> None:
    assert run_on_shim(PROGRAM, str(tmp_path / "meeting")) == "done\n"
