"""What each rank of a group does on its GPU over NCCL, compared with the same on the CPU.

Tensors of the CPU go another way between the same processes, so each collective has its oracle.
Values are small numbers: results are exact whatever the order.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import rushlight as torch
import rushlight.distributed
from rushlight import nn
from rushlight.distributed import ReduceOp
from rushlight.nn.parallel import DistributedDataParallel

dist: Any = rushlight.distributed  # functions return None to those outside a group

REDUCED = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int32,
    torch.int64,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
MOVED = [*REDUCED, torch.int16, torch.uint16, torch.float8_e4m3fn, torch.float8_e5m2]


def place() -> tuple[int, int, str]:
    """This rank, the number of ranks, and its GPU."""
    rank = dist.get_rank()
    return rank, dist.get_world_size(), f"cuda:{rank}"


def brought(rank: int, shape: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What a rank brings, on the CPU."""
    count = int(torch.tensor(shape).prod())
    values = (torch.arange(count) * (rank + 3) + rank) % (2 if dtype is torch.bool else 4)
    return values.view(shape).to(dtype)


def same(on_gpu: torch.Tensor, on_cpu: torch.Tensor) -> None:
    assert on_gpu.is_cuda and on_gpu.shape == on_cpu.shape and on_gpu.dtype == on_cpu.dtype
    back = on_gpu.cpu()
    if back.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        back, on_cpu = back.view(torch.uint8), on_cpu.view(torch.uint8)
    assert torch.equal(back, on_cpu), (on_gpu, on_cpu)


def raised(kind: type[BaseException], function: Callable[..., Any], *args: Any, **kw: Any) -> str:
    try:
        function(*args, **kw)
    except kind as error:
        return str(error)
    raise AssertionError(f"{function} raised nothing")


def both(work: Callable[[Callable[[torch.Tensor], torch.Tensor]], Any]) -> None:
    """Compares the tensors that work(copy) returns when it copies them to the GPU, or not there."""
    gpu = place()[2]
    for mine, theirs in zip(work(lambda x: x.to(gpu)), work(lambda x: x.clone()), strict=True):
        same(mine, theirs)


# Collectives


def every_reduction() -> None:
    rank, _, _ = place()
    for dtype in REDUCED:
        ops = [ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX]
        for op in [ReduceOp.SUM] if dtype.is_complex else ops:

            def reduce_all(to: Any, dtype: Any = dtype, op: Any = op) -> list[torch.Tensor]:
                plain, with_gaps = brought(rank, 5, dtype), brought(rank, (3, 2), dtype)
                x, y = to(plain), to(with_gaps).t()
                dist.all_reduce(x, op)
                dist.all_reduce(y, op)
                z = to(plain)
                dist.reduce(z, 1, op)
                return [x, y, z]

            both(reduce_all)
    for dtype in (torch.float32, torch.float64):
        x = brought(rank, 3, dtype).to(f"cuda:{rank}")
        dist.all_reduce(x, ReduceOp.AVG)
        expected = sum(brought(r, 3, dtype) for r in range(3)) / 3
        assert torch.allclose(x.cpu(), torch.as_tensor(expected))


def every_movement() -> None:
    rank, size, gpu = place()
    for dtype in MOVED:
        all_of_them = [brought(r, (2, 3), dtype) for r in range(size)]
        mine = all_of_them[rank].to(gpu)
        x = mine.clone()
        dist.broadcast(x, 2)
        same(x, all_of_them[2])
        outs = [torch.zeros_like(mine) for _ in range(size)]
        dist.all_gather(outs, mine)
        for out, one in zip(outs, all_of_them, strict=True):
            same(out, one)


def every_collective() -> None:
    rank, size, _ = place()
    for shape in [(0,), (1,), (4, 3), (1001,)]:

        def collectives(to: Any, shape: Any = shape) -> list[torch.Tensor]:
            def empty(*lead: int) -> torch.Tensor:
                return to(torch.full((*lead, *shape), 9.0))

            mine = to(brought(rank, shape))
            parts = [to(brought(rank, shape) + r) for r in range(size)]
            results = []
            gathered = [empty() for _ in range(size)]
            dist.all_gather(gathered, mine)
            with_gaps = [
                empty().unsqueeze(-1).repeat_interleave(2, -1)[..., 0] for _ in range(size)
            ]
            dist.all_gather(with_gaps, mine)
            whole = empty(size)
            dist.all_gather_into_tensor(whole, mine)
            results += [*gathered, *with_gaps, whole]
            here = [empty() for _ in range(size)] if rank == 1 else None
            dist.gather(mine, here, 1)
            results += here or []
            out = empty()
            dist.scatter(out, parts if rank == 2 else None, 2)
            results.append(out)
            out = empty()
            dist.reduce_scatter(out, parts)
            results.append(out)
            out = empty()
            dist.reduce_scatter_tensor(out, torch.stack(parts), ReduceOp.MAX)
            results.append(out)
            outs = [empty() for _ in range(size)]
            dist.all_to_all(outs, parts)
            return [*results, *outs]

        both(collectives)


def uneven() -> None:
    rank, size, gpu = place()
    rows = [[0 if i == j else i + j + 1 for j in range(size)] for i in range(size)]
    column = [rows[i][rank] for i in range(size)]

    def exchanges(to: Any) -> list[torch.Tensor]:
        given = to(brought(rank, (sum(rows[rank]), 2)))
        out = to(torch.zeros(sum(column), 2))
        dist.all_to_all_single(out, given, column, rows[rank])
        outs = [to(torch.zeros(count, 2)) for count in column]
        dist.all_to_all(outs, list(given.split(rows[rank])))
        return [out, *outs]

    both(exchanges)
    # Only with NCCL, as in PyTorch.
    outs = [torch.zeros(r + 1, device=gpu) for r in range(size)]
    dist.all_gather(outs, brought(rank, (rank + 1,)).to(gpu))
    for r, out in enumerate(outs):
        same(out, brought(r, (r + 1,)))
    parts = [torch.full((r + 1,), float(rank), device=gpu) for r in range(size)]
    out = torch.zeros(rank + 1, device=gpu)
    dist.reduce_scatter(out, parts)
    same(out, torch.full((rank + 1,), 3.0))
    raised(ValueError, dist.all_gather, outs, torch.ones(rank + 2, device=gpu))


# Work that goes on


def asynchronous() -> None:
    rank, _, gpu = place()
    tensors = [torch.full((100 * i + 1,), float(rank)).to(gpu) for i in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work, tensor in zip(works, tensors, strict=True):
        assert work.wait() and work.wait(timedelta(seconds=5)) and work.result()[0] is tensor
        assert work.is_completed() and work.is_success() and work.exception() is None
        work.synchronize()
        same(tensor, torch.full_like(tensor.cpu(), 3.0))
    side = []

    def doubled(done: Any) -> torch.Tensor:
        side.append(torch.cuda.current_stream())
        return done.value()[0] * 2

    x = torch.ones(2).to(gpu)
    future = dist.all_reduce(x, async_op=True).get_future().then(doubled)
    same(future.then(lambda done: done.wait() + 1).wait(), torch.full((2,), 7.0))
    assert side[0] != torch.cuda.current_stream(gpu)  # beside the program
    work = dist.broadcast(torch.ones(4, 2).to(gpu)[:, 0], 0, async_op=True)
    work.wait()
    assert dist.barrier(async_op=True).wait()
    dist.barrier()
    dist.barrier(device_ids=[rank])
    if torch.cuda.current_device() != rank:  # a program that names its GPU nowhere else
        assert x.device.index == rank


def graphs() -> None:
    """Captures need that the program's stream waits for a collective's, and is waited for."""
    rank, size, gpu = place()
    with torch.cuda.device(rank):
        group = dist.new_group()
        x = brought(rank, 4).to(gpu)
        total = x.clone()
        dist.all_reduce(total, group=group)  # makes the communicator
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x + 1
            work = dist.all_reduce(y, group=group, async_op=True)
            z = x * 2
            work.wait()
            dist.all_reduce(z, group=group)
            out = y + z
        for step in range(3):
            if step == 2:  # what a graph uses stays
                dist.destroy_process_group(group)
            x.copy_(brought(rank + step, 4))
            graph.replay()
            expected = sum(3 * brought(r + step, 4) + 1 for r in range(size))
            same(out, torch.as_tensor(expected))
        dist.all_reduce(total)
        for group, expected in (None, "unjoined"), (dist.new_group(), "Run the work once before"):
            message = ""
            try:
                with torch.cuda.graph(torch.cuda.CUDAGraph()):
                    dist.all_reduce(x * 2, group=group, async_op=True)
            except RuntimeError as error:
                message = str(error)
            assert expected in message, message


def coalesced() -> None:
    rank, size, gpu = place()
    for to in (lambda x: x.to(gpu)), (lambda x: x):
        x, y = to(torch.full((3,), float(rank))), to(torch.full((2, 2), 1.0)).t()
        whole = to(torch.zeros(size))
        with dist._coalescing_manager(async_ops=True) as manager:
            dist.all_reduce(x)
            dist.all_reduce(y)
            dist.all_gather_into_tensor(whole, to(torch.tensor([float(rank)])))
        manager.wait()
        assert x.tolist() == [3.0] * 3 and y.tolist() == [[3.0, 3], [3, 3]]
        assert whole.tolist() == [0, 1, 2]
        with dist._coalescing_manager():
            dist.all_reduce(x)
        assert x.tolist() == [9.0] * 3


def messages() -> None:
    rank, size, gpu = place()
    after, before = (rank + 1) % size, (rank - 1) % size
    mine, got = torch.full((5,), float(rank)).to(gpu), torch.zeros(5, device=gpu)
    ops = [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, got, before)]
    works = dist.batch_isend_irecv(ops)
    assert len(works) == 1
    works[0].wait()
    same(got, torch.full((5,), float(before)))
    if rank == 0:
        dist.send(mine + 5, 1)
        work = dist.isend(mine + 6, group_dst=1)
        work.wait()
    elif rank == 1:
        assert dist.recv(got, 0) == 0
        same(got, torch.full((5,), 5.0))
        table = torch.zeros(5, 2, device=gpu)
        work = dist.irecv(table[:, 1], 0)
        work.wait()
        assert table.tolist() == [[0, 6.0]] * 5
    message = raised(ValueError, dist.recv, got)
    assert "needs the rank of another process" in message
    raised(ValueError, dist.isend, got, rank)


def groups_and_objects() -> None:
    rank, size, gpu = place()
    some = dist.new_group([0, 2])
    if rank != 1:
        x = torch.full((2,), float(rank)).to(gpu)
        dist.all_reduce(x, group=some)
        same(x, torch.full((2,), 2.0))
        dist.broadcast(x.fill_(rank), 2, some)
        same(x, torch.full((2,), 2.0))
        dist.destroy_process_group(some)
        raised(ValueError, dist.get_group_rank, some, 0)
    everyone: list[Any] = [None] * size
    dist.all_gather_object(everyone, {"rank": rank})
    assert [item["rank"] for item in everyone] == list(range(size))
    x = torch.full((2,), float(rank))
    dist.all_reduce(x)  # on the CPU, which PyTorch refuses
    assert x.tolist() == [3.0, 3.0]
    staged = dist.new_group(backend="gloo")
    assert dist.get_backend(staged) == "gloo"
    y = torch.ones(2, device=gpu)
    dist.all_reduce(y, group=staged)
    assert y.tolist() == [3.0, 3.0] and staged.cliques is None
    assert dist.get_backend() == "nccl" and dist.get_backend_config() == "cuda:nccl"
    pairs = dist.new_group(backend="cpu:gloo,cuda:nccl", device_id=rank)
    assert dist.get_backend(pairs) == "gloo" and pairs.cliques.device == rank
    other = f"cuda:{(rank + 1) % size}"  # a rank may use several GPUs, one after another
    z = torch.ones(2, device=other)
    dist.all_reduce(z, group=pairs)
    assert z.tolist() == [3.0, 3.0]


# Data parallelism


def _net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def _trained(net: nn.Module, model: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return [param.detach().cpu() for param in net.parameters()]


def data_parallel() -> None:
    from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import (
        allreduce_hook,
        bf16_compress_hook,
    )

    rank, size, gpu = place()
    torch.manual_seed(1)
    x = torch.randn(6, 3)
    net = _net()
    expected = _trained(net, net, x)
    mine = x.tensor_split(size)[rank].to(gpu)
    hooks = [None, allreduce_hook, bf16_compress_hook]
    options: list[dict[str, Any]] = [{}, {"gradient_as_bucket_view": True}, {}]
    for hook, option in zip(hooks, options, strict=True):
        net = _net().to(gpu)
        model = DistributedDataParallel(net, device_ids=[rank], bucket_cap_mb=1e-5, **option)
        if hook is not None:
            model.register_comm_hook(None, hook)
        exact = hook is not bf16_compress_hook
        for mine_now, wanted in zip(_trained(net, model, mine), expected, strict=True):
            torch.testing.assert_close(mine_now, wanted, atol=1e-5 if exact else 1e-2, rtol=1e-4)


def overlap() -> None:
    """Collectives begin while backward goes on, on a stream of their own."""
    from rushlight.distributed.nccl import Clique

    rank, _, gpu = place()
    net = _net().to(gpu)
    model = DistributedDataParallel(net, device_ids=[rank], bucket_cap_mb=1e-5)
    model(torch.ones(2, 3, device=gpu)).sum().backward()
    happened: list[str] = []
    watched_class: Any = Clique
    before = Clique.run

    def run(self: Any, name: str, start: Any, *args: Any) -> Any:
        def watched(comm: Any) -> Any:
            happened.append(name)
            assert torch.cuda.current_stream(gpu) == self.stream
            return start(comm)

        work = before(self, name, watched, *args)
        assert work is not None and torch.cuda.current_stream(gpu) != self.stream
        return work

    next(iter(net.parameters())).register_hook(lambda grad: happened.append("first layer"))
    model(torch.ones(2, 3, device=gpu))  # rebuilds the buckets
    loss = model(torch.ones(2, 3, device=gpu)).sum()
    watched_class.run = run
    try:
        loss.backward()
    finally:
        watched_class.run = before
    assert happened.index("all_reduce") < happened.index("first layer"), happened
