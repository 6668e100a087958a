"""The state of a rendezvous as one value of a store, which is changed only by who has read it."""

from __future__ import annotations

import binascii
import os
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rushlight.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
    RendezvousParameters,
    RendezvousStateError,
)
from rushlight.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend, Token
from rushlight.distributed.elastic.rendezvous.utils import (
    is_this_machine,
    parse_rendezvous_endpoint,
)
from rushlight.distributed.file_store import FileStore
from rushlight.distributed.store import Store
from rushlight.distributed.tcp_store import TCPStore

__all__ = ["C10dRendezvousBackend", "create_backend"]

_DEFAULT_PORT = 29400
_NOTHING = "-"  # is set where there is no state yet, which base64 never is


class C10dRendezvousBackend(RendezvousBackend):
    """Keeps the state in a store.

    Args:
        store: the store.
        run_id: the job's name.

    Raises:
        ValueError: if the name is empty.
        RendezvousConnectionError: if the store cannot be reached.
    """

    def __init__(self, store: Store, run_id: str) -> None:
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        self._store = store
        self._key = f"torch.rendezvous.{run_id}"
        self._call(store.compare_set, self._key, "", _NOTHING)

    @property
    def name(self) -> str:
        """ "c10d"."""
        return "c10d"

    def get_state(self) -> tuple[bytes, Token] | None:
        """See RendezvousBackend."""
        return self._decoded(self._call(self._store.get, self._key))

    def set_state(
        self, state: bytes, token: Token | None = None
    ) -> tuple[bytes, Token, bool] | None:
        """See RendezvousBackend."""
        expected = token if isinstance(token, bytes) else _NOTHING
        found = self._call(self._store.compare_set, self._key, expected, b64encode(state))
        pair = self._decoded(found)
        return None if pair is None else (*pair, pair[0] == state)

    def _call(self, operation: Callable[..., Any], *args: Any) -> Any:
        try:
            return operation(*args)
        except (ValueError, RuntimeError, OSError) as error:
            raise RendezvousConnectionError(
                f"The connection to the C10d store has failed: {error}"
            ) from error

    def _decoded(self, text: bytes) -> tuple[bytes, Token] | None:
        if text == _NOTHING.encode():
            return None
        try:
            return b64decode(text, validate=True), text
        except binascii.Error as error:
            raise RendezvousStateError(f"{self._key} is no state: {text[:50]!r}.") from error


def create_backend(params: RendezvousParameters) -> tuple[C10dRendezvousBackend, Store]:
    """Returns a backend and its store.

    Args:
        params: with "store_type": "tcp", or "file" at the path that is the endpoint; "is_host":
            whether this machine has the store, by default if the endpoint is its own; and
            "read_timeout": seconds that operations wait.

    Raises:
        ValueError: for other values.
        RendezvousConnectionError: if the store cannot be reached.
    """
    kind = str(params.get("store_type", "tcp")).strip().lower()
    if kind == "file":
        store: Store = FileStore(params.endpoint) if params.endpoint else _own_file_store()
    elif kind == "tcp":
        store = _tcp_store(params)
    else:
        raise ValueError(f"c10d rendezvous: store_type {kind!r}. Give tcp or file.")
    return C10dRendezvousBackend(store, params.run_id), store


def _own_file_store() -> FileStore:
    handle, path = tempfile.mkstemp()
    os.close(handle)
    return FileStore(path, 1)  # which deletes the file: no other process knows of it


def _tcp_store(params: RendezvousParameters) -> TCPStore:
    host, port = parse_rendezvous_endpoint(params.endpoint, _DEFAULT_PORT)
    timeout = params.get_as_int("read_timeout", 60)
    if timeout is None or timeout <= 0:
        raise ValueError("The read timeout must be a positive integer.")
    is_host = params.get_as_bool("is_host")
    if is_host is not None:
        tries = [is_host]
    else:  # of several launchers on the machine of the endpoint, the first has the store
        tries = [True, False] if is_this_machine(host) else [False]
    error: Exception | None = None
    for has_store in tries:
        try:
            return TCPStore(
                host,
                port,
                is_master=has_store,
                multi_tenant=True,
                timeout=timedelta(seconds=timeout),
            )
        except (ValueError, RuntimeError, OSError) as raised:
            error = raised
    raise RendezvousConnectionError(
        f"The connection to the C10d store at {host}:{port} has failed: {error}"
    ) from error
