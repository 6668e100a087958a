"""Collectives of GPUs over NCCL, in three processes on the shim: what works, and what fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cuda import nccl_checks, nccl_failures
from cuda.conftest import ROOT, RunPython
from distributed.rank_pool import RankPool

SHIM = Path(os.environ.get("RUSHLIGHT_SHIM", ROOT / "build" / "libcuda_shim.so"))


@pytest.fixture(scope="module")
def three_gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankPool]:
    if not SHIM.exists():
        pytest.skip("the shim is not built: cmake --build build --target cuda_shim")
    libraries = ["CUDA_DRIVER", "NVRTC", "CUSOLVER", "NCCL"]
    with pytest.MonkeyPatch.context() as patch:
        for name in libraries:
            patch.setenv(f"RUSHLIGHT_{name}", str(SHIM))
        patch.setenv("RUSHLIGHT_SHIM_DEVICES", "3")
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("nccl")))
        pool = RankPool(3, "nccl", "spawn")
        yield pool
        pool.close()


CHECKS = [
    nccl_checks.every_reduction,
    nccl_checks.every_movement,
    nccl_checks.every_collective,
    nccl_checks.uneven,
    nccl_checks.asynchronous,
    nccl_checks.graphs,
    nccl_checks.coalesced,
    nccl_checks.messages,
    nccl_checks.groups_and_objects,
    nccl_checks.data_parallel,
    nccl_checks.overlap,
    nccl_failures.mistakes,
    nccl_failures.child_of_fork,
    nccl_failures.differing,
    nccl_failures.late,
    nccl_failures.lacking,
    nccl_failures.given_up_work_is_told,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nccl(three_gpus: RankPool, check: Callable[[], None]) -> None:
    three_gpus.run(check)


def test_a_process_that_ends_is_noticed(three_gpus: RankPool) -> None:
    with pytest.raises(EOFError):  # of the one that ended: the others answer
        three_gpus.run(nccl_failures.peer_ends)


MISSING = """
import warnings
import rushlight as torch
import rushlight.distributed as dist

assert not dist.is_nccl_available() and not dist.is_backend_available("nccl")
assert torch.cuda.nccl.is_available([]) is False
store = dist.HashStore()
try:
    dist.init_process_group("nccl", store=store, rank=0, world_size=1)
except RuntimeError as error:
    print(error)
for backend in (None, "cpu:gloo,cuda:nccl", "gloo"):
    dist.init_process_group(backend, store=store, rank=0, world_size=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = torch.ones(2, device="cuda")
        dist.all_reduce(x)
        dist.all_reduce(x)
    print(len(caught), x.tolist())
    dist.destroy_process_group()
"""


def test_without_nccl_tensors_go_through_the_cpu(run_on_shim: RunPython) -> None:
    lines = run_on_shim(MISSING, RUSHLIGHT_NCCL="/nowhere/libnccl.so").splitlines()
    assert "'nccl' is not available. NCCL: /nowhere/libnccl.so was not found" in lines[0]
    assert "rushlight[nccl]" in lines[0]
    assert lines[1:] == ["1 [1.0, 1.0]", "1 [1.0, 1.0]", "0 [1.0, 1.0]"]
    assert "RUSHLIGHT_NCCL=off" in run_on_shim(MISSING, RUSHLIGHT_NCCL="off")


ALONE = """
import rushlight as torch
import rushlight.distributed as dist

print(torch.cuda.nccl.version(), torch.cuda.nccl.is_available([torch.ones(2, device="cuda")]))
print(len(torch.cuda.nccl.unique_id()))
dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1, device_id=1)
x = torch.ones(2, device="cuda:1")
dist.all_reduce(x)
dist.barrier()
print(x.tolist(), dist.get_backend_config(), dist.is_nccl_available())
"""


def test_a_process_alone_leaves_without_a_word(run_on_shim: RunPython) -> None:
    printed = run_on_shim(ALONE, RUSHLIGHT_NCCL=str(SHIM))
    assert printed.splitlines() == [
        "(2, 27, 3) True",
        "128",
        "[1.0, 1.0] cpu:gloo,cuda:nccl True",
    ]
