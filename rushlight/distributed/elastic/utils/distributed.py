"""Ports and stores, as launchers make them."""

from __future__ import annotations

import socket
from contextlib import closing
from datetime import timedelta

from rushlight.distributed.elastic.utils.api import get_socket_with_port
from rushlight.distributed.tcp_store import TCPStore

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]


def get_free_port() -> int:
    """Returns the number of a port that was free a moment ago.

    Example:
        >>> from rushlight.distributed.elastic.utils.distributed import get_free_port
        >>> 0 < get_free_port() < 2**16
        True
    """
    with closing(get_socket_with_port()) as listener:
        return listener.getsockname()[1]


def create_c10d_store(
    is_server: bool,
    server_addr: str,
    server_port: int = -1,
    world_size: int = 1,
    timeout: float = 10 * 60,
    wait_for_workers: bool = True,
    retries: int = 3,
    use_libuv: bool | None = None,
) -> TCPStore:
    """Returns a store.

    Args:
        is_server: whether this process has the table.
        server_addr, server_port: where; -1 is any free port.
        world_size: how many processes will use it.
        timeout: seconds that operations wait.
        wait_for_workers: whether to wait until all are here.
        retries: accepted for PyTorch's sake: a free port is not lost here before it is used.
        use_libuv: see TCPStore.

    Raises:
        ValueError: for port -1, if others have to know it.
        DistError: if the server cannot be reached, or the others do not come.
    """
    if server_port == -1 and world_size > 1:
        raise ValueError(
            f"server_port must be specified when world_size > 1, got server_port={server_port}, "
            f"world_size={world_size}"
        )
    own = {} if use_libuv is None else {"use_libuv": use_libuv}
    return TCPStore(
        "localhost" if is_server and server_addr == socket.gethostname() else server_addr,
        max(server_port, 0),
        world_size,
        is_server,
        timedelta(seconds=timeout),
        wait_for_workers,
        **own,
    )
