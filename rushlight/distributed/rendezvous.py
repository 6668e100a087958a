"""How the processes of a job find each other: a store, reached by what a URL says.

    env://              MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE of the environment
    tcp://host:port     rank 0 has the store there
    file:///path        a file that all processes see

Rank and number of processes are arguments, or stand behind the URL: ?rank=0&world_size=2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.store import Store

Handler = Callable[..., Iterator[tuple[Store, int, int]]]

__all__ = ["register_rendezvous_handler", "rendezvous"]

_handlers: dict[str, Handler] = {}
_servers: dict[int, Any] = {}  # those of this process, by port


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Adds a way for URLs that begin with `scheme`.

    Args:
        scheme: what stands before "://".
        handler: called with the URL, rank and world_size in its query; yields the store, the rank
            and the number of processes.

    Raises:
        RuntimeError: if the scheme is taken.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(
    url: str, rank: int = -1, world_size: int = -1, **kwargs: Any
) -> Iterator[tuple[Store, int, int]]:
    """Returns an iterator whose first item is the store, this process's rank and their number.

    Raises:
        RuntimeError: if the URL's scheme is unknown.
        ValueError: if something is missing in it.
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    for name, value in (("rank", rank), ("world_size", world_size)):
        if not isinstance(value, int):
            raise RuntimeError(f"`{name}` must be an integer. {value}")
    from urllib.parse import parse_qsl, urlsplit

    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    if rank != -1 or world_size != -1:
        if "rank" in query or "world_size" in query:
            raise AssertionError(
                f"The url: {url} has node-specific arguments(rank, world_size) already."
            )
        query |= {"rank": str(rank)} if rank != -1 else {}
        query |= {"world_size": str(world_size)} if world_size != -1 else {}
        text = "&".join(f"{name}={value}" for name, value in query.items())
        url = parts._replace(query=text).geturl()
    if parts.scheme not in _handlers:
        raise RuntimeError(
            f"No rendezvous handler for {parts.scheme}://. There are: {', '.join(_handlers)}."
        )
    return _handlers[parts.scheme](url, **kwargs)


def _missing(scheme: str, what: str) -> ValueError:
    return ValueError(
        f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}. Processes "
        "that python -m rushlight.distributed.run starts have all that env:// needs."
    )


def _number(scheme: str, name: str, query: dict[str, str]) -> int:
    if name in query:
        return int(query[name])
    if scheme != "env":
        raise _missing(scheme, f"{name.replace('_', ' ')} parameter missing")
    return int(_variable(name.upper()))


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise _missing("env", f"environment variable {name} expected, but not set")
    return value


def _by_address(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Any:
    from urllib.parse import parse_qsl, urlsplit

    from rushlight.distributed.store import PrefixStore
    from rushlight.distributed.tcp_store import TCPStore

    parts = urlsplit(url)
    scheme, query = parts.scheme, dict(parse_qsl(parts.query))
    rank, size = (_number(scheme, name, query) for name in ("rank", "world_size"))
    if scheme == "env":
        host, port = _variable("MASTER_ADDR"), int(_variable("MASTER_PORT"))
    else:
        host, port = parts.hostname, parts.port
    if not host or port is None:
        raise _missing(scheme, "host or port number missing")
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    # The launcher may have the store, which then outlives the ranks, and those started before.
    of_launcher = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    has_store = rank == 0 and not of_launcher
    use_libuv = query.get("use_libuv", os.environ.get("USE_LIBUV", "1")) == "1"
    store: Any = TCPStore(
        host,
        port,
        size,
        has_store,
        timeout,
        not of_launcher,
        multi_tenant=True,
        use_libuv=use_libuv,
    )
    if has_store:
        _servers[store.port] = store._server  # others may ask when rank 0 has left its groups
    if of_launcher:
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(f"attempt {attempt}", store)
    yield store, rank, size


def _by_file(url: str, **_: Any) -> Any:
    from urllib.parse import parse_qsl, urlsplit

    from rushlight.distributed.file_store import FileStore

    parts = urlsplit(url)
    if not parts.path:
        raise _missing("file", "path missing")
    query = dict(parse_qsl(parts.query))
    rank, size = (_number("file", name, query) for name in ("rank", "world_size"))
    yield FileStore(parts.path, size), rank, size


register_rendezvous_handler("env", _by_address)
register_rendezvous_handler("tcp", _by_address)
register_rendezvous_handler("file", _by_file)
