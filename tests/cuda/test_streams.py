"""Work on several streams and from several threads: where backward runs, and who may free what."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import pytest

import rushlight as torch

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is neither GPU nor shim"
)


class Seen(torch.autograd.Function):
    """The identity, which notes the stream that its backward runs on."""

    streams: ClassVar[list[Any]] = []

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        Seen.streams.append(torch.cuda.current_stream())
        return grad


def test_backward_runs_on_the_streams_of_forward() -> None:
    x = torch.ones(4, device="cuda", requires_grad=True)
    default, side, third = torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()
    Seen.streams.clear()
    y = Seen.apply(x * 2)
    side.wait_stream(default)
    with torch.cuda.stream(side):
        z = Seen.apply(y * 3)
    with torch.cuda.stream(third):
        z.sum().backward()
        assert torch.cuda.current_stream() == third
    assert Seen.streams == [side, default]
    assert x.grad is not None and x.grad.tolist() == [6] * 4
    assert torch.cuda.current_stream() == default


def test_a_captured_backward_stays_in_its_capture() -> None:
    x = torch.ones(4, device="cuda", requires_grad=True)
    y = x * 2
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (grad,) = torch.autograd.grad((y * y).sum(), x)
    graph.replay()
    assert grad.tolist() == [8] * 4


def in_a_thread(work: Any) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failures, failures


def test_a_thread_that_used_no_gpu_gives_back_what_others_took(run_on_shim: Any) -> None:
    run_on_shim(
        """
        import threading
        import rushlight as torch
        block = torch.zeros(4096).pin_memory()  # the only memory there is
        del block
        failures = []
        def work():
            try:
                torch.cuda.empty_cache()
            except RuntimeError as error:
                failures.append(error)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert not failures, failures
        stats = torch.cuda.host_memory_stats()
        assert stats["allocated_bytes.current"] == 0, stats
        """
    )


def test_memory_and_events_die_on_any_thread() -> None:
    holder = [torch.cuda.current_stream().record_event(), torch.ones(1000, device="cuda")]
    in_a_thread(holder.clear)
    in_a_thread(lambda: torch.ones(3, device="cuda").sum().item())


def test_empty_cache_waits_for_other_streams_that_use_what_was_freed(run_on_shim: Any) -> None:
    run_on_shim(
        """
        import rushlight as torch
        side = torch.cuda.Stream()
        x = torch.ones(1 << 20, device="cuda")
        with torch.cuda.stream(side):
            x += 1
        x.record_stream(side)
        del x
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == 0
        """,
        RUSHLIGHT_SHIM_LAZY="1",
    )
