"""The calls between the processes of a job: sending, running and answering them.

Owns a connection to each other process, a thread that reads it, and the threads that run what
others call. Reading never waits for anything else, so two processes may send to each other at the
same time.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import socket
import struct
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rushlight.distributed.errors import DistNetworkError
from rushlight.distributed.mesh import Mesh, channel_of, read_exactly
from rushlight.distributed.rpc._pickling import Parts, copied, read, room_for, thread, written
from rushlight.distributed.store import Store
from rushlight.futures import Future

__all__ = ["Agent", "WorkerInfo", "agent", "set_agent"]

_HEADER = struct.Struct("<BQI")  # kind, number of the call, number of parts whose sizes follow
_CALL, _ANSWER, _NOTICE = range(3)
_LARGE = 1 << 16  # bytes: smaller messages go as one piece


@dataclass(frozen=True)
class WorkerInfo:
    """A process that can be called.

    Attributes:
        name: the one that it gave to init_rpc.
        id: its rank.
    """

    name: str
    id: int

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


class _Answer(Future):
    """The result of a call. What waits for it by then() runs in a thread of its own."""

    def __init__(self, callbacks: ThreadPoolExecutor, receiver: int, deadline: float) -> None:
        super().__init__()
        self._pool = callbacks
        self.receiver = receiver
        self.deadline = deadline

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        super().add_done_callback(lambda done: self._pool.submit(callback, done) and None)


class Agent:
    """What this process has to do with the calls of a job.

    Args:
        store: of the job.
        name: of this process.
        rank, size: its number, and how many there are.
        threads: how many calls of others run at the same time.
        timeout: seconds that a call may take by default, 0 for no limit.

    Raises:
        RuntimeError: if two processes have the same name.
        DistError: if the others do not come in time.
    """

    def __init__(
        self, store: Store, name: str, rank: int, size: int, threads: int, timeout: float
    ) -> None:
        self.timeout = timeout
        self._store = store
        store.set(f"name/{rank}", name)
        self.workers = [WorkerInfo(store.get(f"name/{r}").decode(), r) for r in range(size)]
        self.me = self.workers[rank]
        by_name: dict[str, int] = {}
        for worker in self.workers:
            other = by_name.setdefault(worker.name, worker.id)
            if other != worker.id:
                raise RuntimeError(
                    f"init_rpc: ranks {other} and {worker.id} both are {worker.name!r}. Each "
                    "process has a name of its own."
                )
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # guards the six below
        self._is_idle = threading.Condition(self._lock)
        self._is_earlier = threading.Condition(self._lock)  # the next deadline
        self._waiting: dict[int, _Answer] = {}  # by number
        self._running = 0  # calls of others
        self._made = 0  # calls of this process
        self._lost: dict[int, str] = {}
        self._wakes_at = 0.0  # when the thread of deadlines looks again
        self._is_closed = False
        self._pool = ThreadPoolExecutor(threads, "rpc")
        self._callbacks = ThreadPoolExecutor(threads, "rpc callbacks")
        self._notices: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        self._mesh = Mesh(store, rank, size)
        seconds = store.timeout.total_seconds()
        self._connections: dict[int, socket.socket] = {}
        self._locks = [threading.Lock() for _ in range(size)]
        for other in range(size):
            if other != rank:
                connection = self._mesh.own_connection(other, channel_of("rpc", "calls"), seconds)
                connection.settimeout(None)
                self._connections[other] = connection

    def start(self) -> None:
        """Begins to answer calls, in which agent() is this one."""
        for other in self._connections:
            self._start_thread(self._read, other)
        self._start_thread(self._watch_deadlines)
        self._start_thread(self._send_notices)

    def _start_thread(self, function: Callable[..., None], *args: Any) -> None:
        threading.Thread(target=function, args=args, name="rpc", daemon=True).start()

    # Calling

    def worker(self, to: str | int | WorkerInfo) -> WorkerInfo:
        """Returns a process by its name, number or itself.

        Raises:
            RuntimeError: if there is none.
            ValueError: for something else.
        """
        if not isinstance(to, str | int | WorkerInfo):
            raise ValueError(f"Cannot get WorkerInfo from name {to}")
        for worker in self.workers:
            if to in (worker, worker.id, worker.name):
                return worker
        names = ", ".join(worker.name for worker in self.workers)
        raise RuntimeError(f"Unknown destination worker {to}. There are {names}.")

    def call(
        self, to: WorkerInfo, func: Callable[..., Any], args: Any, kwargs: Any, timeout: float = -1
    ) -> Future:
        """Begins func(*args, **kwargs) in a process.

        Args:
            timeout: seconds, 0 for no limit, -1 for the default.
        """
        if not callable(func):
            raise TypeError("function should be callable.")
        scope = thread.tape and thread.tape.scope(to.id)
        message = written((func, tuple(args or ()), kwargs or {}, scope), to.id)
        seconds = self.timeout if timeout < 0 else timeout
        deadline = time.monotonic() + seconds if seconds else float("inf")
        answer = _Answer(self._callbacks, to.id, deadline)
        number = next(self._numbers)
        with self._lock:
            self._made += 1
            lost = self._lost.get(to.id)
            self._waiting[number] = answer
            if deadline < self._wakes_at:
                self._is_earlier.notify()
        try:
            if lost is not None:
                raise DistNetworkError(lost)
            if to.id == self.me.id:
                self._serve(to.id, number, copied(message))
            else:
                self._send(to.id, _CALL, number, message)
        except DistNetworkError as error:
            self._settle(number, error=error)
        return answer

    def notify(self, to: int, func: Callable[..., None], *args: Any) -> None:
        """Has func(*args) called in a process soon, in the order of such calls. Never waits."""
        self._notices.put((to, (func, args)))

    def notify_now(self, to: int, func: Callable[..., None], *args: Any) -> None:
        """Has func(*args) called in a process, before what is sent there afterwards."""
        if to == self.me.id:
            func(*args)
        else:
            self._send(to, _NOTICE, 0, written((func, args), to))

    def _send_notices(self) -> None:
        while notice := self._notices.get():
            to, (func, args) = notice
            with contextlib.suppress(DistNetworkError):  # who has ended need not know
                self.notify_now(to, func, *args)

    def _send(self, to: int, kind: int, number: int, message: Parts) -> None:
        sizes = [len(part) for part in message]
        header = _HEADER.pack(kind, number, len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
        parts = [header, *message]
        if sum(sizes) < _LARGE:
            parts = [b"".join(parts)]
        try:
            with self._locks[to]:
                for part in parts:
                    self._connections[to].sendall(part)
        except OSError:
            raise DistNetworkError(self._lost.get(to) or self._loss(to)) from None

    def _settle(self, number: int, value: Any = None, error: BaseException | None = None) -> None:
        """Ends a call, unless it has ended by its deadline."""
        with self._lock:
            answer = self._waiting.pop(number, None)
            self._is_idle.notify_all()
        if answer is not None and error is None:
            answer.set_result(value)
        elif answer is not None and error is not None:
            answer.set_exception(error)

    def _watch_deadlines(self) -> None:
        while not self._is_closed:
            with self._lock:
                now = time.monotonic()
                late = {n: answer for n, answer in self._waiting.items() if answer.deadline <= now}
                if not late:
                    deadlines = (answer.deadline for answer in self._waiting.values())
                    self._wakes_at = min(deadlines, default=float("inf"))
                    self._is_earlier.wait(min(self._wakes_at - now, threading.TIMEOUT_MAX))
            for number, answer in late.items():
                error = RuntimeError(
                    "RPC ran for more than set timeout and will now be marked with an error: "
                    f"{self.workers[answer.receiver].name} did not answer in time. Give a longer "
                    "timeout, or 0 for none."
                )
                self._settle(number, error=error)

    # Being called

    def _read(self, sender: int) -> None:
        """Reads what a process sends, until it ends."""
        connection = self._connections[sender]
        try:
            while True:
                header = read_exactly(connection, bytearray(_HEADER.size))
                kind, number, count = _HEADER.unpack(header)
                sizes = struct.unpack(f"<{count}Q", read_exactly(connection, bytearray(8 * count)))
                message = [room_for(size) for size in sizes]
                for part in message:
                    read_exactly(connection, part)
                if kind == _CALL:
                    self._serve(sender, number, message)
                elif kind == _ANSWER:
                    self._take_answer(number, message)
                else:
                    func, args = read(message)
                    func(*args)
        except (OSError, EOFError, RuntimeError):  # the last: the threads have ended
            self._lose(sender)

    def loss_of(self, rank: int) -> str | None:
        """Returns what is to be said of a process that has ended, None of one that goes on."""
        return self._lost.get(rank)

    def _loss(self, rank: int) -> str:
        return (
            f"rpc: {self.workers[rank].name} has ended, or left the job. See its output for the "
            "reason."
        )

    def _lose(self, rank: int) -> None:
        with self._lock:
            self._lost[rank] = self._loss(rank)
            numbers = [n for n, answer in self._waiting.items() if answer.receiver == rank]
        for number in numbers:
            self._settle(number, error=DistNetworkError(self._lost[rank]))

    def _serve(self, sender: int, number: int, message: Parts) -> None:
        """Has a call run in a thread."""
        with self._lock:
            self._running += 1
        self._pool.submit(self._run, sender, number, message)

    def _run(self, sender: int, number: int, message: Parts) -> None:
        try:
            func, args, kwargs, scope = read(message)
            with scope or contextlib.nullcontext():
                result = func(*args, **kwargs)
            if getattr(func, "answers_later", False):
                result.add_done_callback(lambda done: self._answer(sender, number, done, scope))
                return
        except BaseException as error:
            self._answer(sender, number, _failed(error))
        else:
            self._answer(sender, number, _done(result), scope)

    def _answer(
        self,
        to: int,
        number: int,
        result: Future,
        scope: contextlib.AbstractContextManager[Any] | None = None,
    ) -> None:
        """Sends the result of a call, with history in the scope of a tape."""
        try:
            with scope or contextlib.nullcontext():
                message = written((True, result.value()), to)
        except BaseException as error:
            message = self._described(error, to)
        with contextlib.suppress(DistNetworkError):  # nobody waits any more
            if to == self.me.id:
                self._take_answer(number, copied(message))
            else:
                self._send(to, _ANSWER, number, message)
        with self._lock:
            self._running -= 1
            self._is_idle.notify_all()

    def _described(self, error: BaseException, to: int) -> Parts:
        text = "".join(traceback.format_exception(error))
        text = f"On {self.me}:\n{error!r}\n{text}"
        kind = type(error) if isinstance(error, Exception) else RuntimeError
        try:
            return written((False, (kind, text)), to)
        except Exception:  # a class that the caller cannot find
            return written((False, (RuntimeError, text)), to)

    def _take_answer(self, number: int, message: Parts) -> None:
        try:
            is_good, value = read(message)
        except Exception as error:
            self._settle(number, error=error)
            return
        if is_good:
            self._settle(number, value)
            return
        kind, text = value
        try:
            error = kind(text)
        except Exception:  # its constructor takes something else
            error = RuntimeError(text)
        self._settle(number, error=error)

    # The end

    def wait_for_all(self, timeout: float) -> None:
        """Waits until no process has calls to make or to answer: each has called this, and made no
        call since the round before.

        Args:
            timeout: seconds, 0 for no limit.

        Raises:
            DistNetworkError: if a process has ended before.
            RuntimeError: if it takes too long.
        """
        end = time.monotonic() + timeout if timeout else float("inf")
        before: list[int] = []
        for number in itertools.count():
            with self._lock:
                while self._waiting or self._running:
                    self._is_idle.wait(min(1.0, self._left(end)))
                made = self._made
            self._store.set(f"round/{number}/{self.me.id}", str(made))
            all_made = [
                int(self._read_key(f"round/{number}/{worker.id}", worker.id, end))
                for worker in self.workers
            ]
            if all_made == before:
                return
            before = all_made

    def _read_key(self, key: str, rank: int, end: float) -> bytes:
        while True:
            lost = self._lost.get(rank)  # before the check: a process may write the key and leave
            if self._store.check([key]):
                return self._store.get(key)
            if lost:
                raise DistNetworkError(lost)
            time.sleep(min(0.002, self._left(end)))

    def _left(self, end: float) -> float:
        left = end - time.monotonic()
        if left <= 0:
            raise RuntimeError("shutdown: not all processes came, or ended their calls, in time.")
        return left

    def leave(self) -> None:
        """Tells that this process needs the store no more; the one that has it waits for all."""
        self._store.set(f"left/{self.me.id}", "")
        if self.me.id == 0:
            for worker in self.workers:
                while not self._store.check([f"left/{worker.id}"]) and worker.id not in self._lost:
                    time.sleep(0.002)

    def close(self) -> None:
        """Ends connections and threads."""
        with self._lock:
            self._is_closed = True
            self._is_earlier.notify()
        self._notices.put(None)
        self._mesh.close()
        for worker in self.workers:
            self._lose(worker.id)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._callbacks.shutdown(wait=False)


def _done(value: Any) -> Future:
    future = Future()
    future.set_result(value)
    return future


def _failed(error: BaseException) -> Future:
    future = Future()
    future.set_exception(error)
    return future


_current: list[Agent] = []


def agent() -> Agent:
    """Returns the agent of this process.

    Raises:
        RuntimeError: before init_rpc and after shutdown.
    """
    if not _current:
        raise RuntimeError(
            "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first."
        )
    return _current[0]


def set_agent(new: Agent | None) -> None:
    """Changes the agent of this process."""
    _current[:] = [] if new is None else [new]


def _is_current_rpc_agent_set() -> bool:
    """Whether init_rpc was called."""
    return bool(_current)
