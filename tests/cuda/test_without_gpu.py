"""A machine without an NVIDIA driver: questions are answered, use is refused with what helps."""

import pytest

import rushlight as rl
from rushlight import _C

NOWHERE = {"RUSHLIGHT_CUDA_DRIVER": "/nowhere/libcuda.so.1"}


def test_questions_are_answered_without_a_driver(run_python) -> None:
    run_python(
        """
        import rushlight as torch
        assert torch.cuda.is_available() is False
        assert torch.cuda.device_count() == 0
        assert not torch.cuda.is_initialized() and not torch.cuda._initialized
        assert torch.cuda.memory_allocated() == torch.cuda.max_memory_reserved() == 0
        assert torch.cuda.memory_stats()["num_ooms"] == 0
        assert "bytes of tensors" in torch.cuda.memory_summary()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.manual_seed_all(0)
        with torch.cuda.device(None), torch.cuda.stream(None), torch.cuda.device_of(torch.ones(2)):
            pass
        event = torch.cuda.Event()
        assert event.query() and event.device is None
        event.synchronize()
        """,
        **NOWHERE,
    )


@pytest.mark.parametrize(
    "use",
    [
        "init()",
        "current_device()",
        "set_device(0)",
        "synchronize()",
        "Stream()",
        "current_stream()",
        "get_device_name()",
        "mem_get_info()",
        "device(0)",
        "Event().record()",
    ],
)
def test_use_without_a_driver_names_the_place_and_the_remedy(run_python, use: str) -> None:
    message = run_python(
        f"""
        import rushlight as torch
        try:
            torch.cuda.{use}
        except RuntimeError as error:
            print(error)
        """,
        **NOWHERE,
    )
    assert message == (
        "CUDA cannot be used. NVIDIA driver: /nowhere/libcuda.so.1 was not found. Looked in: the "
        "system's library path. Drivers for NVIDIA's GPUs are at https://www.nvidia.com/drivers; "
        "without a GPU, use device='cpu'.\n"
    )


def test_a_device_of_another_kind_is_refused(run_python) -> None:
    run_python(
        """
        import rushlight as torch
        try:
            torch.cuda.synchronize("cpu")
        except ValueError as error:
            assert str(error) == "Expected a cuda device, but got: cpu"
        else:
            raise AssertionError
        """,
        **NOWHERE,
    )


def test_import_opens_nothing_of_cuda(run_python) -> None:
    run_python(
        """
        import rushlight as torch
        torch.ones(3).sum()
        maps = open("/proc/self/maps").read()
        assert "libcuda" not in maps and "nvrtc" not in maps
        """
    )


def test_the_answer_stays_the_same_in_a_forked_child(run_python) -> None:
    run_python(
        """
        import os
        import rushlight as torch
        assert not torch.cuda.is_available()
        child = os.fork()
        if child == 0:
            os._exit(0 if not torch.cuda.is_available() else 1)
        assert os.waitpid(child, 0)[1] == 0
        """,
        **NOWHERE,
    )


def test_tf32_is_allowed_in_two_ways() -> None:
    matmul = rl.backends.cuda.matmul
    assert not matmul.allow_tf32 and rl.get_float32_matmul_precision() == "highest"
    try:
        rl.set_float32_matmul_precision("medium")
        assert matmul.allow_tf32 and _C._cuda_allows_tf32()
        matmul.allow_tf32 = False
        assert rl.get_float32_matmul_precision() == "highest" and not _C._cuda_allows_tf32()
        matmul.allow_tf32 = True
        assert rl.get_float32_matmul_precision() == "high" and _C._cuda_allows_tf32()
    finally:
        matmul.allow_tf32 = False


def test_graphs_and_tools_answer_or_say_what_is_missing(run_python) -> None:
    run_python(
        """
        import rushlight as torch
        cuda = torch.cuda
        assert not cuda.is_current_stream_capturing()
        assert cuda.memory_snapshot() == [] and cuda.host_memory_stats() == {}
        assert cuda.get_arch_list() == [] and cuda.default_generators == ()
        cuda.reset_accumulated_memory_stats()
        cuda.reset_peak_host_memory_stats()
        cuda.ipc_collect()
        with cuda.nvtx.range("batch {}", 3):
            cuda.nvtx.mark("here")
        assert cuda.nvtx.range_push("a") < 0  # no profiler listens
        for ask in (
            cuda.CUDAGraph, cuda.graph_pool_handle, cuda.MemPool, cuda.cudart, cuda.utilization,
            lambda: cuda.caching_allocator_alloc(16), lambda: cuda.can_device_access_peer(0, 1),
        ):
            try:
                ask()
            except RuntimeError as error:
                assert str(error).startswith("CUDA cannot be used. NVIDIA driver: "), error
            else:
                raise AssertionError(ask)
        """,
        **NOWHERE,
    )
