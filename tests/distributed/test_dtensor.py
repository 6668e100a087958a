"""DTensors on meshes of one and two dims, against plain tensors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from distributed import dtensor_checks, dtensor_models
from distributed.worlds import run_world

import rushlight as torch
from rushlight import distributed as dist
from rushlight.distributed.tensor import Shard, distribute_tensor


def everything(rank: int) -> None:
    for mesh in dtensor_checks.meshes():
        for check in (*dtensor_checks.EVERYTHING, *dtensor_models.EVERYTHING):
            check(mesh)
            dist.barrier()


@pytest.mark.parametrize("size", [2, 4])
def test_dtensors_compute_what_plain_tensors_do(size: int) -> None:
    run_world(size, everything, timeout=120)


def test_parts_are_read_outside_of_a_job(tmp_path: Path) -> None:
    run_world(2, save_parts, tmp_path)
    program = (
        "import sys, rushlight as torch, rushlight.distributed.tensor\n"
        "parts = [torch.load(f'{sys.argv[1]}/{rank}.pt') for rank in range(2)]\n"
        "assert [part.device_mesh.mesh.tolist() for part in parts] == [[0, 1]] * 2\n"
        "assert torch.cat([part.to_local() for part in parts]).tolist() == [0, 1, 2]\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)


def save_parts(rank: int, folder: Path) -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    x = distribute_tensor(torch.arange(3), mesh, [Shard(0)])
    torch.save(x, folder / f"{rank}.pt")


def test_it_is_loaded_when_asked_for() -> None:
    program = (
        "import sys, rushlight as torch, rushlight.distributed as dist\n"
        "dist.is_available()\n"
        "assert 'rushlight.distributed.tensor' not in sys.modules\n"
        "assert torch.distributed.tensor.Shard(0).dim == 0\n"
        "import rushlight.distributed.tensor.parallel, rushlight.distributed.tensor.device_mesh\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
