"""Starts the processes of a job: python -m rushlight.distributed.run --nproc-per-node 2 train.py

Each process gets its place in the environment: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and the
others that PyTorch's torchrun sets, so that init_process_group needs no arguments. When one fails,
the others are ended, and all are started again if --max-restarts allows it. The launcher of machine
0 has the store through which launchers and processes find each other. The number of machines is
fixed: processes cannot join or leave a job that runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from datetime import timedelta
from typing import Any

from rushlight.distributed.elastic.multiprocessing.api import Process
from rushlight.distributed.elastic.multiprocessing.errors import (
    ERROR_FILE,
    ChildFailedError,
    ProcessFailure,
)
from rushlight.distributed.elastic.utils.api import local_rank_environment
from rushlight.distributed.errors import DistError
from rushlight.distributed.store import PrefixStore, Store
from rushlight.distributed.tcp_store import TCPStore

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_LOCALHOST = "127.0.0.1"
_DEFAULT_PORT = 29500
_OUTPUTS = ("stdout", "stderr")
_GRACE = 30.0  # seconds between asking a process to end and ending it


_UNUSED = "accepted for PyTorch's sake"
_UNUSED_OPTIONS = (
    "--duplicate-stderr-filters",
    "--duplicate-stdout-filters",
    "--event-log-handler",
    "--local-addr",
    "--logs-specs",
    "--numa-binding",
    "--signals-to-handle",
    "--start-method",
)


def _streams(text: str) -> dict[int, int]:
    """Which outputs, by LOCAL_RANK; -1 stands for all others."""
    pairs = [pair.rpartition(":") for pair in text.split(",")]
    streams = {int(rank or -1): int(bits) for rank, _, bits in pairs}
    if not all(0 <= bits <= 3 for bits in streams.values()):
        raise ValueError
    return streams


def _ranks(text: str) -> set[int]:
    return {int(rank) for rank in text.split(",")}


def get_args_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line; options may be written with - or _."""
    parser = argparse.ArgumentParser(
        prog="python -m rushlight.distributed.run", description="Starts the processes of a job."
    )

    def add(name: str, *more: str, **options: Any) -> None:
        spellings = {name, "--" + name[2:].replace("-", "_")}
        parser.add_argument(*more, *sorted(spellings), **options)

    add("--nnodes", default="1", help="number of machines")
    add("--nproc-per-node", default="1", help="processes on each: a number, auto, cpu or gpu")
    add("--node-rank", type=int, default=None, help="which of the machines this is, from 0")
    add("--master-addr", default=_LOCALHOST, help="machine 0")
    add("--master-port", type=int, default=_DEFAULT_PORT, help="a port that is free there")
    add("--standalone", action="store_true", help="this machine alone, on any free port")
    add("--rdzv-backend", default="static", help="static or c10d: both are the store of machine 0")
    add("--rdzv-endpoint", default="", help="host:port, for --master-addr and --master-port")
    add("--rdzv-id", default="none", help="the job's name, the same on all machines")
    add("--rdzv-conf", default="", help="join_timeout=SECONDS for the other machines to come")
    add("--max-restarts", type=int, default=0, help="how often all may be started again")
    add("--monitor-interval", type=float, default=0.1, help="seconds between looks at them")
    add("--role", default="default", help="ROLE_NAME of the processes")
    add("--log-dir", default="", help="folder of what --redirects and --tee send to files")
    which = "1 stdout, 2 stderr, 3 both; or by LOCAL_RANK: 0:3,1:2"
    add("--redirects", "-r", type=_streams, default={}, help=which)
    add("--tee", "-t", type=_streams, default={}, help="to files and the terminal: " + which)
    add("--local-ranks-filter", type=_ranks, default=None, help="LOCAL_RANKs to be seen: 0,1")
    add("--virtual-local-rank", action="store_true", help="each sees its GPU alone, as number 0")
    add("--shutdown-timeout", type=float, default=_GRACE, help="seconds that they have to end")
    add("--module", "-m", action="store_true", help="the program is a module, as for python -m")
    add("--no-python", action="store_true", help="the program is run without Python")
    add("--run-path", action="store_true", help=_UNUSED)
    for name in _UNUSED_OPTIONS:
        add(name, help=_UNUSED)
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: list[str] | None = None) -> argparse.Namespace:
    """Returns the command line's options."""
    return get_args_parser().parse_args(args)


def _machines(text: str) -> int:
    least, _, most = text.partition(":")
    if most and least != most:
        raise ValueError(
            f"run: --nnodes {text}: the number of machines cannot change here. Give one number."
        )
    return int(least)


def _processes(text: str) -> int:
    if text.isdigit():
        return int(text)
    if text not in ("auto", "cpu", "gpu"):
        raise ValueError(f"run: --nproc-per-node {text}: give a number, auto, cpu or gpu.")
    from rushlight import cuda

    gpus = cuda.device_count() if text != "cpu" else 0
    if text == "gpu" and not gpus:
        raise ValueError("run: --nproc-per-node gpu: there is no GPU.")
    return gpus or len(os.sched_getaffinity(0))


def _named(streams: dict[int, int], local_rank: int) -> list[str]:
    """The outputs of a process that an option names."""
    bits = streams.get(local_rank, streams.get(-1, 0))
    return [name for i, name in enumerate(_OUTPUTS) if bits & (i + 1)]


def _copy_lines(source: Any, path: str, terminal: int, label: bytes) -> None:
    """Sends an output to a file and, with a label before each line, to the terminal."""
    with source, open(path, "wb") as file:
        for line in source:
            file.write(line)
            file.flush()
            os.write(terminal, label + line)


class Job:
    """The processes of this machine, and what the launchers of all machines tell each other."""

    def __init__(self, args: argparse.Namespace, passes_local_rank: bool = False) -> None:
        self._args = args
        self._passes_local_rank = passes_local_rank
        self._nodes = 1 if args.standalone else _machines(args.nnodes)
        self._local_size = _processes(args.nproc_per_node)
        self._node = args.node_rank or 0
        if self._nodes > 1 and args.node_rank is None:
            raise ValueError(f"run: --nnodes {self._nodes} needs --node-rank on each machine.")
        if not 0 <= self._node < self._nodes:
            raise ValueError(f"run: --node-rank {self._node} is not from 0 to {self._nodes - 1}.")
        for name in ("redirects", "tee"):
            if getattr(args, name) and not args.log_dir:
                raise ValueError(f"run: --{name} needs --log-dir, the folder of its files.")
        host, port = args.master_addr, args.master_port
        if args.standalone:
            host, port = _LOCALHOST, 0
        elif args.rdzv_endpoint:
            host, _, after = args.rdzv_endpoint.partition(":")
            port = int(after or _DEFAULT_PORT)
        conf = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if "=" in pair)
        timeout = timedelta(seconds=float(conf.get("join_timeout", 900)))
        self._host = host
        # Machine 0 reaches its own store even where its name cannot be looked up.
        self._tcp = TCPStore(
            host if self._node else _LOCALHOST, port, is_master=self._node == 0, timeout=timeout
        )
        name = str(uuid.uuid4()) if args.standalone else args.rdzv_id
        self._name = name
        self._store: Store = PrefixStore("launchers", self._tcp)
        self._folder = tempfile.mkdtemp(prefix="rushlight-run-")
        self._running: dict[int, Process] = {}
        self._copiers: list[threading.Thread] = []

    def run(self) -> None:
        """Runs all processes to their end.

        Raises:
            ChildFailedError: if some failed, as often as they may.
        """
        try:
            for attempt in range(self._args.max_restarts + 1):
                failures = self._attempt(attempt)
                if not failures:
                    break
                if attempt < self._args.max_restarts:
                    print(ChildFailedError(self._program(), failures), file=sys.stderr)
                    print(
                        f"run: starting again, {self._args.max_restarts - attempt} times at most",
                        file=sys.stderr,
                    )
                    continue
                raise ChildFailedError(self._program(), failures)
        finally:
            self._end(list(self._running.values()))
            for copier in self._copiers:
                copier.join(self._args.shutdown_timeout)
            shutil.rmtree(self._folder, ignore_errors=True)
            self._leave()

    def _program(self) -> str:
        return self._args.training_script

    def _attempt(self, attempt: int) -> dict[int, ProcessFailure]:
        """Starts all processes and waits for them; the failures by rank, the first one first."""
        first = self._node * self._local_size
        for local_rank in range(self._local_size):
            self._running[first + local_rank] = self._start(local_rank, attempt)
        failures: dict[int, ProcessFailure] = {}
        while not failures and (self._running or not self._all_machines_ended(attempt)):
            time.sleep(self._args.monitor_interval)
            failures = self._failures(attempt) or self._failure_elsewhere(attempt)
        if failures:
            if self._nodes > 1:
                rank, failure = next(iter(failures.items()))
                self._store.set(f"failed/{attempt}", f"{rank}\n{failure.told()}")
            self._end(list(self._running.values()))
            self._running.clear()
        return failures

    def _start(self, local_rank: int, attempt: int) -> Process:
        """Starts one process."""
        shown = self._args.local_ranks_filter
        is_shown = shown is None or local_rank in shown
        outputs: dict[str, Any] = {} if is_shown else dict.fromkeys(_OUTPUTS, subprocess.DEVNULL)
        doubled = _named(self._args.tee, local_rank) if is_shown else []
        with contextlib.ExitStack() as files:
            paths = self._output_files(local_rank, attempt)
            for name in paths.keys() - doubled:
                outputs[name] = files.enter_context(open(paths[name], "wb"))
            outputs |= dict.fromkeys(doubled, subprocess.PIPE)
            process = subprocess.Popen(
                self._command(local_rank),
                env=self._environment(local_rank, attempt),
                stdout=outputs.get("stdout"),
                stderr=outputs.get("stderr"),
            )
        label = f"[{self._args.role}{local_rank}]:".encode()
        for name in doubled:
            ends = getattr(process, name), paths[name], getattr(sys, name).fileno(), label
            copier = threading.Thread(target=_copy_lines, args=ends, daemon=True)
            copier.start()
            self._copiers.append(copier)
        return process

    def _all_machines_ended(self, attempt: int) -> bool:
        """Whether the processes of all machines ended well, as those of this one did."""
        if self._nodes == 1:
            return True
        self._store.set(f"ended/{attempt}/{self._node}", b"")
        return self._store.check([f"ended/{attempt}/{node}" for node in range(self._nodes)])

    def _failure_elsewhere(self, attempt: int) -> dict[int, ProcessFailure]:
        if self._nodes == 1 or not self._store.check([f"failed/{attempt}"]):
            return {}
        rank, text = self._store.get(f"failed/{attempt}").decode().split("\n", 1)
        return {int(rank): ProcessFailure.read(text)}

    def _failures(self, attempt: int) -> dict[int, ProcessFailure]:
        """Those that have ended badly. Those that ended well are not looked at again."""
        failures: list[tuple[int, ProcessFailure]] = []
        for rank, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            del self._running[rank]
            if code:
                local_rank = rank - self._node * self._local_size
                file = self._error_file(rank, attempt)
                failures.append((rank, ProcessFailure(local_rank, process.pid or 0, code, file)))
        # Who failed because another did often ends within the same look: the one that knows
        # a reason of its own is the first.
        failures.sort(key=lambda item: "DistNetworkError" in item[1].message)
        for _, first in failures[:1]:
            first.timestamp = min(failure.timestamp for _, failure in failures)
        return dict(failures)

    def _output_files(self, local_rank: int, attempt: int) -> dict[str, str]:
        """Where the outputs of a process go that --redirects or --tee names."""
        place = (self._args.log_dir, self._name, f"attempt_{attempt}", str(local_rank))
        redirected, doubled = (
            _named(streams, local_rank) for streams in (self._args.redirects, self._args.tee)
        )
        names = [name for name in _OUTPUTS if name in redirected + doubled]
        if names:
            os.makedirs(os.path.join(*place), exist_ok=True)
        return {name: os.path.join(*place, f"{name}.log") for name in names}

    def _error_file(self, rank: int, attempt: int) -> str:
        return os.path.join(self._folder, f"{attempt}-{rank}.json")

    def _command(self, local_rank: int) -> list[str]:
        program = [self._program()]
        if self._passes_local_rank:
            program.append(f"--local-rank={local_rank}")
        program += self._args.training_script_args
        if self._args.no_python:
            return program
        # A launcher that stands in for PyTorch's starts programs that say `import torch`.
        stand_in = ["-m", "rushlight.as_torch"] if "rushlight.as_torch" in sys.modules else []
        how = stand_in + (["-m"] if self._args.module else [])
        return [sys.executable, "-u", *how, *program]

    def _environment(self, local_rank: int, attempt: int) -> dict[str, str]:
        rank = self._node * self._local_size + local_rank
        size = self._nodes * self._local_size
        places = {
            "RANK": rank,
            "WORLD_SIZE": size,
            "LOCAL_WORLD_SIZE": self._local_size,
            "GROUP_RANK": self._node,
            "GROUP_WORLD_SIZE": self._nodes,
            "ROLE_RANK": rank,
            "ROLE_WORLD_SIZE": size,
            "ROLE_NAME": self._args.role,
            "MASTER_ADDR": self._host,
            "MASTER_PORT": self._tcp.port,
            "TORCHELASTIC_RESTART_COUNT": attempt,
            "TORCHELASTIC_MAX_RESTARTS": self._args.max_restarts,
            "TORCHELASTIC_RUN_ID": self._name,
            "TORCHELASTIC_USE_AGENT_STORE": True,
            ERROR_FILE: self._error_file(rank, attempt),
        }
        own = local_rank_environment(local_rank, self._args.virtual_local_rank)
        return os.environ | {name: str(value) for name, value in places.items()} | own

    def _end(self, processes: list[Process]) -> None:
        for process in processes:
            process.terminate()
        end = time.monotonic() + self._args.shutdown_timeout
        for process in processes:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _leave(self) -> None:
        """Keeps the store until all launchers have done with it."""
        try:
            self._store.set(f"done/{self._node}", b"")
            if self._node == 0:
                everyone = [f"done/{node}" for node in range(self._nodes)]
                self._store.wait(everyone, timedelta(seconds=_GRACE))
        except DistError:
            pass  # a machine that failed says so itself


def run(args: argparse.Namespace, passes_local_rank: bool = False) -> None:
    """Runs a job to its end.

    Args:
        args: what parse_args returned.
        passes_local_rank: whether the programs get --local-rank, as those of launch.py do.

    Raises:
        ChildFailedError: if processes failed.
    """
    Job(args, passes_local_rank).run()


def main(args: list[str] | None = None, passes_local_rank: bool = False) -> None:
    """Runs a command line, and exits with what is wrong if something is."""

    def on_sigterm(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, on_sigterm)
    try:
        run(parse_args(args), passes_local_rank)
    except (ChildFailedError, ValueError, DistError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
