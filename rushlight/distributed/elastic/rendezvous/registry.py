"""The backends that there are, and handlers by their names."""

from __future__ import annotations

from rushlight.distributed.elastic.rendezvous import static_tcp_rendezvous
from rushlight.distributed.elastic.rendezvous.api import (
    RendezvousHandler,
    RendezvousParameters,
    rendezvous_handler_registry,
)
from rushlight.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
from rushlight.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler

__all__ = ["get_rendezvous_handler"]


def _c10d(params: RendezvousParameters) -> RendezvousHandler:
    backend, store = create_backend(params)
    return create_handler(store, backend, params)


rendezvous_handler_registry.register("static", static_tcp_rendezvous.create_rdzv_handler)
rendezvous_handler_registry.register("c10d", _c10d)


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """Returns a new handler of the backend that is named.

    Raises:
        ValueError: if there is none, or it lacks something.

    Example:
        >>> from rushlight.distributed.elastic.rendezvous import RendezvousParameters
        >>> from rushlight.distributed.elastic.rendezvous.registry import get_rendezvous_handler
        >>> params = RendezvousParameters("static", "localhost:0", "job", 1, 1, rank=0)
        >>> found = get_rendezvous_handler(params).next_rendezvous()
        >>> found.rank, found.world_size
        (0, 1)
    """
    return rendezvous_handler_registry.create_handler(params)
