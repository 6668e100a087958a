"""What programs ask about GPUs and their memory besides tensors: limits, pools, NVML and NVTX."""

from __future__ import annotations

import gc
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is neither GPU nor shim"
)
on_shim = pytest.mark.skipif(
    "shim" not in os.environ.get("RUSHLIGHT_CUDA_DRIVER", ""), reason="numbers of the shim"
)


def test_a_process_may_limit_its_memory() -> None:
    torch.cuda.init()
    gc.collect()
    assert torch.cuda.get_per_process_memory_fraction() == 1.0
    total = torch.cuda.mem_get_info()[1]
    used = torch.cuda.memory_allocated() + (1 << 25)
    try:
        torch.cuda.set_per_process_memory_fraction(used / total)
        x = torch.empty(1 << 24, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory. Tried to allocate"):
            torch.empty(1 << 25, dtype=torch.uint8, device="cuda")
        del x
        torch.empty((1 << 25) - (1 << 20), dtype=torch.uint8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    with pytest.raises(ValueError, match="Allowed range: 0~1"):
        torch.cuda.set_per_process_memory_fraction(1.5)
    with pytest.raises(TypeError, match="must be `float`"):
        torch.cuda.set_per_process_memory_fraction(1)


def test_a_snapshot_shows_each_block() -> None:
    x = torch.zeros(5000, device="cuda")
    (segment,) = (s for s in torch.cuda.memory_snapshot() if s["address"] == x.data_ptr())
    assert segment["allocated_size"] >= 20000 and segment["device"] == 0
    assert segment["blocks"][0]["state"] == "active_allocated"
    active = sum(s["allocated_size"] for s in torch.cuda.memory_snapshot() if s["device"] == 0)
    assert active == torch.cuda.memory_allocated()
    address = x.data_ptr()
    del x
    states = {s["address"]: s["blocks"][0]["state"] for s in torch.cuda.memory_snapshot()}
    assert states.get(address, "inactive") == "inactive"


def test_statistics_nest_and_start_again() -> None:
    x = torch.zeros(100, device="cuda")
    del x
    flat, nested = torch.cuda.memory_stats(), torch.cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["peak"] == flat["allocated_bytes.all.peak"]
    assert flat["allocated_bytes.all.freed"] > 0
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_stats()["allocated_bytes.all.freed"] == 0

    torch.cuda.reset_peak_host_memory_stats()
    before = torch.cuda.host_memory_stats()
    y = torch.zeros(3000).pin_memory()
    now = torch.cuda.host_memory_stats_as_nested_dict()
    assert now["active_bytes"]["current"] - before["active_bytes.current"] == 16384
    assert now["active_requests"]["peak"] > before["active_requests.current"]
    del y
    torch.cuda.reset_accumulated_host_memory_stats()
    assert torch.cuda.host_memory_stats()["active_bytes.freed"] == 0


def test_memory_by_hand() -> None:
    stream = torch.cuda.Stream()
    address = torch.cuda.caching_allocator_alloc(1000, stream=stream)
    assert any(
        s["address"] == address and s["stream"] == stream.cuda_stream
        for s in torch.cuda.memory_snapshot()
    )
    torch.cuda.caching_allocator_delete(address)
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        torch.cuda.caching_allocator_delete(address)
    assert torch.cuda.caching_allocator_alloc(0) == 0


def test_a_pool_has_memory_of_its_own() -> None:
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.ones(1000, device="cuda")
        address = x.data_ptr()
        del x
        y = torch.ones(1000, device="cuda")
    assert y.data_ptr() == address and pool.id[1] > 0
    assert [s["address"] for s in pool.snapshot()] == [address]
    z = torch.ones(1000, device="cuda")
    del y
    assert pool.snapshot() == [] and z.data_ptr() != address
    reserved = torch.cuda.memory_reserved()
    del pool
    assert torch.cuda.memory_reserved() < reserved


def test_a_pool_waits_for_other_streams() -> None:
    pool, side = torch.cuda.MemPool(), torch.cuda.Stream()
    with torch.cuda.use_mem_pool(pool):
        x = torch.ones(1000, device="cuda")
        x.record_stream(side)
        del x
        y = torch.ones(1000, device="cuda")
    assert y.sum().item() == 1000


def test_a_list_waits_once_for_all_elements() -> None:
    x = torch.arange(12.0, device="cuda").reshape(3, 4).T
    try:
        torch.cuda.set_sync_debug_mode("warn")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            rows = x.tolist()
    finally:
        torch.cuda.set_sync_debug_mode(0)
    assert rows == [[d, d + 4, d + 8] for d in range(4)] and len(told) == 1


def test_ops_that_wait_are_told() -> None:
    x = torch.ones(3, device="cuda")
    try:
        torch.cuda.set_sync_debug_mode("warn")
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            x.sum().item()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            y = x * 2
            torch.cuda.synchronize()
            with pytest.raises(UserWarning):
                y.cpu()
        torch.cuda.set_sync_debug_mode(2)
        assert torch.cuda.get_sync_debug_mode() == 2
        with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
            x.nonzero()
    finally:
        torch.cuda.set_sync_debug_mode(0)
    assert y.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        torch.cuda.set_sync_debug_mode("loud")


def test_streams_of_others_are_used() -> None:
    stream = torch.cuda.Stream()
    other = torch.cuda.ExternalStream(stream.cuda_stream)
    assert other == stream and isinstance(other, torch.cuda.Stream)
    assert torch.cuda.get_stream_from_external(stream.cuda_stream, "cuda:0") == stream
    with torch.cuda.stream(other):
        assert torch.ones(2, device="cuda").sum().item() == 2


def test_questions_to_the_driver() -> None:
    assert torch.cuda.can_device_access_peer(0, 0)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.can_device_access_peer(0, 31)
    runtime = torch.cuda.cudart()
    assert runtime.cudaMemGetInfo(0) == torch.cuda.mem_get_info(0)
    x = torch.zeros(1 << 12)
    torch.cuda.check_error(runtime.cudaHostRegister(x.data_ptr(), 4 * x.numel(), 0))
    assert runtime.cudaHostRegister(x.data_ptr(), 4 * x.numel(), 0) != runtime.cudaError.success
    torch.cuda.check_error(runtime.cudaHostUnregister(x.data_ptr()))
    with pytest.raises(torch.cuda.CudaError, match=r"out of memory \(2\)"):
        torch.cuda.check_error(2)
    with torch.cuda.profiler.profile():
        pass
    assert len(torch.cuda.default_generators) == torch.cuda.device_count()
    assert "sm_90" in torch.cuda.get_arch_list()
    assert "code=sm_80" in torch.cuda.get_gencode_flags()
    assert torch.cuda.get_allocator_backend() == "cudaMallocAsync"


def test_storages_of_the_gpu_have_types() -> None:
    storage = torch.cuda.FloatStorage([1, 2])
    assert storage.is_cuda and storage.tolist() == [1, 2]
    assert isinstance(storage, torch.cuda.FloatStorage)
    assert not isinstance(storage, (torch.FloatStorage, torch.cuda.LongStorage))
    assert isinstance(torch.ones(2).storage(), torch.FloatStorage)


@on_shim
def test_nvml_and_nvtx_are_asked(run_on_shim: Any) -> None:
    shim = os.environ["RUSHLIGHT_CUDA_DRIVER"]
    said = run_on_shim(
        """
        import rushlight as torch
        cuda = torch.cuda
        cuda.init()
        assert (cuda.utilization(), cuda.memory_usage(), cuda.power_draw()) == (42, 17, 70000)
        assert (cuda.temperature(0), cuda.temperature(1), cuda.clock_rate()) == (40, 41, 1400)
        x = torch.zeros(1 << 20, device="cuda")
        assert cuda.device_memory_used() == cuda.memory_reserved()
        lines = cuda.list_gpu_processes().splitlines()
        assert len(lines) == 41 and lines[0] == "GPU:0"
        assert lines[2] == "process       1001 uses        2.000 MB GPU memory"

        from rushlight.cuda import nvtx
        assert (nvtx.range_push("a"), nvtx.range_push("b"), nvtx.range_pop()) == (0, 1, 1)
        with nvtx.range("batch {}", 3):
            nvtx.mark("here")
        assert nvtx.range_pop() == 0
        nvtx.range_end(nvtx.range_start("c"))
        """,
        RUSHLIGHT_NVML=shim,
        RUSHLIGHT_NVTX=shim,
    )
    assert said.split("nvtx ")[1:] == [
        "push a\n", "push b\n", "pop \n", "push batch 3\n", "mark here\n", "pop \n", "pop \n",
        "start c\n", "end 7\n",
    ]  # fmt: skip


@on_shim
def test_without_nvml_the_question_says_so(run_on_shim: Any, tmp_path: Path) -> None:
    run_on_shim(
        """
        import rushlight as torch
        torch.cuda.init()
        try:
            torch.cuda.utilization()
        except RuntimeError as error:
            assert "NVML" in str(error) and "was not found" in str(error)
        else:
            raise AssertionError
        """,
        RUSHLIGHT_NVML=str(tmp_path / "none.so"),
    )
