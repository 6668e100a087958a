"""What each rank of a world checks: every collective, against NumPy on what all ranks bring."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np

import rushlight as torch
import rushlight.distributed
from rushlight.distributed import ReduceOp, _functional_collectives

dist: Any = rushlight.distributed  # functions return None to those outside a group

NUMPY_DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
# The last goes in pieces: a slot holds 2 MB, a message 4 MB.
SIZES = [0, 1, 5, 4099, 600_007]


def brought(rank: int, shape: Any, dtype: torch.dtype = torch.float64) -> Any:
    """The array that a rank brings, small numbers so that sums are exact in every dtype."""
    generator = np.random.default_rng(rank + 1)
    array = generator.integers(0, 2 if dtype == torch.bool else 4, shape)
    if dtype.is_complex:
        array = array + 1j * generator.integers(0, 4, shape)
    return array


def tensor_of(array: Any, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(array).to(dtype)


def same(tensor: torch.Tensor, array: Any) -> None:
    assert tensor.shape == array.shape, (tensor.shape, array.shape)
    assert torch.equal(tensor, tensor_of(array, tensor.dtype)), (tensor, array)


def layouts(array: Any, dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """The same values contiguous, transposed, and with gaps."""
    yield tensor_of(array, dtype)
    yield tensor_of(np.ascontiguousarray(array.T), dtype).t()
    yield torch.stack([tensor_of(array, dtype)] * 2, -1)[..., 1]


def reductions(dtype: torch.dtype) -> dict[ReduceOp, Callable[[Any], Any]]:
    def over(function: Any) -> Callable[[Any], Any]:
        return lambda arrays: function.reduce(arrays, axis=0)

    if dtype.is_complex:
        return {ReduceOp.SUM: over(np.add)}
    found = {
        ReduceOp.SUM: over(np.logical_or if dtype == torch.bool else np.add),
        ReduceOp.PRODUCT: over(np.logical_and if dtype == torch.bool else np.multiply),
        ReduceOp.MIN: over(np.minimum),
        ReduceOp.MAX: over(np.maximum),
    }
    if dtype.is_floating_point:
        found[ReduceOp.AVG] = lambda arrays: np.mean(arrays, axis=0)
    else:
        found[ReduceOp.BAND] = over(np.bitwise_and)
        found[ReduceOp.BOR] = over(np.bitwise_or)
        found[ReduceOp.BXOR] = over(np.bitwise_xor)
    return found


def every_reduction(rank: int) -> None:
    size = dist.get_world_size()
    for dtype in [*NUMPY_DTYPES, torch.bfloat16]:
        arrays = [brought(r, (3, 4), dtype) for r in range(size)]
        for op, reference in reductions(dtype).items():
            if op is ReduceOp.AVG and dtype not in (torch.float32, torch.float64):
                continue  # thirds are rounded
            expected = tensor_of(reference(arrays), torch.float64 if op is ReduceOp.AVG else dtype)
            for tensor in layouts(arrays[rank], dtype):
                dist.all_reduce(tensor, op)
                assert torch.allclose(tensor, expected.to(dtype), rtol=1e-6), (dtype, op)
            tensor = tensor_of(arrays[rank], dtype)
            dist.reduce(tensor, size - 1, op)
            if rank == size - 1:
                assert torch.allclose(tensor, expected.to(dtype), rtol=1e-6), (dtype, op)
            else:
                same(tensor, arrays[rank])


def every_size(rank: int) -> None:
    size = dist.get_world_size()
    for count in SIZES:
        arrays = [brought(r, count) for r in range(size)]
        mine = tensor_of(arrays[rank])
        total = mine.clone()
        dist.all_reduce(total)
        same(total, np.sum(arrays, axis=0))

        copy = mine.clone()
        dist.broadcast(copy, size - 1)
        same(copy, arrays[-1])

        gathered = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(gathered, mine)
        for tensor, array in zip(gathered, arrays, strict=True):
            same(tensor, array)

        whole = torch.empty(size * count, dtype=mine.dtype)
        dist.all_gather_into_tensor(whole, mine)
        same(whole, np.concatenate(arrays))

        here = [torch.empty_like(mine) for _ in range(size)] if rank == 0 else None
        dist.gather(mine, here, 0)
        for tensor, array in zip(here or (), arrays, strict=here is not None):
            same(tensor, array)

        whole = torch.empty(size, count, dtype=mine.dtype) if rank == 0 else None
        dist.gather_single(mine, whole)
        same(mine if whole is None else whole, arrays[rank] if whole is None else np.stack(arrays))

        parts = [tensor_of(arrays[0]) + r for r in range(size)] if rank == 0 else None
        out = torch.empty_like(mine)
        dist.scatter(out, parts, 0)
        same(out, arrays[0] + rank)

        dist.reduce_scatter(out, [mine + r for r in range(size)])
        same(out, np.sum(arrays, axis=0) + rank * size)

        dist.reduce_scatter_tensor(out, torch.cat([mine + r for r in range(size)]))
        same(out, np.sum(arrays, axis=0) + rank * size)

        outs = [torch.empty_like(mine) for _ in range(size)]
        dist.all_to_all(outs, [mine + r for r in range(size)])
        for tensor, array in zip(outs, arrays, strict=True):
            same(tensor, array + rank)


def every_dtype(rank: int) -> None:
    """The collectives that only copy, and whose tensors are not contiguous."""
    size = dist.get_world_size()
    for dtype in [*NUMPY_DTYPES, torch.bfloat16, torch.uint16, torch.uint32, torch.uint64]:
        arrays = [brought(r, (3, 5), dtype) for r in range(size)]
        for mine in layouts(arrays[rank], dtype):
            outs = [torch.zeros_like(mine) for _ in range(size)]
            dist.all_gather(outs, mine)
            for tensor, array in zip(outs, arrays, strict=True):
                same(tensor, array)
            dist.broadcast(mine, 0)
            same(mine, arrays[0])


def uneven_parts(rank: int) -> None:
    size = dist.get_world_size()
    # Rank i gives i + j + 1 rows to rank j, and none to itself.
    rows = [[0 if i == j else i + j + 1 for j in range(size)] for i in range(size)]
    given = [brought(10 * i, (sum(rows[i]), 2)) for i in range(size)]
    starts = [np.cumsum([0, *rows[i]]) for i in range(size)]
    parts = [given[i][starts[i][rank] : starts[i][rank + 1]] for i in range(size)]
    column = [rows[i][rank] for i in range(size)]
    out = torch.empty(sum(column), 2, dtype=torch.float64)
    dist.all_to_all_single(out, tensor_of(given[rank]), column, rows[rank])
    same(out, np.concatenate(parts))
    outs = [torch.empty(count, 2, dtype=torch.float64) for count in column]
    dist.all_to_all(outs, list(tensor_of(given[rank]).split(rows[rank])))
    for tensor, part in zip(outs, parts, strict=True):
        same(tensor, part)


def asynchronous(rank: int) -> None:
    size = dist.get_world_size()
    tensors = [torch.full((1000 * i + 1,), float(rank)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    extra = torch.ones(3)
    dist.all_reduce(extra)  # comes after those
    assert all(work.is_completed() and work.is_success() for work in works)
    assert extra.tolist() == [size] * 3
    for work, tensor in zip(works, tensors, strict=True):
        assert work.wait() and work.result()[0] is tensor and work.exception() is None
        assert (tensor == size * (size - 1) / 2).all()
    doubled = dist.all_reduce(extra, async_op=True).get_future().then(lambda f: 2 * f.value()[0])
    assert doubled.wait().tolist() == [2 * size * size] * 3
    with_gap = torch.ones(4, 2)[:, 0]
    work = dist.broadcast(with_gap, 0, async_op=True)
    work.wait()
    assert dist.barrier(async_op=True).wait()


def in_inference_mode(rank: int) -> None:
    """Tensors of inference mode are filled by other threads, as they are and through copies."""
    size = dist.get_world_size()
    with torch.inference_mode():
        for shape in (3, 2), (5000, 200):
            ones = torch.ones(shape)
            for x in ones.clone(), ones.t().contiguous().t():
                dist.all_reduce(x, async_op=True).wait()
                assert torch.equal(x, ones * size)
                parts = [torch.empty_like(x) for _ in range(size)]
                dist.all_gather(parts, ones * rank, async_op=True).wait()
                assert all(torch.equal(part, ones * r) for r, part in enumerate(parts))
                received = dist.irecv(x, (rank - 1) % size)
                dist.isend(ones * rank, (rank + 1) % size).wait()
                received.wait()
                assert torch.equal(x, ones * ((rank - 1) % size))


def sparse(rank: int) -> None:
    """Each rank has elements at other places; the last has none."""
    size = dist.get_world_size()
    for shape, dims in ((size + 1,), 1), ((size, 3), 1), ((size, 3, 2), 2):
        dense = torch.zeros(shape)
        if rank < size - 1:
            dense[rank] = rank + 1
            dense[0] += 1
        expected = dense.clone()
        dist.all_reduce(expected)
        mine, again = dense.to_sparse(dims), dense.to_sparse(dims)
        assert dist.all_reduce(mine) is None
        work = dist.all_reduce(again, async_op=True)
        assert work.wait() and work.result() == [again]
        for x in mine, again:
            assert x.layout is torch.sparse_coo and torch.equal(x.to_dense(), expected)
        raised(RuntimeError, dist.all_reduce, mine, ReduceOp.MAX)


def messages(rank: int) -> None:
    size = dist.get_world_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    # Both begin by sending, more than the network holds.
    large = torch.full((700_000,), float(rank))
    got = torch.empty_like(large)
    sent = dist.isend(large, after)
    assert dist.recv(got, before) == before
    sent.wait()
    assert (got == before).all()
    # Tags are taken in another order than they were sent in.
    if rank == 0:
        for tag in (3, 1, 2):
            dist.send(torch.tensor([tag]), 1, tag=tag)
    elif rank == 1:
        for tag in (1, 2, 3):
            received = torch.zeros(1, dtype=torch.int64)
            dist.recv(received, 0, tag=tag)
            assert received.item() == tag
    # From anyone, into a tensor that is not contiguous.
    if rank == 0:
        sources = set()
        for _ in range(size - 1):
            table = torch.zeros(2, 2).t()
            source = dist.recv(table, tag=7)
            assert table.tolist() == [[source, 1], [2, 3]]
            sources.add(source)
        assert sources == set(range(1, size))
    else:
        dist.send(torch.tensor([[rank, 1.0], [2, 3]]), 0, tag=7)
    itself = torch.zeros(2)
    work = dist.irecv(itself, rank, tag=9)
    dist.isend(torch.ones(2), rank, tag=9)
    assert work.wait() and work.source_rank() == rank and itself.tolist() == [1, 1]
    ops = [dist.P2POp(dist.irecv, got, before), dist.P2POp(dist.isend, large + 0.5, after)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert (got == before + 0.5).all()
    # What does not fit is told with both sides.
    if rank == 0:
        dist.send(torch.ones(3), 1, tag=11)
    elif rank == 1:
        other = torch.ones(3, dtype=torch.int32)
        message = raised(dist.DistBackendError, dist.recv, other, 0, tag=11)
        assert "rank 0 sent 3 elements of torch.float32, but rank 1 receives 3 of" in message
    dist.barrier()


def raised(
    kind: type[BaseException] | tuple[type[BaseException], ...],
    function: Callable[..., Any],
    *args: Any,
    **kw: Any,
) -> str:
    try:
        function(*args, **kw)
    except kind as error:
        return str(error)
    raise AssertionError(f"{function} raised nothing")


class Point:
    """Something of the program's own to send."""

    def __init__(self, x: int) -> None:
        self.x = x


def objects(rank: int) -> None:
    size = dist.get_world_size()
    everyone: list[Any] = [None] * size
    dist.all_gather_object(everyone, {"rank": rank, "text": "x" * 100 * rank})
    assert [item["rank"] for item in everyone] == list(range(size))
    here = [None] * size if rank == 1 else None
    dist.gather_object(Point(rank), here, 1)
    assert here is None or [point.x for point in here] == list(range(size))
    things: list[Any] = ["foo", 12, {1: torch.ones(2)}] if rank == 0 else [None] * 3
    dist.broadcast_object_list(things, 0)
    assert things[:2] == ["foo", 12] and things[2][1].tolist() == [1, 1]
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, [f"for {r}" for r in range(size)] if rank == 0 else None, 0)
    assert mine == [f"for {rank}"]
    if rank == 0:
        dist.send_object_list([1, "two"], 1)
    elif rank == 1:
        pair = [None, None]
        assert dist.recv_object_list(pair, 0) == 0
        assert pair == [1, "two"]
    raised(ValueError, dist.all_gather_object, [None] * (size + 1), 1)
    objects_without_code(rank)


def objects_without_code(rank: int) -> None:
    size = dist.get_world_size()
    thing = {"rank": rank, "tensor": torch.full((2,), float(rank))}
    safe: Any = {"weights_only": True}
    everyone: list[Any] = [None] * size
    dist.all_gather_object(everyone, thing, **safe)
    here: list[Any] | None = [None] * size if rank == 1 else None
    dist.gather_object(thing, here, 1, **safe)
    for found in (everyone, here or everyone):
        assert [(item["rank"], item["tensor"].tolist()) for item in found] == [
            (r, [r, r]) for r in range(size)
        ]
    first: list[Any] = [thing]
    dist.broadcast_object_list(first, 0, **safe)
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, [{"rank": 0}] * size if rank == 0 else None, 0, **safe)
    assert first[0]["rank"] == mine[0]["rank"] == 0
    if rank == 0:
        dist.send_object_list([1, "two"], 1, **safe)
    elif rank == 1:
        dist.recv_object_list(pair := [None, None], 0, **safe)
        assert pair == [1, "two"]
    raised(pickle.UnpicklingError, dist.all_gather_object, [None] * size, Point(rank), **safe)


def groups(rank: int) -> None:
    size = dist.get_world_size()
    members = [size - 1, 0]
    some = dist.new_group(members)
    if rank in members:
        assert dist.get_process_group_ranks(some) == sorted(members)
        x = torch.tensor(float(rank))
        dist.all_reduce(x, group=some)
        assert x.item() == size - 1
        dist.broadcast(x.fill_(rank), size - 1, some)
        assert x.item() == size - 1
        dist.broadcast(x.fill_(dist.get_rank(some)), group=some, group_src=0)
        assert x.item() == 0
        assert dist.get_global_rank(some, 1) == size - 1 and dist.get_group_rank(some, 0) == 0
        if rank == 0:
            dist.send(torch.tensor(5.0), group_dst=1, group=some)
        else:
            assert dist.recv(x, group_src=0, group=some) == 0 and x.item() == 5
        dist.destroy_process_group(some)
    else:
        assert some == dist.GroupMember.NON_GROUP_MEMBER
        assert dist.get_rank(some) == dist.get_world_size(some) == -1
        assert dist.new_group(members, use_local_synchronization=True) is None
    again = dist.new_group(members, sort_ranks=False)
    if rank in members:
        assert dist.get_rank(again) == members.index(rank)
        dist.barrier(again)
    if size % 2 == 0:
        mine, both = dist.new_subgroups(2)
        x = torch.tensor(1.0)
        dist.all_reduce(x, group=mine)
        assert x.item() == 2 and len(both) == size // 2
    alone = dist.split_group(split_ranks=[[r] for r in range(size)])
    x = torch.tensor(float(rank))
    dist.all_reduce(x, group=alone)
    assert x.item() == rank and dist.get_world_size(alone) == 1
    raised(ValueError, dist.new_group, [0, 0])
    raised(ValueError, dist.new_group, [0, size])
    dist.monitored_barrier()


def own_groups(rank: int) -> None:
    """Joined over a store alone, as if by another launcher; the ranks are counted backwards."""
    c10d = dist.distributed_c10d
    size, store = dist.get_world_size(), c10d._get_default_store()
    place = size - 1 - rank
    named, part = c10d._new_process_group_helper(size, place, [], "gloo", store, group_name="own")
    c10d._world.pg_group_ranks[named] = {r: r for r in range(size)}
    assert c10d._get_process_group_store(named) is part and c10d._world.pg_names[named] == "own"
    assert c10d._world.default_pg is dist.group.WORLD
    assert c10d._resolve_process_group("own") is named
    raised(ValueError, c10d._new_process_group_helper, size, place, [], "gloo", store, "own")
    gloo = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), place, size)
    for group in named, gloo:
        assert dist.get_rank(group) == place and dist.get_backend(group) == "gloo"
        x = torch.tensor([place + 1.0])
        dist.all_reduce(x, group=group)
        assert x.item() == size * (size + 1) / 2
        x.fill_(rank)
        group.broadcast([x], 0).wait()
        assert x.item() == size - 1
        work = dist.isend(torch.tensor([place]), group=group, group_dst=(place + 1) % size)
        received = torch.empty(1, dtype=torch.int64)
        group.recv([received], (place - 1) % size).wait()
        work.wait()
        assert received.item() == (place - 1) % size
        dist.barrier(group)
    dist.destroy_process_group(named)
    gloo.shutdown()
    assert named not in c10d._world.pg_map and named not in c10d._world.pg_group_ranks


def methods(rank: int) -> None:
    """Of a group; rank r has the number r + 1."""
    size, group = dist.get_world_size(), dist.group.WORLD
    last, total = size - 1, size * (size + 1) / 2

    def own() -> torch.Tensor:
        return torch.tensor([rank + 1.0])

    def empty() -> list[torch.Tensor]:
        return [torch.empty(1) for _ in range(size)]

    x = own()
    assert group.allreduce([x]).get_future().wait()[0] is x and x.item() == total
    largest = dist.AllreduceOptions()
    largest.reduceOp = dist.ReduceOp.MAX
    x = own()
    group.allreduce(x, largest).wait()
    assert x.item() == size
    xs = [own(), own()]
    group.allreduce_coalesced(xs, dist.AllreduceCoalescedOptions()).wait()
    assert [x.item() for x in xs] == [total] * 2
    xs = [own(), own()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        done = dist.all_reduce_coalesced(xs, async_op=True).wait()
        assert all(a is b for a, b in zip(done, xs, strict=True))
        twice = [own()] * 2  # each is reduced once
        dist.all_reduce_coalesced(twice)
        assert twice[0].item() == total
        raised(ValueError, dist.all_reduce_coalesced, [])
    assert [x.item() for x in xs] == [total] * 2
    assert group._get_backend(torch.device("cpu")).rank() == rank
    assert group._get_backend_name() == "gloo"
    raised(RuntimeError, group._get_backend, torch.device("meta"))
    cpu = torch.device("cpu")
    assert dist.get_backend_impl() is group is group.get_backend(cpu)
    assert dist.get_backend_impl(group.group_name, cpu) is group
    raised(RuntimeError, dist.get_backend_impl, group, torch.device("meta"))
    raised(ValueError, dist.get_backend_impl, dist.GroupMember.NON_GROUP_MEMBER)
    raised(ValueError, dist.set_timeout, timedelta(1), dist.GroupMember.NON_GROUP_MEMBER)
    before = group.timeout
    dist.set_timeout(timedelta(seconds=77))
    assert group.timeout == timedelta(seconds=77)
    dist.set_timeout(before, group)
    x = own()
    group.broadcast([x], dist.BroadcastOptions(rootRank=last)).wait()
    assert x.item() == size
    x = own()
    group.reduce([x], dist.ReduceOptions(rootRank=last)).wait()
    assert x.item() == (total if rank == last else rank + 1)
    everyone = [float(r + 1) for r in range(size)]
    outputs = empty()
    group.allgather(outputs, own()).wait()
    assert [x.item() for x in outputs] == everyone
    group.allgather([outputs], [own()]).wait()
    assert [x.item() for x in outputs] == everyone
    wholes = [torch.empty(size), torch.empty(size)]
    group.allgather_into_tensor_coalesced(wholes, [own(), -own()]).wait()
    assert [whole.tolist() for whole in wholes] == [everyone, [-x for x in everyone]]
    xs = [torch.empty(1), torch.empty(1)]
    group.reduce_scatter_tensor_coalesced(xs, wholes).wait()
    assert [x.item() for x in xs] == [size * (rank + 1), -size * (rank + 1)]
    gathered = [empty()] if rank == last else []
    group.gather(gathered, [own()], dist.GatherOptions(rootRank=last)).wait()
    assert not gathered or [x.item() for x in gathered[0]] == everyone
    whole = torch.empty(size)
    group.gather_into_tensor(whole, own(), dist.GatherOptions(rootRank=last)).wait()
    assert rank != last or whole.tolist() == everyone
    raised(ValueError, dist.gather_single, own(), torch.empty(size + 1), rank)
    raised(ValueError, dist.gather_single, own(), None, rank)
    x = torch.empty(1)
    parts = [[own() * (r + 1) for r in range(size)]] if rank == last else []
    group.scatter([x], parts, dist.ScatterOptions(rootRank=last)).wait()
    assert x.item() == size * (rank + 1)
    group.reduce_scatter([x], [[own() * (r + 1) for r in range(size)]]).wait()
    assert x.item() == total * (rank + 1)
    outputs = empty()
    group.alltoall(outputs, [own() * (r + 1) for r in range(size)]).wait()
    assert [x.item() for x in outputs] == [(r + 1.0) * (rank + 1) for r in range(size)]
    swapped = torch.empty(size)
    group.alltoall_base(swapped, torch.cat(parts[0]) if parts else torch.ones(size), [], []).wait()
    work = group.send([own()], (rank + 1) % size, 3)
    group.recv([x], (rank - 1) % size, 3).wait()
    work.wait()
    assert x.item() == (rank - 1) % size + 1
    group.barrier().wait()
    group.barrier(dist.BarrierOptions()).wait()
    group.monitored_barrier()
    raised(ValueError, group.allreduce, [own(), own()])


def gradients(rank: int) -> None:
    """The sum over ranks of (rank + 1) * f(x).sum() is differentiated through each collective."""
    import rushlight.distributed.nn.functional as functional

    size = dist.get_world_size()
    weight, all_weights = rank + 1.0, size * (size + 1) / 2
    x = torch.full((2,), rank + 1.0, requires_grad=True)

    def gradient(y: Any) -> Any:
        return torch.autograd.grad((y * weight).sum(), x)[0].tolist()

    assert gradient(functional.all_reduce(x * x)) == [2 * (rank + 1) * all_weights] * 2
    assert gradient(torch.stack(functional.all_gather(x))) == [all_weights] * 2
    assert gradient(functional.broadcast(x, 0)) == [all_weights if rank == 0 else 0.0] * 2
    scattered = functional.reduce_scatter(torch.empty(2), [x * (r + 1) for r in range(size)])
    assert gradient(scattered) == [sum((r + 1) ** 2 for r in range(size))] * 2
    given = functional.all_to_all([torch.empty(2)] * size, [x * (r + 1) for r in range(size)])
    assert gradient(torch.stack(given)) == [sum((r + 1) ** 2 for r in range(size))] * 2
    swapped = functional.all_to_all_single(torch.empty(size, 2), torch.stack([x] * size))
    assert gradient(swapped) == [all_weights] * 2
    here = functional.gather(x, 0)
    assert gradient(torch.stack(here)) == [1.0] * 2
    there = functional.scatter([x * (r + 1) for r in range(size)], 0)
    expected = sum((r + 1) ** 2 for r in range(size)) if rank == 0 else 0.0
    assert gradient(there) == [expected] * 2
    assert gradient(functional.reduce(x, 0)) == [1.0] * 2


def meshes(rank: int) -> None:
    """In a world of four."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert mesh.shape == (2, 2) and mesh.size() == 4 and mesh.get_coordinate() == divmod(rank, 2)
    assert repr(mesh) == "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))"
    for name, members in (
        ("dp", [rank % 2, rank % 2 + 2]),
        ("tp", [rank // 2 * 2, rank // 2 * 2 + 1]),
    ):
        assert dist.get_process_group_ranks(mesh.get_group(name)) == members
        part = mesh[name]
        assert part.mesh.tolist() == members and part.get_group() is mesh.get_group(name)
        assert part.get_local_rank() == mesh.get_local_rank(name) == members.index(rank)
        x = torch.tensor(float(rank))
        dist.all_reduce(x, group=part.get_group())
        assert x.item() == sum(members)
    turned = mesh["tp", "dp"]
    assert turned.mesh.tolist() == [[0, 2], [1, 3]]
    flat = mesh._flatten()
    assert flat.mesh.tolist() == [0, 1, 2, 3] and mesh["dp_tp"] is flat
    assert mesh.get_group("dp_tp").size() == 4
    wide = dist.init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("replicate", "shard", "cp"))
    joined = wide["shard", "cp"]._flatten("shard_cp")
    hybrid = wide["replicate", "shard_cp"]
    assert hybrid.mesh.tolist() == [[0, 1], [2, 3]] and hybrid.get_coordinate() == divmod(rank, 2)
    assert hybrid.get_group("shard_cp") is joined.get_group()
    assert hybrid.get_group("replicate") is wide.get_group("replicate")
    raised(KeyError, wide.__getitem__, ("cp", "shard_cp"))
    raised(RuntimeError, mesh.get_group)
    raised(KeyError, mesh.__getitem__, "pp")
    raised(RuntimeError, dist.init_device_mesh, "cpu", (5,))
    raised(RuntimeError, dist.init_device_mesh, "cpu", (2, 2), mesh_dim_names=("dp", "dp"))
    made = dist.DeviceMesh.from_group(mesh.get_group("dp"), "cpu")
    assert made.mesh.tolist() == mesh["dp"].mesh.tolist()


def functional(rank: int) -> None:
    """The names that libraries written for torch.compile use; rank r has the number r + 1."""
    fc = _functional_collectives
    size, group = dist.get_world_size(), dist.group.WORLD
    mesh = dist.init_device_mesh("cpu", (size,))
    total = size * (size + 1) / 2
    for members in (group, group.group_name, mesh, (mesh, 0)):
        x = torch.full((2, size), rank + 1.0, requires_grad=True)
        y = fc.wait_tensor(fc.all_reduce(x, "sum", members))
        assert y is not x and torch.equal(y, torch.full((2, size), total))
        y.sum().backward()
        assert x.grad is not None and x.grad.tolist() == [[float(size)] * size] * 2
    assert torch.equal(fc.all_reduce(x, "avg", group) * size, y)
    assert fc.broadcast(x, size - 1, group).tolist() == [[size] * size] * 2
    wide = fc.all_gather_tensor(x, 1, group)
    assert wide[0].tolist() == [r + 1.0 for r in range(size) for _ in range(size)]
    x.grad = None
    part = fc.reduce_scatter_tensor_autograd(x, "sum", 1, group)
    assert part.tolist() == [[total]] * 2
    (part * (rank + 1)).sum().backward()
    assert x.grad is not None and x.grad[0].tolist() == [r + 1.0 for r in range(size)]
    if size > 1:
        raised(ValueError, fc.reduce_scatter_tensor, x[:1], "sum", 0, group)
    raised(ValueError, fc.all_reduce, x, "median", group)
    raised(ValueError, fc.all_reduce, x, "sum", "nobody")
    # Rank r gives r + 1 rows to each.
    given, taken = [rank + 1] * size, [r + 1 for r in range(size)]
    rows = torch.full((sum(given), 1), rank + 1.0, requires_grad=True)
    got = fc.all_to_all_single_autograd(rows, taken, given, group)
    assert got.flatten().tolist() == [r + 1.0 for r in range(size) for _ in range(r + 1)]
    (got * (rank + 1)).sum().backward()
    assert rows.grad is not None
    assert rows.grad.flatten().tolist() == [r + 1.0 for r in range(size) for _ in range(rank + 1)]


EVERYTHING = [
    every_reduction,
    every_size,
    every_dtype,
    uneven_parts,
    asynchronous,
    in_inference_mode,
    sparse,
    messages,
    objects,
    groups,
    own_groups,
    methods,
    gradients,
    functional,
]


def everything(rank: int) -> None:
    for check in EVERYTHING:
        check(rank)
        dist.barrier()
    if dist.get_world_size() == 4:
        meshes(rank)
