"""DistributedDataParallel on GPUs, one for each process."""

from __future__ import annotations

from pathlib import Path

from cuda.conftest import RunPython

PROGRAM = """
import copy
import sys
import rushlight as torch
import rushlight.distributed as dist
import rushlight.multiprocessing as mp
from rushlight import nn
from rushlight.nn.parallel import DistributedDataParallel

def work(rank, path):
    dist.init_process_group("gloo", f"file://{path}", rank=rank, world_size=2)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.SyncBatchNorm(4), nn.Linear(4, 2))
    alone = nn.Sequential(copy.deepcopy(net[0]), nn.BatchNorm1d(4), copy.deepcopy(net[2]))
    x = torch.randn(6, 3)
    alone(x).square().mean().backward()
    for options in {}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}:
        model = DistributedDataParallel(net.to(rank), device_ids=[rank], **options)
        model.zero_grad()
        output = model(x.tensor_split(2)[rank])  # moved there
        assert output.device == torch.device("cuda", rank)
        output.square().mean().backward()
        for param, wanted in zip(net.parameters(), alone.parameters()):
            torch.testing.assert_close(param.grad.cpu(), wanted.grad, atol=1e-5, rtol=1e-4)
    dist.destroy_process_group()

mp.start_processes(work, (sys.argv[1],), nprocs=2, start_method="fork")
print("done")
"""


def test_gradients_of_two_gpus_are_averaged(run_on_shim: RunPython, tmp_path: Path) -> None:
    assert run_on_shim(PROGRAM, str(tmp_path / "meeting")) == "done\n"
