"""DTensors on meshes of one and two dims, against plain tensors."""

from __future__ import annotations

import subprocess
import sys

import pytest
from distributed import dtensor_checks, dtensor_models
from distributed.worlds import run_world

from rushlight import distributed as dist


def everything(rank: int) -> None:
    for mesh in dtensor_checks.meshes():
        for check in (*dtensor_checks.EVERYTHING, *dtensor_models.EVERYTHING):
            check(mesh)
            dist.barrier()


@pytest.mark.parametrize("size", [2, 4])
def test_dtensors_compute_what_plain_tensors_do(size: int) -> None:
    run_world(size, everything, timeout=120)


def test_it_is_loaded_when_asked_for() -> None:
    program = (
        "import sys, rushlight as torch, rushlight.distributed as dist\n"
        "dist.is_available()\n"
        "assert 'rushlight.distributed.tensor' not in sys.modules\n"
        "assert torch.distributed.tensor.Shard(0).dim == 0\n"
        "import rushlight.distributed.tensor.parallel, rushlight.distributed.tensor.device_mesh\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
