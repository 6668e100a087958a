"""The rendezvous of machines that come and go.

All share one state, which is changed by who has read it last. A round is open until there are
enough machines, and then complete until all of it have left, because they ended or begin anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

from rushlight.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)
from rushlight.distributed.store import PrefixStore, Store

__all__ = [
    "DynamicRendezvousHandler",
    "RendezvousBackend",
    "RendezvousSettings",
    "RendezvousTimeout",
    "Token",
    "create_handler",
]

Token = Any  # what a backend tells one value of the state from another by

_PAUSE = 0.1  # seconds between two looks at the state


class RendezvousBackend(ABC):
    """Where the state is kept."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The backend's name."""

    @abstractmethod
    def get_state(self) -> tuple[bytes, Token] | None:
        """Returns the state and its token; None if there is none yet."""

    @abstractmethod
    def set_state(
        self, state: bytes, token: Token | None = None
    ) -> tuple[bytes, Token, bool] | None:
        """Sets the state, if it is still the one of a token, or none without one.

        Returns:
            What is there then, its token, and whether it was set.
        """


class RendezvousTimeout:
    """How long things may take.

    Args:
        join: until there are enough machines; 600 seconds by default.
        last_call: after that, until those are here that come late; 30 seconds by default.
        close, heartbeat: accepted for PyTorch's sake: the store's own timeout counts.

    Raises:
        ValueError: if one is less than 0, or another than last_call is 0.
    """

    def __init__(
        self,
        join: timedelta | None = None,
        last_call: timedelta | None = None,
        close: timedelta | None = None,
        heartbeat: timedelta | None = None,
    ) -> None:
        self.join = timedelta(seconds=600) if join is None else join
        self.last_call = timedelta(seconds=30) if last_call is None else last_call
        self.close = timedelta(seconds=30) if close is None else close
        self.heartbeat = timedelta(seconds=5) if heartbeat is None else heartbeat
        for name, value in vars(self).items():
            if value < timedelta(0) or (not value and name != "last_call"):
                raise ValueError(f"The {name} timeout ({value}) must be positive.")


@dataclass(frozen=True)
class RendezvousSettings:
    """What a rendezvous is like.

    Args:
        run_id: the job's name.
        min_nodes, max_nodes: how many machines there are.
        timeout: how long things may take.
        keep_alive_interval: between two signs of life.
        keep_alive_max_attempt: after how many that are missing a machine counts as lost.
    """

    run_id: str
    min_nodes: int
    max_nodes: int
    timeout: RendezvousTimeout
    keep_alive_interval: timedelta
    keep_alive_max_attempt: int


@dataclass
class _State:
    """What all machines know.

    Attributes:
        round: how often they have found each other before.
        complete: whether they have in this round.
        closed: whether the job is over.
        deadline: when the round is complete without more machines, in seconds since 1970.
        participants: the machines of the round, by rank.
        waiting: those that came when it was complete.
        beats: when each gave the last sign of life.
    """

    round: int = 0
    complete: bool = False
    closed: bool = False
    deadline: float | None = None
    participants: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    beats: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, data: bytes) -> _State:
        try:
            return cls(**json.loads(data))
        except (ValueError, TypeError) as error:
            raise RendezvousStateError(f"{data[:50]!r} is no state: {error}") from error

    def written(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def join(self, name: str, settings: RendezvousSettings) -> None:
        """Lets a machine take part, or wait if the round is complete and there is place."""
        if self.closed or name in self.participants:
            pass
        elif self.complete:
            if name not in self.waiting and len(self.participants) < settings.max_nodes:
                self.waiting.append(name)
        else:
            self.participants.append(name)
            self.waiting = [other for other in self.waiting if other != name]
        number, now = len(self.participants), time.time()
        if not self.complete and number >= settings.min_nodes:
            if self.deadline is None:
                self.deadline = now + settings.timeout.last_call.total_seconds()
            self.complete = number >= settings.max_nodes or now >= self.deadline

    def leave(self, name: str, settings: RendezvousSettings) -> None:
        """Takes a machine out. The last one opens the next round."""
        self.participants = [other for other in self.participants if other != name]
        self.waiting = [other for other in self.waiting if other != name]
        self.beats.pop(name, None)
        if not self.participants and self.complete:
            self.complete = False
            self.round += 1
        if not self.complete and len(self.participants) < settings.min_nodes:
            self.deadline = None

    def drop_the_lost(self, settings: RendezvousSettings) -> None:
        """Takes out the machines that have given no sign of life for too long."""
        patience = settings.keep_alive_interval * settings.keep_alive_max_attempt
        oldest = time.time() - patience.total_seconds()
        for name in [name for name, beat in self.beats.items() if beat < oldest]:
            self.leave(name, settings)


_numbers = count()  # of the handlers in this process


class DynamicRendezvousHandler(RendezvousHandler):
    """Machines that come and go. Made by from_backend, or by get_rendezvous_handler.

    Args:
        node: what this machine is called in the state, as no other.
        settings: what the rendezvous is like.
        store: which the launchers share.
        backend: where the state is kept.
        local_addr: what the others call this machine; its name by default.
    """

    @classmethod
    def from_backend(
        cls,
        run_id: str,
        store: Store,
        backend: RendezvousBackend,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        timeout: RendezvousTimeout | None = None,
        keep_alive_interval: int = 5,
        keep_alive_max_attempt: int = 3,
    ) -> DynamicRendezvousHandler:
        """Returns a handler.

        Args:
            store: which the launchers share.
            backend: where the state is kept.
            local_addr: what the others call this machine; its name by default.
            run_id, min_nodes, max_nodes, timeout, keep_alive_interval, keep_alive_max_attempt: see
                RendezvousSettings; the interval in seconds.

        Raises:
            ValueError: for wrong numbers, or without a name.

        Example:
            >>> from rushlight.distributed.elastic.rendezvous.c10d_rendezvous_backend import (
            ...     C10dRendezvousBackend
            ... )
            >>> from rushlight.distributed.elastic.rendezvous.dynamic_rendezvous import (
            ...     DynamicRendezvousHandler
            ... )
            >>> store = torch.distributed.HashStore()
            >>> backend = C10dRendezvousBackend(store, "job")
            >>> handler = DynamicRendezvousHandler.from_backend("job", store, backend, 1, 1, "here")
            >>> found = handler.next_rendezvous()
            >>> found.rank, found.world_size, found.bootstrap_store_info.master_addr
            (0, 1, 'here')
            >>> handler.shutdown(), handler.is_closed()
            (True, True)
        """
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        if not 1 <= min_nodes <= max_nodes:
            raise ValueError(
                f"DynamicRendezvousHandler: {min_nodes} to {max_nodes} nodes. There is at least "
                "one, and max_nodes is not less than min_nodes."
            )
        if keep_alive_interval <= 0 or keep_alive_max_attempt <= 0:
            raise ValueError(
                f"DynamicRendezvousHandler: keep_alive_interval {keep_alive_interval}, "
                f"keep_alive_max_attempt {keep_alive_max_attempt}. Give numbers greater than 0."
            )
        settings = RendezvousSettings(
            run_id,
            min_nodes,
            max_nodes,
            timeout or RendezvousTimeout(),
            timedelta(seconds=keep_alive_interval),
            keep_alive_max_attempt,
        )
        address = local_addr or socket.getfqdn()
        node = f"{address}_{os.getpid()}_{next(_numbers)}"
        return cls(node, settings, store, backend, address)

    def __init__(
        self,
        node: str,
        settings: RendezvousSettings,
        store: Store,
        backend: RendezvousBackend,
        local_addr: str,
    ) -> None:
        self.settings = settings
        self._node = node
        self._store = store
        self._backend = backend
        self._local_addr = local_addr
        self._lock = threading.Lock()  # the signs of life come from another thread
        self._stops = threading.Event()

    def _change(self, *edits: Callable[[_State], None]) -> _State:
        """Changes the state for all, and returns it."""
        with self._lock:
            while True:
                found = self._backend.get_state()
                data, token = found or (b"", None)
                state = _State.read(data) if found else _State()
                state.drop_the_lost(self.settings)
                for edit in edits:
                    edit(state)
                changed = state.written()
                if changed == data:
                    return state
                told = self._backend.set_state(changed, token)
                if told is not None and told[2]:
                    return state

    def _join(self, state: _State) -> None:
        state.join(self._node, self.settings)
        self._beat(state)

    def _leave(self, state: _State) -> None:
        state.leave(self._node, self.settings)

    def _beat(self, state: _State) -> None:
        """Gives a sign of life, unless this machine is lost, or has given one just now."""
        if self._node in state.participants + state.waiting:
            pause = self.settings.keep_alive_interval.total_seconds() / 2
            if time.time() - state.beats.get(self._node, 0.0) >= pause:
                state.beats[self._node] = time.time()

    def get_backend(self) -> str:
        """Returns the backend's name."""
        return self._backend.name

    def next_rendezvous(self) -> RendezvousInfo:
        """See RendezvousHandler."""
        self._stops.set()
        end = time.monotonic() + self.settings.timeout.join.total_seconds()
        state = self._change(self._leave, self._join)
        while not (state.complete and self._node in state.participants):
            if state.closed:
                raise RendezvousClosedError(f"The job '{self.settings.run_id}' is over.")
            if time.monotonic() >= end:
                self._change(self._leave)
                raise RendezvousTimeoutError(
                    f"After {self.settings.timeout.join} there are {len(state.participants)} "
                    f"machines of '{self.settings.run_id}', of which {self.settings.min_nodes} are "
                    "needed. Give a longer join_timeout, or start the others sooner."
                )
            time.sleep(_PAUSE)
            state = self._change(self._join)
        self._stops = threading.Event()
        threading.Thread(
            target=_keep_alive,
            args=(weakref.ref(self), self.settings.keep_alive_interval, self._stops),
            daemon=True,
        ).start()
        prefix = f"torch.rendezvous.{self.settings.run_id}.{state.round}"
        store = PrefixStore(prefix, self._store)
        rank = state.participants.index(self._node)
        info = RendezvousStoreInfo.build(rank, store, self._local_addr)
        return RendezvousInfo(store, rank, len(state.participants), info)

    def is_closed(self) -> bool:
        """Returns whether the job is over."""
        return self._change().closed

    def set_closed(self) -> None:
        """Tells all that the job is over."""

        def close(state: _State) -> None:
            state.closed = True

        self._change(close)

    def num_nodes_waiting(self) -> int:
        """Returns how many machines wait for the next round."""
        return len(self._change().waiting)

    def get_run_id(self) -> str:
        """Returns the job's name."""
        return self.settings.run_id

    def shutdown(self) -> bool:
        """See RendezvousHandler."""
        self._stops.set()
        try:
            self.set_closed()
        except RendezvousError:
            return False
        return True


def _keep_alive(
    find: Callable[[], DynamicRendezvousHandler | None], pause: timedelta, stops: threading.Event
) -> None:
    """Gives signs of life until a handler is told to stop, or nobody has it any more."""
    while not stops.wait(pause.total_seconds()) and (handler := find()) is not None:
        with contextlib.suppress(RendezvousError):  # the next one may come through
            handler._change(handler._beat)
        del handler


def create_handler(
    store: Store, backend: RendezvousBackend, params: RendezvousParameters
) -> DynamicRendezvousHandler:
    """Returns a handler.

    Args:
        store: which the launchers share.
        backend: where the state is kept.
        params: with "join_timeout", "last_call_timeout", "close_timeout", "heartbeat_timeout" and
            "keep_alive_interval", in seconds, and "keep_alive_max_attempt".
    """

    def seconds(name: str) -> timedelta | None:
        value = params.get_as_int(f"{name}_timeout")
        return None if value is None else timedelta(seconds=value)

    return DynamicRendezvousHandler.from_backend(
        params.run_id,
        store,
        backend,
        params.min_nodes,
        params.max_nodes,
        params.local_addr,
        RendezvousTimeout(*map(seconds, ("join", "last_call", "close", "heartbeat"))),
        params.get_as_int("keep_alive_interval", 5) or 0,
        params.get_as_int("keep_alive_max_attempt", 3) or 0,
    )
