"""The rendezvous of machines that are numbered beforehand: the store of machine 0."""

from __future__ import annotations

from datetime import timedelta

from rushlight.distributed.elastic.rendezvous.api import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
)
from rushlight.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
from rushlight.distributed.store import PrefixStore
from rushlight.distributed.tcp_store import TCPStore

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]


class StaticTCPRendezvous(RendezvousHandler):
    """Machines that are numbered beforehand, of which none comes later or leaves.

    Args:
        master_addr, master_port: where machine 0 has the store.
        rank: which of them this is.
        world_size: how many there are.
        run_id: the job's name.
        timeout: seconds to wait for the others.
    """

    def __init__(
        self,
        master_addr: str,
        master_port: int,
        rank: int,
        world_size: int,
        run_id: str,
        timeout: int,
    ) -> None:
        self.master_addr = master_addr
        self.master_port = master_port
        self.rank = rank
        self.world_size = world_size
        self.run_id = run_id
        self.timeout = timedelta(seconds=timeout)
        self._store: TCPStore | None = None

    def get_backend(self) -> str:
        """Returns "static"."""
        return "static"

    @property
    def use_agent_store(self) -> bool:
        """True: the store of machine 0's launcher is the processes' too."""
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        """See RendezvousHandler."""
        if self._store is None:
            self._store = TCPStore(
                self.master_addr,
                self.master_port,
                self.world_size,
                self.rank == 0,
                self.timeout,
                multi_tenant=True,
            )
        info = RendezvousStoreInfo(self.master_addr, self._store.port)
        store = PrefixStore(self.run_id, self._store)
        return RendezvousInfo(store, self.rank, self.world_size, info)

    def is_closed(self) -> bool:
        """Returns False."""
        return False

    def set_closed(self) -> None:
        """Has no effect."""

    def num_nodes_waiting(self) -> int:
        """Returns 0."""
        return 0

    def get_run_id(self) -> str:
        """Returns the job's name."""
        return self.run_id

    def shutdown(self) -> bool:
        """Returns True."""
        return True


def create_rdzv_handler(params: RendezvousParameters) -> StaticTCPRendezvous:
    """Returns a handler.

    Args:
        params: with "rank", which of the machines this is, and perhaps "timeout" in seconds.

    Raises:
        ValueError: if the rank or the endpoint is missing.
    """
    if "rank" not in params.config:
        raise ValueError("static rendezvous: rank is missing. Give rank=, which machine this is.")
    host, port = parse_rendezvous_endpoint(params.endpoint, -1)
    if not params.endpoint.strip() or port == -1:
        raise ValueError(f"static rendezvous: endpoint {params.endpoint!r}. Give host:port.")
    timeout = params.get_as_int("timeout", 600)
    assert timeout is not None
    rank = int(params.config["rank"])
    return StaticTCPRendezvous(host, port, rank, params.max_nodes, params.run_id, timeout)
