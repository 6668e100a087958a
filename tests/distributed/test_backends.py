"""Backends of a program's own: their groups get what the functions are called with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

import rushlight as torch
import rushlight.distributed as dist


class Noting(dist.ProcessGroup):
    """Notes the calls of its methods; two ranks as if."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self.calls: list[tuple[Any, ...]] = []

    def getBackendName(self) -> str:
        return "noting"


class NotingWork(dist._Work):  # pyright: ignore[reportAttributeAccessIssue]
    """Counts who waits."""

    waited = 0

    def wait(self, timeout: timedelta | None = None) -> bool:
        NotingWork.waited += 1
        return True


def noting(name: str) -> Any:
    def method(self: Noting, *args: Any) -> NotingWork:
        self.calls.append((name, *args))
        return NotingWork()

    return method


COLLECTIVES = [
    "allreduce",
    "broadcast",
    "reduce",
    "allgather",
    "_allgather_base",
    "gather",
    "gather_single",
    "scatter",
    "reduce_scatter",
    "_reduce_scatter_base",
    "alltoall",
    "alltoall_base",
    "send",
    "recv",
    "recv_anysource",
    "barrier",
    "monitored_barrier",
]
for each in COLLECTIVES:
    setattr(Noting, each, noting(each))


@pytest.fixture
def group() -> Iterator[Noting]:
    dist.Backend.register_backend("Noting", lambda _, *place: Noting(*place[:2]), devices=["cpu"])
    store = dist.HashStore()
    dist.init_process_group("noting", store=store, rank=0, world_size=2)
    made = dist.group.WORLD
    assert isinstance(made, Noting)
    yield made
    dist.destroy_process_group()


def test_registered_backend_is_known_by_its_name(group: Noting) -> None:
    assert getattr(dist.Backend, "NOTING") == "noting"  # noqa: B009
    assert dist.is_backend_available("noting") and dist.get_backend() == "noting"
    assert dist.get_rank() == 0 and dist.get_world_size() == 2
    assert dist.get_backend_config() == "cpu:noting"
    assert str(dist.BackendConfig("cpu:noting,cuda:gloo")) == "cpu:noting,cuda:gloo"
    other = dist.new_group([0], timeout=timedelta(seconds=3))
    assert isinstance(other, Noting) and other.size() == 1 and other is not group
    assert other.timeout == timedelta(seconds=3) and dist.get_process_group_ranks(other) == [0]


def test_group_of_a_backend_does_the_collectives(group: Noting) -> None:
    x, y, pair = torch.ones(2), torch.zeros(2), torch.zeros(4)
    dist.all_reduce(x, dist.ReduceOp.MAX)
    name, tensors, opts = group.calls.pop()
    assert name == "allreduce" and tensors[0] is x and opts.reduceOp == dist.ReduceOp.MAX
    assert NotingWork.waited == 1
    assert isinstance(dist.broadcast(x, 1, async_op=True), NotingWork)
    assert group.calls.pop()[-1].rootRank == 1 and NotingWork.waited == 1
    calls: list[tuple[Any, list[Any]]] = [
        (lambda: dist.reduce(x, 1), ["reduce", [x]]),
        (lambda: dist.all_gather([x, y], x), ["allgather", [[x, y]], [x]]),
        (lambda: dist.all_gather_into_tensor(pair, x), ["_allgather_base", pair, x]),
        (lambda: dist.gather(x, [x, y]), ["gather", [[x, y]], [x]]),
        (lambda: dist.gather(x, None, 1), ["gather", [], [x]]),
        (lambda: dist.gather_single(x, pair), ["gather_single", pair, x]),
        (lambda: dist.gather_single(x, None, 1), ["gather_single", torch.empty(0), x]),
        (lambda: dist.scatter(x, [x, y]), ["scatter", [x], [[x, y]]]),
        (lambda: dist.reduce_scatter(x, [x, y]), ["reduce_scatter", [x], [[x, y]]]),
        (lambda: dist.reduce_scatter_tensor(x, pair), ["_reduce_scatter_base", x, pair]),
        (lambda: dist.all_to_all([x, y], [y, x]), ["alltoall", [x, y], [y, x]]),
        (lambda: dist.all_to_all_single(x, y), ["alltoall_base", x, y, [], []]),
        (lambda: dist.barrier(), ["barrier"]),
    ]
    for call, expected in calls:
        call()
        noted = group.calls.pop()
        assert len(noted) == len(expected) + 1 and str(list(noted[:-1])) == str(expected)
    for call, expected in [
        (lambda: dist.send(x, 1, tag=3), ("send", [x], 1, 3)),
        (lambda: dist.isend(x, 1), ("send", [x], 1, 0)),
        (lambda: dist.recv(x, 1), ("recv", [x], 1, 0)),
        (lambda: dist.irecv(x), ("recv_anysource", [x], 0)),
        (lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1)]), ("send", [x], 1, 0)),
        (lambda: dist.monitored_barrier(wait_all_ranks=True), ("monitored_barrier", None, True)),
    ]:
        call()
        assert str(group.calls.pop()) == str(expected)
    with pytest.raises(ValueError, match="destination rank"):
        dist.send(x, 0)


def test_backend_gets_what_it_asks_for() -> None:
    told: list[Any] = []

    class Bare(dist.ProcessGroup):
        pass

    def make(*args: Any) -> Any:
        told.extend(args)
        return Bare(args[0].group_rank, args[0].group_size)

    with pytest.warns(UserWarning, match="Device capability of bare unspecified"):
        dist.Backend.register_backend("bare", make, extended_api=True)
    store = dist.HashStore()
    dist.init_process_group("bare", store=store, rank=0, world_size=1, pg_options="options")
    try:
        facts, options = told
        assert options == "options" and facts.global_ranks_in_group == [0]
        facts.store.set("key", "value")
        assert facts.store.get("key") == b"value"
        with pytest.raises(RuntimeError, match="allreduce: the backend 'undefined' does not supp"):
            dist.all_reduce(torch.ones(1))
    finally:
        dist.destroy_process_group()
    dist.Backend.register_backend("broken", lambda *args: None, devices="cpu")
    with pytest.raises(TypeError, match="inherits from ProcessGroup"):
        dist.init_process_group("broken", store=store, rank=0, world_size=1)
    assert not dist.is_initialized()


def test_fake_backend_plays_one_rank_of_many() -> None:
    dist.init_process_group("fake", rank=1, world_size=4, store=dist.Store())
    try:
        assert dist.get_backend() == dist.Backend.FAKE and dist.is_backend_available("fake")
        x, parts, whole = torch.ones(2), [torch.zeros(2) for _ in range(4)], torch.zeros(4, 2)
        for call in (dist.all_reduce, lambda y: dist.broadcast(y, 0), lambda y: dist.send(y, 0)):
            call(x)
        assert x.tolist() == [1.0, 1.0] and dist.recv(x, 0) == 0
        dist.all_gather(parts, x)
        dist.all_gather_into_tensor(whole, x)
        assert whole.eq(1).all() and all(part.eq(1).all() for part in parts)
        mine = [torch.full((2,), float(i)) for i in range(4)]
        dist.reduce_scatter(x, mine)
        assert x.tolist() == [1.0, 1.0]
        dist.reduce_scatter_tensor(x, torch.arange(8.0))
        assert x.tolist() == [2.0, 3.0]
        dist.all_to_all(parts, mine)
        assert [part[0].item() for part in parts] == [0, 1, 2, 3]
        wide = torch.zeros(6)
        dist.all_to_all_single(wide, torch.arange(4.0), [3, 1, 1, 1])
        assert wide.tolist() == [0, 1, 2, 3, 0, 1]
        dist.scatter(x, None, 0)
        dist.scatter(x, mine, 1)
        dist.gather(x, parts, 1)
        assert x.tolist() == [1.0, 1.0] and parts[3].tolist() == [1.0, 1.0]
        dist.gather_single(x, whole.zero_(), 1)
        dist.gather_single(x, None, 0)
        assert whole.eq(1).all()
        everything: list[Any] = [None] * 4
        dist.all_gather_object(everything, "it")
        assert everything == ["it"] * 4
        assert dist.all_reduce(x, async_op=True).wait()  # pyright: ignore[reportOptionalMemberAccess]
        inner = dist.new_group([1, 2])
        assert (inner.rank(), inner.size()) == (0, 2)
        dist.barrier()
        mesh = dist.init_device_mesh("cpu", (4,))
        shard = dist.tensor.distribute_tensor(torch.ones(8), mesh, [dist.tensor.Shard(0)])
        assert shard.to_local().shape == (2,) and shard.full_tensor().shape == (8,)
    finally:
        dist.destroy_process_group()


def test_own_groups_of_a_backend_have_their_timeout() -> None:
    c10d = dist.distributed_c10d
    made, _ = c10d._new_process_group_helper(
        4, 1, [], "fake", dist.HashStore(), "own", timeout=timedelta(seconds=5)
    )
    try:
        assert made.timeout == timedelta(seconds=5) and dist.get_backend(made) == "fake"
        assert (made.rank(), made.size(), made.ranks) == (1, 4, [0, 1, 2, 3])
    finally:
        dist.destroy_process_group(made)


@pytest.mark.parametrize(("rank", "size"), [(2, 2), (-1, 1), (0, 0)])
def test_ranks_of_own_groups_are_checked(rank: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"rank must be from 0 to {size - 1}, not {rank}"):
        dist.ProcessGroupGloo(dist.HashStore(), rank, size)


def meshes_of_first_senders(group: Any) -> list[Any]:
    start = threading.Barrier(4)

    def first(_: int) -> Any:
        start.wait()
        return group.mesh()

    with ThreadPool(4) as pool:
        return pool.map(first, range(4))


def test_threads_that_send_first_share_connections() -> None:
    group = dist.ProcessGroupGloo(dist.HashStore(), 0, 1)
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        for each in group, dist.group.WORLD:
            first, *others = meshes_of_first_senders(each)
            assert all(mesh is first for mesh in others)
    finally:
        dist.destroy_process_group()
        group.shutdown()
