"""What a rendezvous is asked, what it answers, and the registry of those that there are."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rushlight.distributed.elastic.utils.distributed import get_free_port
from rushlight.distributed.store import Store

__all__ = [
    "RendezvousClosedError",
    "RendezvousConnectionError",
    "RendezvousError",
    "RendezvousGracefulExitError",
    "RendezvousHandler",
    "RendezvousHandlerCreator",
    "RendezvousHandlerRegistry",
    "RendezvousInfo",
    "RendezvousParameters",
    "RendezvousStateError",
    "RendezvousStoreInfo",
    "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]


class RendezvousError(Exception):
    """What goes wrong while machines find each other."""


class RendezvousClosedError(RendezvousError):
    """The job is over: nobody joins it any more."""


class RendezvousTimeoutError(RendezvousError):
    """Not enough machines came in time."""


class RendezvousConnectionError(RendezvousError):
    """The store cannot be reached."""


class RendezvousStateError(RendezvousError):
    """The store has something else where the state should be."""


class RendezvousGracefulExitError(RendezvousError):
    """Raised by a handler for a machine that is not needed, and ends without a failure."""


@dataclass
class RendezvousStoreInfo:
    """Where the processes of the job have their store."""

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"

    master_addr: str
    master_port: int

    @staticmethod
    def build(
        rank: int, store: Store, local_addr: str | None, server_port: int | None = None
    ) -> RendezvousStoreInfo:
        """Returns an address of machine 0, which it tells the others.

        Args:
            rank: which of the machines this is.
            store: which they share.
            local_addr: what the others call this machine; its name by default.
            server_port: of machine 0; a free one by default.

        Example:
            >>> from rushlight.distributed.elastic.rendezvous import RendezvousStoreInfo
            >>> RendezvousStoreInfo.build(0, torch.distributed.HashStore(), "here", 2950)
            RendezvousStoreInfo(master_addr='here', master_port=2950)
        """
        address, port = RendezvousStoreInfo.MASTER_ADDR_KEY, RendezvousStoreInfo.MASTER_PORT_KEY
        if rank == 0:
            store.set(address, local_addr or socket.getfqdn())
            store.set(port, str(server_port or get_free_port()))
        return RendezvousStoreInfo(store.get(address).decode(), int(store.get(port)))


@dataclass(frozen=True)
class RendezvousInfo:
    """What a machine knows when all have found each other.

    Args:
        store: which the launchers share.
        rank: which of the machines this is.
        world_size: how many there are.
        bootstrap_store_info: where the processes have their store.
    """

    store: Store
    rank: int
    world_size: int
    bootstrap_store_info: RendezvousStoreInfo


class RendezvousHandler(ABC):
    """How a launcher finds those of the other machines."""

    @abstractmethod
    def get_backend(self) -> str:
        """Returns the name of the backend."""

    @property
    def use_agent_store(self) -> bool:
        """Whether processes use a store of machine 0's launcher, and not one of rank 0."""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Waits until enough machines are here, this one among them.

        Raises:
            RendezvousClosedError: if the job is over.
            RendezvousConnectionError: if the store cannot be reached.
            RendezvousStateError: if it is damaged.
            RendezvousTimeoutError: if too few come in time.
        """

    @abstractmethod
    def is_closed(self) -> bool:
        """Returns whether the job is over."""

    @abstractmethod
    def set_closed(self) -> None:
        """Tells all that the job is over."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """Returns how many machines wait for the others to call next_rendezvous again."""

    @abstractmethod
    def get_run_id(self) -> str:
        """Returns the job's name."""

    @abstractmethod
    def shutdown(self) -> bool:
        """Leaves, and tells all that the job is over. Returns whether that went well."""


class RendezvousParameters:
    """What a handler is made of.

    Args:
        backend: its name, such as "c10d".
        endpoint: host:port of the store.
        run_id: the job's name.
        min_nodes, max_nodes: how many machines there are.
        local_addr: what the others call this machine.
        **kwargs: what else the backend takes.

    Raises:
        ValueError: for wrong numbers, or without a backend.

    Example:
        >>> from rushlight.distributed.elastic.rendezvous import RendezvousParameters
        >>> params = RendezvousParameters("c10d", "host:29400", "job", 1, 4, join_timeout="60")
        >>> params.get_as_int("join_timeout"), params.get_as_bool("is_host")
        (60, None)
    """

    def __init__(
        self,
        backend: str,
        endpoint: str,
        run_id: str,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        **kwargs: Any,
    ) -> None:
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if not 1 <= min_nodes <= max_nodes:
            raise ValueError(
                f"RendezvousParameters: {min_nodes} to {max_nodes} nodes. There is at least one, "
                "and max_nodes is not less than min_nodes."
            )
        self.backend = backend
        self.endpoint = endpoint
        self.run_id = run_id
        self.min_nodes = min_nodes
        self.max_nodes = max_nodes
        self.local_addr = local_addr
        self.config = kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """Returns what else was given under a name."""
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """Returns it as True or False, which texts and 0 and 1 can say.

        Raises:
            ValueError: if it says neither.
        """
        value = self.get(key, default)
        text = str(value).lower()
        if value is None or isinstance(value, bool):
            return value
        if text in ("1", "true", "t", "yes", "y"):
            return True
        if text in ("0", "false", "f", "no", "n"):
            return False
        raise ValueError(
            f"The rendezvous configuration option '{key}' does not represent a valid boolean "
            f"value: {value!r}. Give True or False."
        )

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """Returns it as a number.

        Raises:
            ValueError: if it is none.
        """
        value = self.get(key, default)
        try:
            return None if value is None else int(value)
        except ValueError:
            raise ValueError(
                f"The rendezvous configuration option '{key}' does not represent a valid integer "
                f"value: {value!r}."
            ) from None


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """Makes handlers by the names of their backends."""

    def __init__(self) -> None:
        self._creators: dict[str, RendezvousHandlerCreator] = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """Adds a backend.

        Args:
            backend: its name.
            creator: makes a handler of RendezvousParameters.

        Raises:
            ValueError: if the name is empty, or another's.
        """
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        other = self._creators.setdefault(backend, creator)
        if other != creator:
            raise ValueError(
                f"The rendezvous backend '{backend}' is already registered with '{other}'. Choose "
                "another name."
            )

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """Returns a new handler.

        Raises:
            ValueError: if there is no such backend.
            RuntimeError: if the handler says that it is another's.
        """
        if params.backend not in self._creators:
            raise ValueError(
                f"The rendezvous backend '{params.backend}' is not registered. Did you forget to "
                f"call `register`? There are: {', '.join(self._creators)}."
            )
        handler = self._creators[params.backend](params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(
                f"The rendezvous backend '{handler.get_backend()}' does not match the requested "
                f"backend '{params.backend}'."
            )
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()
