"""What programs use of the elastic launcher beside it: start_processes, and small helpers."""

from __future__ import annotations

import io
import json
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.distributed as dist
from rushlight.distributed.elastic import events, metrics, timer
from rushlight.distributed.elastic.multiprocessing import (
    DefaultLogsSpecs,
    SignalException,
    Std,
    start_processes,
    to_map,
)
from rushlight.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ErrorHandler,
    ProcessFailure,
    record,
)
from rushlight.distributed.elastic.multiprocessing.logs import Tail
from rushlight.distributed.elastic.utils import get_env_variable_or_raise, get_logger, macros
from rushlight.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler
from rushlight.distributed.elastic.utils.distributed import create_c10d_store, get_free_port
from rushlight.distributed.elastic.utils.store import barrier, synchronize
from rushlight.distributed.launcher import LaunchConfig, elastic_launch


def speak(word: str) -> Any:
    rank = os.environ["RANK"]
    os.write(1, f"{word} out {rank}\n".encode())  # pytest has replaced sys.stdout
    os.write(2, f"{word} err {rank}".encode())
    return torch.tensor([int(rank)])


def fail(rank: int) -> None:
    if rank == 1:
        raise KeyError("lost")
    time.sleep(60)


def start(function: Any, args: list[tuple[Any, ...]], specs: Any, **options: Any) -> Any:
    envs = {rank: {"RANK": str(rank), "TORCHELASTIC_RUN_ID": "job"} for rank in range(len(args))}
    return start_processes("name", function, dict(enumerate(args)), envs, specs, **options)


def test_functions_return_values_and_have_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = DefaultLogsSpecs(str(tmp_path / "logs"), Std.ALL, {0: Std.ALL})
    processes = start(speak, [("a",), ("b",)], specs, start_method="fork")
    assert sorted(processes.pids()) == [0, 1]
    result = processes.wait(period=0.05)
    assert [value.item() for value in result.return_values.values()] == [0, 1]
    assert not result.is_failed() and processes.wait() is result
    assert Path(result.stdouts[1]).read_text() == "b out 1\n"
    folder = Path(result.stderrs[1]).parent
    assert (folder.name, folder.parent.name) == ("1", "attempt_0")
    assert folder.parent.parent.name.startswith("job_")
    assert capsys.readouterr() == ("[name0]:a out 0\n", "[name0]:a err 0\n")


def test_programs_run_with_their_environment(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$1 $RANK"\nexit $RANK\n')
    program.chmod(0o755)
    specs = DefaultLogsSpecs(str(tmp_path), local_ranks_filter=set())
    result = start(str(program), [("one",)], specs).wait(period=0.05)
    assert result.return_values == {0: None} and Path(result.stdouts[0]).read_text() == "one 0\n"
    failed = start(str(program), [(1,), (2,)], DefaultLogsSpecs(str(tmp_path))).wait(period=0.05)
    assert failed.is_failed() and failed.failures[1].exitcode == 1 and not failed.return_values
    assert "@record" in failed.failures[1].message


def test_a_failure_ends_the_others(tmp_path: Path) -> None:
    processes = start(fail, [(0,), (1,)], DefaultLogsSpecs(str(tmp_path)), start_method="fork")
    result = processes.wait(period=0.05)
    (failure,) = result.failures.values()
    assert (failure.local_rank, failure.exitcode) == (1, 1)
    assert failure.pid == processes.pids()[1]
    assert failure.message == "KeyError: 'lost'" and "in fail" in failure.traceback
    assert abs(failure.timestamp - time.time()) < 60
    with pytest.raises(ProcessLookupError):
        os.kill(processes.pids()[0], 0)


def test_waiting_ends_after_a_while_and_by_signals(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    processes = start(time.sleep, [(60,)], DefaultLogsSpecs(str(tmp_path)), start_method="fork")
    assert processes.wait(timeout=0) is None and processes.wait(timeout=0.1, period=0.05) is None
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with pytest.raises(SignalException) as raised:
        processes.wait(period=5)
    processes.close(raised.value.sigval)
    assert raised.value.sigval == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
    assert processes.wait(timeout=0).failures[0].signal_name() == "SIGTERM"


def test_functions_may_end_their_process(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    for function, args in (sys.exit, ()), (sys.exit, (0,)), (os._exit, (0,)):
        processes = start(function, [args], DefaultLogsSpecs(str(tmp_path)), start_method="fork")
        assert processes.wait(period=0.05).return_values == {0: None}
    assert signal.getsignal(signal.SIGTERM) is before


def make_function() -> Any:
    return lambda: None


def spoil_error_file() -> None:
    Path(os.environ["TORCHELASTIC_ERROR_FILE"]).write_text("{")
    os.kill(os.getpid(), 40)


def test_what_cannot_be_told_is_a_failure_that_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = signal.getsignal(signal.SIGTERM)
    specs = DefaultLogsSpecs(str(tmp_path / "logs"))
    result = start(make_function, [()], specs, start_method="fork").wait(period=0.05)
    assert "make_function" in result.failures[0].message
    processes = start(spoil_error_file, [()], specs, start_method="fork")
    with pytest.raises(ValueError, match="does not tell an error"):
        processes.wait(period=0.05)
    assert signal.getsignal(signal.SIGTERM) is before
    assert os.listdir(tmp_path) == ["logs"]


def test_results_outlive_close_and_files_of_earlier_processes_do_not(tmp_path: Path) -> None:
    specs = DefaultLogsSpecs(str(tmp_path), {0: Std.OUT})
    failed = start(fail, [(1,)], specs, start_method="fork").wait(period=0.05)
    assert failed.failures[0].message == "KeyError: 'lost'"
    assert Path(failed.stdouts[0]).name == "stdout.log" and failed.stderrs == {0: ""}
    processes = start(speak, [("a",), ("b",)], specs, start_method="fork")
    while any(process.poll() is None for process in processes._running.values()):
        time.sleep(0.01)
    processes.close()
    assert [value.item() for value in processes.wait(timeout=0).return_values.values()] == [0, 1]
    killed = start(os.abort, [()], specs, start_method="fork").wait(period=0.05)
    assert killed.failures[0].signal_name() == "SIGABRT" and "SIGABRT" in killed.failures[0].message


def test_signals_are_handled_while_processes_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGUSR1, SIGUSR1,SIGKILL,SIGNONE")
    before = signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGTERM)
    specs = DefaultLogsSpecs(str(tmp_path))
    first = start(time.sleep, [(60,)], specs, start_method="fork")
    second = start(time.sleep, [(60,)], specs, start_method="fork")
    assert "SIGKILL is no signal" in caplog.text and "SIGNONE is no signal" in caplog.text
    first.close()
    with pytest.raises(SignalException):
        os.kill(os.getpid(), signal.SIGUSR1)
    second.close()
    assert before == (signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGTERM))


def ignore_sigterm(sign: Path) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sign.touch()
    time.sleep(60)


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_a_second_signal_kills(tmp_path: Path) -> None:
    before, sign = signal.getsignal(signal.SIGTERM), tmp_path / "sign"
    processes = start(
        ignore_sigterm, [(sign,)], DefaultLogsSpecs(str(tmp_path)), start_method="fork"
    )
    wait_for(sign)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with pytest.raises(SignalException):
        processes.close()
    assert processes.wait(timeout=0).failures[0].signal_name() == "SIGKILL"
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    program, sign = tmp_path / "program", tmp_path / "sign"
    program.write_text('#!/bin/sh\nsleep 60 &\necho $! > "$1"\nmv "$1" "$2"\nwait\n')
    program.chmod(0o755)
    processes = start(str(program), [(tmp_path / "new", sign)], DefaultLogsSpecs(str(tmp_path)))
    wait_for(sign)
    processes.close()
    state = Path(f"/proc/{sign.read_text().strip()}/stat")
    end = time.monotonic() + 10
    while state.exists() and ") Z " not in state.read_text():  # its new parent may not look
        assert time.monotonic() < end
        time.sleep(0.01)


def test_lines_are_shown_whole_and_at_once(tmp_path: Path) -> None:
    path, shown = tmp_path / "file", io.StringIO()
    tail = Tail({0: str(path)}, {0: "> "}, shown)
    letters = "ä\r\nö".encode()
    with path.open("wb", buffering=0) as file:
        for byte in letters:
            file.write(bytes([byte]))
            time.sleep(Tail._PAUSE * 1.5)
        while "ä" not in shown.getvalue():
            time.sleep(0.01)
    tail.stop()
    assert shown.getvalue() == "> ä\n> ö\n"


def test_arguments_of_start_processes(tmp_path: Path) -> None:
    with pytest.raises(
        RuntimeError, match=r"args are for the local ranks \[0, 1\], envs for \[0\]"
    ):
        start_processes("name", speak, {0: (), 1: ()}, {0: {}}, DefaultLogsSpecs(str(tmp_path)))
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file"):
        DefaultLogsSpecs(str(tmp_path / "file"))
    assert Std.from_str("3") == Std.ALL and Std.from_str("0:1,2:0") == {0: Std.OUT, 2: Std.NONE}
    for text in "4", "", "0:1,", "1,0:1", "0:7":
        with pytest.raises(ValueError, match="neither a number"):
            Std.from_str(text)
    assert to_map(Std.OUT, 2) == {0: Std.OUT, 1: Std.OUT}


def test_failures_are_read_and_told(tmp_path: Path) -> None:
    file = tmp_path / "error.json"
    file.write_text('{"message": "what happened", "timestamp": "10"}')
    early = ProcessFailure(0, 7, 1, str(file))
    assert (early.message, early.timestamp, early.traceback) == ("what happened", 10, "")
    assert early.timestamp_isoformat().startswith("1970-01-01_")
    late = ProcessFailure(1, 8, -9, "none.json")
    assert late.error_file == "<N/A>" and late.signal_name() == "SIGKILL"
    assert ProcessFailure(1, 8, -40, "").message == "Signal 40 (<N/A>) received by PID 8"
    assert ProcessFailure.read(early.told()) == early
    error = ChildFailedError("program", {1: late, 0: early})
    assert error.get_first_failure() == (0, early) and "program failed: rank 0" in str(error)
    for each in error, SignalException("asked to end", signal.SIGTERM):
        assert str(pickle.loads(pickle.dumps(each))) == str(each)
    file.write_text('{"message": {}}')
    with pytest.raises(ValueError, match="does not tell an error"):
        ProcessFailure(0, 7, 1, str(file))


def test_helpers_of_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGLEVEL", "INFO")
    assert get_logger().name == __name__ and get_logger("other").level == logging.INFO
    monkeypatch.delenv("LOGLEVEL")
    assert get_logger("other").level == logging.WARNING
    with pytest.raises(ValueError, match="NO_SUCH_NAME expected, but not set"):
        get_env_variable_or_raise("NO_SUCH_NAME")
    assert macros.substitute(["-g", f"cuda:{macros.local_rank}", 3], "1") == ["-g", "cuda:1", 3]
    port = get_free_port()
    store = create_c10d_store(True, "localhost", port, timeout=5)
    assert store.port == port
    create_c10d_store(False, "localhost", port, timeout=5).set("key", "value")
    assert store.get("key") == b"value"
    assert create_c10d_store(True, "localhost").port > 0
    with pytest.raises(ValueError, match="must be specified when world_size > 1"):
        create_c10d_store(True, "localhost", world_size=2)


def test_processes_meet_in_a_store() -> None:
    store = dist.HashStore()
    with ThreadPool(3) as pool:
        told = pool.map(lambda i: synchronize(store, b"%d" % i, i, 3, "word"), range(3))
        assert told == [[b"0", b"1", b"2"]] * 3
        pool.map(lambda _: barrier(store, 3, "gate"), range(3))

        def wait(rank: int) -> str:
            with pytest.raises(dist.DistStoreError) as raised:
                barrier(store, 3, "shut", 0.5, rank, "node{}".format, 0.05)
            return str(raised.value)

        first, second = pool.map(wait, range(2))
    assert "missing_ranks=[node2]" in first and "check rank 0 (node0)" in second
    store, before = dist.HashStore(), dist.HashStore().timeout
    with pytest.raises(dist.DistStoreError, match="wait timeout"):
        barrier(store, 2, "alone", 0.05)
    assert store.timeout == before


def test_samplers_of_restarted_jobs() -> None:
    samplers = [ElasticDistributedSampler(range(10), 2, rank, 3) for rank in range(2)]
    drawn = [list(sampler) for sampler in samplers]
    assert [len(sampler) for sampler in samplers] == [len(part) for part in drawn] == [4, 4]
    assert sorted({*drawn[0], *drawn[1]}) == list(range(3, 10))
    samplers[0].set_epoch(1)
    assert list(samplers[0]) != drawn[0]
    with pytest.raises(ValueError, match="Start index 10 should be less than dataset size 10"):
        ElasticDistributedSampler(range(10), 2, 0, 10)
    assert list(CyclingIterator(3, lambda epoch: iter([epoch]), start_epoch=1)) == [1, 2]


def test_events_are_recorded() -> None:
    event = events.Event("begun", events.EventSource.AGENT, metadata={"rank": 1, "loss": 0.5})
    found = events.RdzvEvent("begun", "job", "all here", "node0", 7, events.NodeState.RUNNING)
    events.record(event)
    events.record_rdzv_event(found)
    assert isinstance(events.get_logging_handler(), logging.NullHandler)
    for written in event, found:
        assert type(written).deserialize(str(written)) == written
        assert type(written).deserialize(written) is written
    assert json.loads(str(event))["source"] == "AGENT"


class Noting(metrics.MetricHandler):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: dict[str, float] = {}

    def emit(self, metric_data: metrics.MetricData) -> None:
        self.told[f"{metric_data.group_name}/{metric_data.name}"] = metric_data.value


class Measured:
    @metrics.prof
    def works(self) -> int:
        return 1

    @metrics.prof(group="other")
    def fails(self) -> None:
        raise KeyError


def test_metrics_have_the_names_of_functions() -> None:
    told = Noting()
    metrics.configure(told, "names")

    def inner() -> None:
        pass

    metrics.prof(inner, "names")()
    metrics.prof(to_map, "names")(Std.OUT, 1)
    here = "test_metrics_have_the_names_of_functions.<locals>"
    assert {f"names/{here}.inner.success", "names/api.to_map.success"} <= told.told.keys()
    metrics.configure(metrics.NullMetricHandler(), "names")


def test_metrics_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    own, others = Noting(), Noting()
    metrics.configure(own, "torchelastic")
    metrics.configure(others)
    assert Measured().works() == 1
    with pytest.raises(KeyError):
        Measured().fails()
    metrics.publish_metric("third", "number", 3)
    assert own.told.pop("torchelastic/Measured.works.duration.ms") >= 0
    assert own.told == {"torchelastic/Measured.works.success": 1}
    assert others.told.keys() == {
        "other/Measured.fails.failure",
        "other/Measured.fails.duration.ms",
        "third/number",
    }
    metrics.configure(metrics.ConsoleMetricHandler())
    metrics.put_metric("loss", 2, "group")
    assert "][group]: loss=2\n" in capsys.readouterr().out
    metrics.configure(metrics.NullMetricHandler())
    metrics.configure(metrics.NullMetricHandler(), "torchelastic")


def sleep_in_time(queue: Any, seconds: float) -> None:
    timer.configure(timer.LocalTimerClient(queue))
    for _ in range(2):
        with timer.expires(after=0.5):
            time.sleep(seconds)


class Noted(timer.TimerClient):
    """Keeps the names of its timers."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        self.begun.append(scope_id)

    def release(self, scope_id: str) -> None:
        self.ended.append(scope_id)


def test_timers_are_named_by_their_places() -> None:
    client = Noted()

    @timer.expires(after=5, client=client)
    def double(x: int) -> int:
        return 2 * x

    with ExitStack() as blocks:
        blocks.enter_context(timer.expires(after=5, client=client))
        blocks.enter_context(timer.expires(after=5, client=client))
        assert double(2) == 4 and double(3) == 6
    assert len({*client.begun}) == 3 and sorted(client.begun) == sorted(client.ended)
    assert all(scope.startswith(f"{__file__}#") for scope in client.begun)


def test_a_server_without_a_queue_looks_no_more_often(caplog: pytest.LogCaptureFixture) -> None:
    queue = multiprocessing.Queue()
    server = timer.LocalTimerServer(queue, max_interval=60)
    queue.close()
    server.start()
    while not caplog.records:
        time.sleep(0.01)
    server.stop()
    assert len(caplog.records) == 1


def test_who_takes_too_long_is_killed() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    server = timer.LocalTimerServer(queue, max_interval=0.01)
    server.start()
    server.start()  # it runs already
    processes = [context.Process(target=sleep_in_time, args=(queue, s)) for s in (0.01, 60)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    server.stop()
    assert [process.exitcode for process in processes] == [0, -signal.SIGKILL]
    timer.configure(None)
    with pytest.raises(RuntimeError, match="configure timer client"), timer.expires(after=1):
        pass


def test_timers_begin_again_and_end() -> None:
    queue = multiprocessing.Queue()
    server, client = timer.LocalTimerServer(queue), timer.LocalTimerClient(queue)
    with timer.expires(after=5, scope="a", client=client):
        client.acquire("a", 1)
    requests = [queue.get(timeout=5) for _ in range(3)]
    assert [r.scope_id for r in requests] == ["a"] * 3 and requests[2].expiration_time < 0
    server.register_timers(requests[:2])
    assert server.get_expired_timers(0) == {}
    assert server.get_expired_timers(2) == {os.getpid(): [requests[1]]}
    server.register_timers(requests[2:])
    assert server.get_expired_timers(time.time() + 60) == {}
    server.register_timers(requests[:1])
    server.clear_timers({os.getpid()})
    assert server.get_expired_timers(time.time() + 60) == {}


class Helpless(timer.LocalTimerServer):
    def _reap_worker(self, worker_id: Any) -> bool:
        raise PermissionError


def test_a_process_that_cannot_be_ended_is_left_alone() -> None:
    queue = multiprocessing.Queue()
    server = Helpless(queue, max_interval=0.1)
    timer.LocalTimerClient(queue).acquire("a", 1)
    while queue.empty():
        time.sleep(0.01)
    server._run_watchdog()
    assert server.get_expired_timers(2) == {}


def test_what_record_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert record(lambda: sys.exit(0))() is None
    with pytest.raises(SystemExit):
        record(lambda: sys.exit(3))()
    own, inner = tmp_path / "own.json", tmp_path / "inner.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(inner))
    with pytest.raises(KeyError):
        record({}.__getitem__)("missing")
    failure = ProcessFailure(0, 7, 3, str(inner))
    assert failure.message == "KeyError: 'missing'"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(own))

    def launch(failure: ProcessFailure) -> None:
        raise ChildFailedError("program", {0: failure})

    with pytest.raises(ChildFailedError):
        record(launch)(failure)
    told = json.loads(own.read_text())["message"]
    assert told["message"] == failure.message and told["errorCode"] == 3
    with pytest.raises(ChildFailedError):
        record(launch)(ProcessFailure(0, 7, -9, ""))
    assert "ChildFailedError: program failed: rank 0" in own.read_text()

    class Keeper(ErrorHandler):
        def record_exception(self, e: BaseException) -> None:
            kept.append(e)

    kept: list[BaseException] = []
    with pytest.raises(ZeroDivisionError) as raised:
        record(lambda: 1 / 0, error_handler=Keeper())()
    assert kept == [raised.value]


def test_the_error_of_a_job_is_told_though_its_files_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "own.json"))
    config = LaunchConfig(1, 1, 1, max_restarts=0, start_method="fork")
    with pytest.raises(ChildFailedError, match="KeyError: 'lost'"):
        record(elastic_launch(config, fail))(1)
    assert "KeyError: 'lost'" in (tmp_path / "own.json").read_text()
    assert elastic_launch(config, sys.exit)() == {0: None}


def test_an_error_is_raised_though_its_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "none" / "own.json"))
    with pytest.raises(ZeroDivisionError), pytest.warns(UserWarning, match="cannot be written"):
        record(lambda: 1 / 0)()
