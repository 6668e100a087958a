"""Pipelines on two and four ranks, and what belongs to them in one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest
from distributed import pipeline_checks as checks
from distributed.checks import raised
from distributed.worlds import TRANSPORTS, run_world

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight import nn
from rushlight.distributed.pipelining import (
    Pipe,
    PipelineStage,
    ScheduleGPipe,
    SplitPoint,
    pipe_split,
    pipeline,
)
from rushlight.distributed.pipelining import _orders as orders
from rushlight.distributed.pipelining._backward import SplitBackward
from rushlight.distributed.pipelining._orders import _Action
from rushlight.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    _CustomReducer,
    _Replicate,
    merge_chunks,
    split_args_kwargs_into_chunks,
    sum_reducer,
)


def on_two_ranks(rank: int) -> None:
    for check in checks.OF_TWO:
        check(rank)
        dist.barrier()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_stages_are_one_network(transport: str) -> None:
    run_world(2, on_two_ranks, transport=transport)


def test_three_ranks_are_one_network() -> None:
    run_world(3, checks.every_schedule)


def test_stages_may_be_averaged_over_replicas_or_sharded() -> None:
    run_world(4, checks.replicas, timeout=60)


# What goes wrong


def schedule_of(rank: int, group: Any = None) -> Any:
    stage = PipelineStage(checks.layers(2)[rank], rank, 2, "cpu", group=group)
    return ScheduleGPipe(stage, 4, loss_fn=checks.mse)


def die_in_a_step(rank: int) -> None:
    schedule = schedule_of(rank)
    x, y = checks.batch()
    schedule.step(*([x] if rank == 0 else []), target=y if rank else None)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(dist.DistNetworkError, match="rank 1 has ended") as caught:
        schedule.step(x)
    assert time.monotonic() - start < 5
    assert caught.value.__notes__[0].startswith("ScheduleGPipe: rank 0 was at 0")


def test_a_killed_rank_ends_the_step_of_the_others() -> None:
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with signal SIGKILL"):
        run_world(2, die_in_a_step)


def be_late(rank: int) -> None:
    schedule = schedule_of(rank, dist.new_group(timeout=timedelta(seconds=1)))
    if rank == 1:
        message = raised(dist.DistBackendError, schedule.step, target=checks.batch()[1])
        assert "timed out after 1 s waiting for a message from rank 0" in message
    dist.barrier()


def test_a_late_rank_is_told() -> None:
    run_world(2, be_late)


def give_uneven_batches(rank: int) -> None:
    schedule = schedule_of(rank)
    x, y = checks.batch(10)
    if rank == 0:
        message = raised(ValueError, schedule.step, x)
        assert "returns (2, 4) of torch.float32 for microbatch 2, but (3, 4)" in message
        assert "Give batches that the number of microbatches, 4, divides." in message
    else:
        raised(dist.DistNetworkError, schedule.step, target=y)


def test_uneven_microbatches_are_refused() -> None:
    run_world(2, give_uneven_batches)


def return_no_tensors(rank: int) -> None:
    class Named(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"x": x}

    if rank == 0:
        message = raised(TypeError, ScheduleGPipe(PipelineStage(Named(), 0, 2, "cpu"), 1).step, x=1)
        assert "stage 0 returns a dict" in message


def test_stages_return_tensors() -> None:
    run_world(2, return_no_tensors)


# Without ranks


def test_orders_that_cannot_be_followed_are_refused() -> None:
    backward_first = {
        0: [_Action(0, orders.F, 0), _Action(0, orders.B, 0)],
        1: [_Action(1, orders.B, 0), _Action(1, orders.F, 0)],
    }
    with pytest.raises(ValueError, match=r"nobody can go on: \{0: 0B0, 1: 1B0\}"):
        orders.with_receives(backward_first, {0: 0, 1: 1})


def test_ranks_exchange_messages_in_the_same_order() -> None:
    """Which NCCL needs, and which keeps the receives close to what they are for."""
    for size in (2, 3, 4):
        for count in (1, 4, 12):
            rank_of = orders.v_of(2 * size)
            plan = orders.with_receives(
                {rank: orders.zero_bubble_v(rank, size, count) for rank in range(size)}, rank_of
            )
            for a in range(size):
                for b in range(size):
                    sent = [
                        (stage + (1 if kind is orders.F else -1), i)
                        for stage, kind, i in plan[a]
                        if kind in (orders.F, orders.I)
                        and rank_of.get(stage + (1 if kind is orders.F else -1)) == b != a
                    ]
                    got = [
                        (stage, i)
                        for stage, kind, i in plan[b]
                        if kind in (orders.RECV_F, orders.RECV_B)
                        and rank_of[stage + (-1 if kind is orders.RECV_F else 1)] == a
                    ]
                    assert sent == got


class Residual(nn.Module):
    """Has a shared layer, parameters that join late, an unused input and one that is returned."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.free = nn.Parameter(torch.randn(4))
        self.scale = nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor, y: torch.Tensor, unused: torch.Tensor) -> Any:
        h = self.a(x).tanh()
        h = self.b(h) + self.a(h * self.scale.exp()) + y * self.free
        h = self.normed(self.normed(h).relu())
        return self.c(h) + x, self.free.square(), y, h.unbind(0)[1]


def test_backward_in_two_parts_is_backward() -> None:
    torch.manual_seed(0)
    net = Residual()
    inputs = [torch.randn(3, 4, requires_grad=True) for _ in range(3)]
    outputs = net(*inputs)
    grads = [torch.randn_like(output) for output in outputs]
    torch.autograd.backward(outputs, grads)
    expected = [p.grad for p in [*inputs, *net.parameters()]]
    for _ in range(2):  # adds up
        net.zero_grad()
        backward = SplitBackward(net(*inputs), grads, inputs)
        assert all(p.grad is None for p in net.parameters())
        for grad, whole in zip(backward.input_grads, expected[:3], strict=True):
            assert (grad is None) == (whole is None)
            if grad is not None:
                torch.testing.assert_close(grad, whole)
        backward.run_rest()
        for p, whole in zip(net.parameters(), expected[3:], strict=True):
            torch.testing.assert_close(p.grad, whole)


def test_each_part_of_backward_computes_its_own_gradients() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    layer = nn.Linear(4, 4)
    y = layer(x)
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda grads, _: seen.append(tuple(grad is not None for grad in grads)))
    SplitBackward([y], [torch.ones_like(y)], [x]).run_rest()
    assert seen == [(True, False, False), (False, True, True)]


def test_arguments_are_cut_and_results_put_together() -> None:
    x, y = torch.arange(6).view(3, 2), torch.arange(8).view(2, 4)
    args, kwargs = split_args_kwargs_into_chunks(((x, {"y": [y.t()]}), "text"), {"z": x}, 3)
    assert [a[0][0].tolist() for a in args] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert [a[0][1]["y"][0].shape[0] for a in args] == [2, 1, 1]
    assert all(a[1] == "text" for a in args)
    assert [k["z"].tolist() for k in kwargs] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    specs = TensorChunkSpec.from_tuple((0, 1)), TensorChunkSpec.from_dict({"z": 1})
    args, kwargs = split_args_kwargs_into_chunks((x, y), {"z": y, "w": x}, 2, *_with_whole(specs))
    assert [a[1].tolist() for a in args] == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    assert all(k["w"] is x for k in kwargs) and kwargs[1]["z"].shape == (2, 2)
    assert len(split_args_kwargs_into_chunks((y,), None, 5)[0]) == 2  # as many as there are rows
    with pytest.raises(ValueError, match="args has 2 arguments"):
        split_args_kwargs_into_chunks((x, y), {}, 2, (TensorChunkSpec(0),))
    with pytest.raises(ValueError, match="Unsupported chunk spec"):
        split_args_kwargs_into_chunks((3,), {}, 2, (TensorChunkSpec(0),))

    merged = merge_chunks(
        [{"y": x, "n": 2, "loss": torch.tensor(1.0)}, {"y": x, "n": 2, "loss": torch.tensor(2.0)}],
        {"y": TensorChunkSpec(1), "n": None, "loss": sum_reducer},
    )
    assert merged["y"].shape == (3, 4) and merged["n"] == 2 and merged["loss"].item() == 3.0
    assert merge_chunks([1, 5, 3], _CustomReducer(0, max)) == 5
    assert merge_chunks([(x, y), (x, y)], None)[1].shape == (4, 4)
    with pytest.raises(ValueError, match="must be the same in all"):
        merge_chunks([1, 2], "any")
    with pytest.raises(ValueError, match="did not match chunk spec"):
        merge_chunks([(x, y)], (TensorChunkSpec(0),))


def _with_whole(specs: tuple[Any, Any]) -> tuple[Any, Any]:
    return specs[0], {"w": _Replicate(), **specs[1]}


def test_a_pipe_refuses_what_cannot_be_cut() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    x = (torch.ones(1, 2),)
    with pytest.raises(ValueError, match="relu of stage 1 writes to linear"):
        pipeline(net, x, split_spec={"1": SplitPoint.BEGINNING})
    with pytest.raises(AttributeError):
        pipeline(net, x, split_spec={"7": SplitPoint.BEGINNING})
    with pytest.raises(ValueError, match="no SplitPoint"):
        pipeline(net, x, split_spec={"1": 1})
    with pytest.raises(ValueError, match="Cannot specify both"):
        pipeline(net, x, split_spec={}, split_policy=lambda graph: graph)

    def before_relu(traced: torch.fx.GraphModule) -> torch.fx.GraphModule:
        (node,) = (n for n in traced.graph.nodes if "add" in n.name)
        with traced.graph.inserting_before(node):
            traced.graph.call_function(pipe_split)
        return traced

    class Added(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pipe_split()  # nothing is before it
            return x * 2 + 1

    pipe = pipeline(Added(), x, split_policy=before_relu)
    assert isinstance(pipe, Pipe) and pipe.num_stages == 2
    assert torch.equal(pipe(*x)[0], Added()(*x))
    with pytest.raises(ValueError, match="Invalid stage index 2"):
        pipe.get_stage_module(2)


def test_it_is_loaded_when_asked_for() -> None:
    program = (
        "import sys, rushlight as torch, rushlight.distributed as dist\n"
        "dist.is_available()\n"
        "assert 'rushlight.distributed.pipelining' not in sys.modules\n"
        "assert torch.distributed.pipelining.ScheduleGPipe\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
