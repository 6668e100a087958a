"""The stores, and how processes find each other through them."""

from __future__ import annotations

import os
import socket
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import rushlight.distributed as dist

SHORT = timedelta(seconds=0.2)


@pytest.fixture(params=["HashStore", "FileStore", "TCPStore", "PrefixStore"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """Two ends of one store."""
    if request.param == "FileStore":
        path = str(tmp_path / "table")
        return dist.FileStore(path, 2), dist.FileStore(path, 2)
    if request.param == "TCPStore":
        master = dist.TCPStore("127.0.0.1", 0, is_master=True)
        return master, dist.TCPStore("localhost", master.port)
    store = dist.HashStore()
    if request.param == "PrefixStore":
        outer = dist.PrefixStore("outer", store)
        return dist.PrefixStore("inner", outer), dist.PrefixStore("inner", outer)
    return store, store


def test_operations(stores: tuple[Any, Any]) -> None:
    one, other = stores
    one.set("key", "value")
    assert other.get("key") == b"value"
    one.set("key", b"\x00\xff")
    assert other.get("key") == b"\x00\xff"
    assert one.add("count", 2) == 2 and other.add("count", -5) == -3
    assert one.get("count") == b"-3"
    one.append("key", "more")
    other.append("fresh", b"x")
    assert other.get("key") == b"\x00\xffmore" and one.get("fresh") == b"x"
    assert one.compare_set("swap", "", "first") == b"first"
    assert other.compare_set("swap", "first", "second") == b"second"
    assert one.compare_set("swap", "first", "third") == b"second"
    assert one.compare_set("none", "expected", "new") == b"expected"
    assert not one.check(["none"]) and one.check(["swap", "key"]) and one.check([])
    own = isinstance(one, dist.FileStore)  # it counts a key that it does not list
    assert one.num_keys() == 4 + own and set(other.list_keys()) == {"key", "count", "fresh", "swap"}
    assert one.delete_key("swap") and not other.delete_key("swap")
    one.multi_set(["users", "b"], ["1", "2"])
    assert other.multi_get(["b", "users"]) == [b"2", b"1"]
    assert "users" in other.list_keys()
    one.queue_push("queue", "1st")
    other.queue_push("queue", "2nd")
    assert one.queue_len("queue") == 2
    assert other.queue_pop("queue") == b"1st" and one.queue_pop("queue") == b"2nd"
    with pytest.raises(dist.QueueEmptyError, match="queue"):
        one.queue_pop("queue", block=False)
    one.set("large", b"x" * 3_000_000)
    assert len(other.get("large")) == 3_000_000


def test_who_waits_gets_what_comes(stores: tuple[Any, Any]) -> None:
    one, other = stores
    later = threading.Timer(0.1, one.set, ("late", "here"))
    later.start()
    assert other.get("late") == b"here"
    later.join()
    other.wait(["late"], SHORT)


def test_clones_meet_at_barriers(stores: tuple[Any, Any]) -> None:
    one, other = stores[0].clone(), stores[1].clone()
    one.set("key", "value")
    assert type(one) is type(stores[0]) and stores[0].get("key") == b"value"
    for _ in range(2):
        later = threading.Timer(0.05, other.barrier, ("all", 2))
        later.start()
        one.barrier("all", 2, timedelta(seconds=10))
        later.join()
    one.barrier("alone", 1)
    with pytest.raises(dist.DistStoreError, match="1 of 2 callers"):
        one.barrier("all", 2, SHORT)


def test_waiting_ends(stores: tuple[Any, Any]) -> None:
    one, _ = stores
    one.set_timeout(SHORT)
    assert one.timeout == SHORT
    start = time.monotonic()
    with pytest.raises(dist.DistStoreError, match=r"timeout after 200ms.*missing"):
        one.get("missing")
    with pytest.raises(dist.DistStoreError, match="timeout"):
        one.wait(["missing", "other"], timedelta(seconds=0.1))
    assert 0.3 <= time.monotonic() - start < 2
    one.set("text", "abc")
    with pytest.raises(dist.DistStoreError, match="not an integer"):
        one.add("text", 1)
    with pytest.raises(TypeError, match="timedelta"):
        one.set_timeout(3)
    with pytest.raises(ValueError, match="2 keys"):
        one.multi_set(["a", "b"], ["1"])


def test_threads_share_a_store(stores: tuple[Any, Any]) -> None:
    def add() -> None:
        for _ in range(20):
            stores[0].add("sum", 1)
            stores[1].add("sum", 1)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].get("sum") == b"160"


def test_the_last_user_deletes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "table"
    one, other = dist.FileStore(str(path), 2), dist.FileStore(str(path), 2)
    del one
    assert path.exists()
    del other
    assert not path.exists()
    more = [dist.FileStore(str(path), 1) for _ in range(2)]
    more.pop()
    assert path.exists()
    more.pop()
    assert not path.exists()


@pytest.mark.parametrize("text", [b"something else", b"\x05\0\0\0\x01\0\0\0?", b"\0"])
def test_other_files_are_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "notes"
    path.write_bytes(text)
    with pytest.raises(dist.DistStoreError, match="is not the file of a store"):
        dist.FileStore(str(path)).get("key")
    assert path.read_bytes() == text


class Plain(dist.Store):
    """A store of a program's own, with what it must have."""

    def __init__(self) -> None:
        super().__init__()
        self.table: dict[str, bytes] = {}

    def set(self, key: str, value: str | bytes) -> None:
        assert isinstance(value, bytes)
        self.table[key] = value

    def get(self, key: str) -> bytes:
        return self.table[key]

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        if key not in self.table or self.table[key] == expected_value:
            assert isinstance(desired_value, bytes)
            self.table[key] = desired_value
        return self.table[key]


def test_stores_of_ones_own() -> None:
    plain = Plain()
    store = dist.PrefixStore("p", plain)
    assert not plain.has_extended_api() and not store.has_extended_api()
    store.append("a", "po")
    store.append("a", "tato")
    store.multi_set(["b", "c"], ["1", "2"])
    assert store.multi_get(["a", "b", "c"]) == [b"potato", b"1", b"2"]
    assert plain.table["p/b"] == b"1"
    assert dist.PrefixStore("q", store)._underlying_non_prefix_store is plain
    for call in (plain.clone, lambda: dist.Store().append("a", "b"), lambda: plain.add("n", 1)):
        with pytest.raises(NotImplementedError, match="this store does not have it"):
            call()
    with pytest.raises(ValueError, match="must be a Store"):
        dist.PrefixStore("p", None)  # pyright: ignore[reportArgumentType]


def test_a_server_counts_who_joined() -> None:
    with pytest.raises(ValueError, match="cannot be 0"):
        dist.TCPStore("127.0.0.1", 0, 0)
    store = dist.TCPStore("127.0.0.1", 0, 1, is_master=True, use_libuv=False)
    assert store.num_keys() == 1 and not store.libuvBackend
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    taken = dist.TCPStore("127.0.0.1", port, is_master=True, master_listen_fd=listener.detach())
    taken.set("key", "value")
    assert taken.get("key") == b"value"


def test_the_launchers_server_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setenv("MASTER_PORT", str(store.port))
    dist.TCPStore("127.0.0.1", store.port, is_master=True).set("key", "value")
    assert store.get("key") == b"value"


def test_a_server_survives_strangers() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    for text in (b"GET / HTTP/1.1\r\n\r\n", b"\x04\0\0\0\xff\xff\xff\xff", b"", b"\0\0\0\0"):
        with socket.create_connection(("127.0.0.1", store.port)) as stranger:
            stranger.sendall(text)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(10) == b""
    assert store.add("still", 1) == 1


def test_a_server_is_waited_for_and_its_loss_told() -> None:
    with pytest.raises(dist.DistNetworkError, match="could not be reached within 0.2 s"):
        dist.TCPStore("127.0.0.1", 9, timeout=SHORT)
    with pytest.raises(dist.DistStoreError, match="1 of 2 processes joined"):
        dist.TCPStore("127.0.0.1", 0, 2, is_master=True, timeout=SHORT)
    taken = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(dist.DistNetworkError, match="cannot be opened"):
        dist.TCPStore("127.0.0.1", taken.port, is_master=True)
    shared = dist.TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True)
    shared.set("key", "value")
    again = dist.TCPStore("127.0.0.1", shared.port, is_master=True, multi_tenant=True)
    assert again.get("key") == b"value"


def test_a_shared_server_goes_with_the_last_of_its_stores() -> None:
    one = dist.TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True)
    port = one.port
    other = dist.TCPStore("127.0.0.1", port, is_master=True, multi_tenant=True)
    del one
    child = os.fork()
    if child == 0:
        del other
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert dist.TCPStore("127.0.0.1", port).add("key", 1) == 1
    del other
    anew = dist.TCPStore("127.0.0.1", port, is_master=True, multi_tenant=True)
    assert anew.add("key", 1) == 1


def test_a_forked_child_asks_for_itself() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    child = os.fork()
    if child == 0:
        for _ in range(200):
            store.add("sum", 1)
        os._exit(0)
    for _ in range(200):
        store.add("sum", 1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.add("sum", 0) == 400


def test_handlers_of_other_schemes() -> None:
    def handler(url: str, **_: Any) -> Any:
        yield dist.HashStore(), 0, 1

    dist.register_rendezvous_handler("mine", handler)
    with pytest.raises(RuntimeError, match="already registered"):
        dist.register_rendezvous_handler("mine", handler)
    assert next(dist.rendezvous("mine://x"))[1:] == (0, 1)
    with pytest.raises(AssertionError, match="node-specific"):
        dist.rendezvous("tcp://127.0.0.1:1?rank=0", rank=1, world_size=2)
    with pytest.raises(RuntimeError, match="must be a string"):
        dist.rendezvous(None)  # pyright: ignore[reportArgumentType]
