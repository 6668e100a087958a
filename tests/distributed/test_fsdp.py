"""Sharded modules and their checkpoints on two and four ranks, against one model of one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from distributed import checkpoint_checks, fsdp_checks
from distributed.fsdp_models import made
from distributed.worlds import run_world

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight import distributed as dist


def on_two_ranks(rank: int, folder: str) -> None:
    for check in fsdp_checks.OF_TWO:
        check()
        dist.barrier()
    for check in checkpoint_checks.OF_TWO:
        check(folder)
        dist.barrier()


def on_four_ranks(rank: int, folder: str) -> None:
    for check in fsdp_checks.OF_FOUR:
        check()
        dist.barrier()
    for check in checkpoint_checks.OF_FOUR:
        check(folder)
        dist.barrier()


def test_sharded_modules_are_one_model(tmp_path: Path) -> None:
    run_world(2, on_two_ranks, str(tmp_path), timeout=60)
    run_world(4, on_four_ranks, str(tmp_path), timeout=60)  # reads what the two have saved
    model = made()
    dcp.load({"model": model}, checkpoint_id=tmp_path / "trained")
    full = torch.load(tmp_path / "full.pt")
    assert all(torch.equal(value, full[name]) for name, value in model.state_dict().items())


def test_it_is_loaded_when_asked_for() -> None:
    program = (
        "import sys, rushlight as torch, rushlight.distributed as dist\n"
        "dist.is_available()\n"
        "assert 'rushlight.distributed.fsdp' not in sys.modules\n"
        "assert torch.distributed.fsdp.ShardingStrategy.FULL_SHARD\n"
        "import rushlight.distributed.fsdp.fully_sharded_data_parallel\n"
        "assert torch.distributed.checkpoint.state_dict.StateDictOptions\n"
        "from rushlight.distributed._composable.fsdp import fully_shard\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
