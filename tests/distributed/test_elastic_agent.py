"""Agents, which start processes on their machine, and how those of several find each other."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import rushlight.distributed as dist
from rushlight.distributed.elastic import rendezvous as rdzv
from rushlight.distributed.elastic.agent.server import WorkerSpec, WorkerState
from rushlight.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from rushlight.distributed.elastic.events import get_logging_handler
from rushlight.distributed.elastic.metrics import MetricHandler, NullMetricHandler, configure
from rushlight.distributed.elastic.multiprocessing import DefaultLogsSpecs
from rushlight.distributed.elastic.rendezvous import c10d_rendezvous_backend
from rushlight.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from rushlight.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
    RendezvousTimeout,
)
from rushlight.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from rushlight.distributed.elastic.rendezvous.utils import (
    _parse_rendezvous_config,
    is_this_machine,
    parse_rendezvous_endpoint,
)
from rushlight.distributed.elastic.utils.distributed import get_free_port

Parameters = rdzv.RendezvousParameters
SOON = RendezvousTimeout(join=timedelta(seconds=20), last_call=timedelta(0))


def handler(store: Any, least: int, most: int, **options: Any) -> DynamicRendezvousHandler:
    backend = C10dRendezvousBackend(store, "job")
    options = {"timeout": SOON, **options}
    return DynamicRendezvousHandler.from_backend(
        "job", store, backend, least, most, "localhost", **options
    )


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls return, each in a thread of its own."""
    results: list[Any] = [None] * len(calls)

    def run(i: int) -> None:
        try:
            results[i] = calls[i]()
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return results


def agent(handler: Any, function: Any, *args: Any, **options: Any) -> LocalElasticAgent:
    spec = WorkerSpec(
        options.pop("role", "trainer"),
        options.pop("processes", 1),
        handler,
        entrypoint=function,
        args=args,
        monitor_interval=0.02,
        **options,
    )
    return LocalElasticAgent(spec, DefaultLogsSpecs(), start_method="fork")


def place(*names: str) -> tuple[str, ...]:
    return tuple(os.environ[name] for name in names)


def adds_up(*names: str) -> Any:
    """All processes of the job meet, as its environment tells them."""
    import rushlight as torch

    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    dist.destroy_process_group()
    return (total.item(), *place(*names))


@pytest.mark.parametrize("backend", ["static", "c10d"])
def test_processes_of_two_machines_meet(backend: str) -> None:
    endpoint = f"localhost:{get_free_port()}"

    def machine(rank: int, role: str, processes: int) -> Any:
        config = {"rank": rank} if backend == "static" else {"last_call_timeout": 0}
        params = Parameters(backend, endpoint, "job", 2, 2, "localhost", **config)
        where = get_rendezvous_handler(params)
        names = ("RANK", "WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "LOCAL_RANK")
        result = agent(where, adds_up, *names, role=role, processes=processes).run()
        assert result is not None and result.state is WorkerState.SUCCEEDED, result
        return role, result.return_values

    told = dict(together(lambda: machine(0, "a", 1), lambda: machine(1, "b", 2)))
    everyone = told["a"] | told["b"]
    assert {rank: value[:3] for rank, value in everyone.items()} == {
        rank: (3.0, str(rank), "3") for rank in range(3)
    }
    assert [value[3:] for value in told["a"].values()] == [("0", "1", "0")]
    assert sorted(value[3:] for value in told["b"].values()) == [
        ("0", "2", "0"),
        ("1", "2", "1"),
    ]


def fails_at_first(times: int) -> tuple[str, ...]:
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if os.environ["RANK"] == "1" and attempt < times:
        os._exit(7)
    return place("RANK", "TORCHELASTIC_RESTART_COUNT", "GROUP_WORLD_SIZE")


def test_all_start_again_when_one_fails() -> None:
    where = handler(dist.HashStore(), 1, 1)
    result = agent(where, fails_at_first, 2, processes=2, max_restarts=2).run()
    assert result is not None and not result.is_failed()
    assert result.return_values == {0: ("0", "2", "1"), 1: ("1", "2", "1")}
    again = agent(where, fails_at_first, 9, processes=2, max_restarts=1)
    result = again.run()
    assert result is not None and result.is_failed() and again.get_worker_group().state == "FAILED"
    assert {rank: failure.exitcode for rank, failure in result.failures.items()} == {1: 7}


def waits_for_another(folder: str) -> tuple[str, ...]:
    Path(folder, os.environ["GROUP_WORLD_SIZE"]).touch()
    while os.environ["GROUP_WORLD_SIZE"] == "1":
        time.sleep(0.02)
    return place("RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")


def test_all_start_again_when_another_machine_comes(tmp_path: Path) -> None:
    port = get_free_port()

    def machine(late: bool) -> Any:
        while late and not (tmp_path / "1").exists():
            time.sleep(0.02)
        store = dist.TCPStore("localhost", port, is_master=not late, wait_for_workers=False)
        where = handler(store, 1, 2, timeout=RendezvousTimeout(last_call=timedelta(seconds=0.5)))
        result = agent(where, waits_for_another, str(tmp_path)).run()
        return result, store

    (first, _), (second, _) = together(lambda: machine(False), lambda: machine(True))
    values = first.return_values | second.return_values
    assert values == {0: ("0", "2", "0"), 1: ("1", "2", "0")}


def test_a_machine_that_gives_no_sign_of_life_is_lost() -> None:
    store = dist.HashStore()
    lost = handler(store, 1, 2, keep_alive_interval=1, keep_alive_max_attempt=1)
    assert lost.next_rendezvous().world_size == 1
    lost._stops.set()
    other = handler(store, 1, 2, keep_alive_interval=1, keep_alive_max_attempt=1)
    found = other.next_rendezvous()
    assert (found.rank, found.world_size) == (0, 1)
    other.shutdown()


def test_a_handler_that_nobody_has_leaves_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    params = Parameters("c10d", f"localhost:{get_free_port()}", "job", 1, 1, keep_alive_interval=1)
    on_file = Parameters("c10d", "", "job", 1, 1, store_type="file")
    threads, files = set(threading.enumerate()), os.listdir("/proc/self/fd")
    for given in params, params, on_file:  # the second one begins anew
        where = get_rendezvous_handler(given)
        assert where.next_rendezvous().rank == 0 and where.shutdown()
        del where
    where = get_rendezvous_handler(params)
    where.next_rendezvous()
    del where
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
        assert not thread.is_alive()
    assert len(os.listdir("/proc/self/fd")) == len(files) and not list(tmp_path.iterdir())


def test_a_job_that_is_over_takes_nobody() -> None:
    store = dist.HashStore()
    first, late = handler(store, 1, 1), handler(store, 1, 1)
    assert first.next_rendezvous().rank == 0 and not first.is_closed()
    waiting = threading.Timer(0.3, first.set_closed)
    waiting.start()
    with pytest.raises(rdzv.RendezvousClosedError, match="'job' is over"):
        late.next_rendezvous()
    assert late.is_closed() and first.shutdown() and first.num_nodes_waiting() == 0
    soon = RendezvousTimeout(join=timedelta(seconds=0.2))
    with pytest.raises(rdzv.RendezvousTimeoutError, match="there are 1 machines of 'job', of"):
        handler(dist.HashStore(), 2, 2, timeout=soon).next_rendezvous()


def test_a_state_that_is_none_is_told() -> None:
    store = dist.HashStore()
    where = handler(store, 1, 1)
    store.set("torch.rendezvous.job", "???")
    with pytest.raises(rdzv.RendezvousStateError, match="is no state"):
        where.is_closed()
    store.set("torch.rendezvous.job", "W10=")
    with pytest.raises(rdzv.RendezvousStateError, match="is no state"):
        where.next_rendezvous()
    assert not where.shutdown()


def test_a_store_that_is_not_reached_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    on_file = Parameters("c10d", str(tmp_path / "no" / "file"), "job", 1, 1, store_type="file")
    with pytest.raises(rdzv.RendezvousConnectionError, match="No such file"):
        get_rendezvous_handler(on_file)
    tries: list[bool] = []

    def refuse(*_: Any, is_master: bool, **options: Any) -> Any:
        tries.append(is_master)
        raise dist.DistNetworkError("nobody there")

    monkeypatch.setattr(c10d_rendezvous_backend, "TCPStore", refuse)
    for host, expected in ("localhost", [True, False]), ("192.0.2.1", [False]):
        with pytest.raises(rdzv.RendezvousConnectionError, match="nobody there"):
            get_rendezvous_handler(Parameters("c10d", f"{host}:1", "job", 1, 1))
        assert tries == expected
        tries.clear()


def test_backends_are_registered(tmp_path: Path) -> None:
    registry = rdzv.RendezvousHandlerRegistry()
    own = handler(dist.HashStore(), 1, 1)

    def make(params: Any) -> Any:
        return own

    registry.register("c10d", make)
    registry.register("mine", make)
    registry.register("mine", make)
    params = Parameters("c10d", "", "job", 1, 1)
    assert registry.create_handler(params) is own and own.get_run_id() == "job"
    with pytest.raises(ValueError, match="already registered"):
        registry.register("mine", lambda params: own)
    with pytest.raises(ValueError, match="non-empty"):
        registry.register("", make)
    with pytest.raises(ValueError, match="'other' is not registered.*c10d, mine"):
        registry.create_handler(Parameters("other", "", "job", 1, 1))
    with pytest.raises(RuntimeError, match="'c10d' does not match the requested backend 'mine'"):
        registry.create_handler(Parameters("mine", "", "job", 1, 1))
    on_file = Parameters("c10d", str(tmp_path / "store"), "job", 1, 1, "here", store_type="file")
    made = get_rendezvous_handler(on_file)
    assert made.next_rendezvous().bootstrap_store_info.master_addr == "here" and made.shutdown()


@pytest.mark.parametrize(
    ("backend", "endpoint", "config", "message"),
    [
        ("static", "host:1", {}, "rank is missing"),
        ("static", "host", {"rank": 0}, "Give host:port"),
        ("static", " ", {"rank": 0}, "Give host:port"),
        ("c10d", "localhost", {"store_type": "etcd"}, "store_type 'etcd'"),
        ("c10d", "localhost", {"read_timeout": 0}, "read timeout"),
        ("c10d", "localhost", {"is_host": "maybe"}, "valid boolean value: 'maybe'"),
        ("c10d", "localhost", {"read_timeout": "long"}, "valid integer value: 'long'"),
        ("c10d", "localhost:many", {}, "between 0 and 65535"),
        ("c10d", "localhost:0", {"join_timeout": 0}, "join timeout .0:00:00. must be positive"),
        ("c10d", "localhost:0", {"keep_alive_interval": 0}, "keep_alive_interval 0"),
        ("c10d", "localhost:0", {"keep_alive_max_attempt": 0}, "keep_alive_max_attempt 0"),
    ],
)
def test_wrong_parameters(backend: str, endpoint: str, config: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        get_rendezvous_handler(Parameters(backend, endpoint, "job", 1, 1, **config))


def test_parameters_and_endpoints() -> None:
    params = Parameters("c10d", "", "job", 1, 2, yes="1", no=False, number="3")
    assert params.get_as_bool("yes") is True and params.get_as_bool("no") is False
    assert params.get_as_int("number") == 3 and params.get("none", 5) == 5
    for least, most in ((0, 1), (2, 1)):
        with pytest.raises(ValueError, match=f"{least} to {most} nodes"):
            Parameters("c10d", "", "job", least, most)
    with pytest.raises(ValueError, match="backend name"):
        Parameters("", "", "job", 1, 1)
    assert parse_rendezvous_endpoint("[::1]:5", 1) == ("::1", 5)
    assert parse_rendezvous_endpoint(None, 1) == ("localhost", 1)
    assert parse_rendezvous_endpoint("host", -1) == ("host", -1)
    for wrong in ("host:", "host:70000", "host:-5"):
        with pytest.raises(ValueError, match="between 0 and 65535"):
            parse_rendezvous_endpoint(wrong, 1)
    assert _parse_rendezvous_config(" a=1, b = x ") == {"a": "1", "b": "x"}
    with pytest.raises(ValueError, match="<key>=<value>"):
        _parse_rendezvous_config("a")
    assert is_this_machine(socket.gethostname()) and is_this_machine("127.0.0.1")
    assert not is_this_machine("192.0.2.1") and not is_this_machine("no.such.host.invalid")
    with pytest.raises(ValueError, match="must be positive"):
        RendezvousTimeout(join=timedelta(seconds=-1))


class Kept(MetricHandler):
    def __init__(self) -> None:
        self.names: dict[str, float] = {}

    def emit(self, metric_data: Any) -> None:
        self.names[metric_data.name] = metric_data.value


class Leaves(rdzv.RendezvousHandler):
    """A rendezvous that does not need this machine."""

    def get_backend(self) -> str:
        return "leaves"

    def next_rendezvous(self) -> rdzv.RendezvousInfo:
        raise rdzv.RendezvousGracefulExitError("enough")

    def is_closed(self) -> bool:
        return False

    def set_closed(self) -> None:
        pass

    def num_nodes_waiting(self) -> int:
        return 0

    def get_run_id(self) -> str:
        return "job"

    def shutdown(self) -> bool:
        return True


def test_agents_tell_events_and_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept()
    configure(kept, "torchelastic")
    monkeypatch.setattr(get_logging_handler("console"), "stream", sys.stderr)
    try:
        where = handler(dist.HashStore(), 1, 1)
        result = agent(where, fails_at_first, 1, processes=2, event_log_handler="console").run()
    finally:
        configure(NullMetricHandler(), "torchelastic")
    assert result is not None and kept.names["workers.trainer.run_success_with_retries"] == 1
    told = capsys.readouterr().err
    for name in ("START", "RENDEZVOUS", "SUCCEEDED"):
        assert f"torchelastic.worker.status.{name}" in told
    leaving = agent(Leaves(), len)
    assert leaving.run() is None and leaving.get_event_succeeded().metadata["run_id"] == "job"
    assert leaving.get_event_failed().metadata["state"] == "FAILED"


def test_specs_of_workers() -> None:
    with pytest.warns(DeprecationWarning, match="use WorkerSpec.entrypoint"):
        spec = WorkerSpec("a", 1, Leaves(), fn=len)
    assert spec.entrypoint is len and spec.get_entrypoint_name() == "len"
    assert WorkerSpec("a", 1, Leaves(), entrypoint="/bin/true").get_entrypoint_name() == "true"
    for wrong in ({"entrypoint": None}, {"local_world_size": 0}, {"monitor_interval": 0}):
        options: dict[str, Any] = {"entrypoint": len, "local_world_size": 1, **wrong}
        with pytest.raises(ValueError, match="WorkerSpec: entrypoint"):
            WorkerSpec(role="a", rdzv_handler=Leaves(), **options)
    assert WorkerState.is_running(WorkerState.HEALTHY)
    assert not WorkerState.is_running(WorkerState.STOPPED)
