"""Processes that meet in a store, without a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rushlight.distributed.errors import DistStoreError
from rushlight.distributed.store import Store

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_LAST, _COUNT, _ARRIVED = "/last_member", "/num_members", "<val_ignored>"
_TRACE, _TRACED = "/TRACE", "/TRACING_GATE"


@contextmanager
def store_timeout(store: Store, timeout: float) -> Iterator[None]:
    """Sets how long operations of a store wait, in seconds, inside a with block."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def get_all(store: Store, rank: int, prefix: str, world_size: int) -> list[bytes]:
    """Returns the values of prefix0, prefix1, ...

    The process of rank 0, which may have the store, returns when all others have read them.

    Args:
        store: which they share.
        rank: of this process.
        prefix: what the keys begin with.
        world_size: the number of processes.

    Example:
        >>> from rushlight.distributed.elastic.utils.store import get_all
        >>> store = torch.distributed.HashStore()
        >>> store.set("word0", "one")
        >>> get_all(store, 0, "word", 1)
        [b'one']
    """
    values = store.multi_get([f"{prefix}{i}" for i in range(world_size)])
    last = _arrive(store, world_size, f"{prefix}/finished")
    if rank == 0:
        store.wait([last])
    return values


def synchronize(
    store: Store,
    data: bytes,
    rank: int,
    world_size: int,
    key_prefix: str,
    timeout: float = 300,
) -> list[bytes]:
    """Returns what all processes give.

    Args:
        store, rank, world_size: see get_all.
        data: what this process gives.
        key_prefix: what the keys begin with; of each call another.
        timeout: seconds to wait for the others.
    """
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def _arrive(store: Store, world_size: int, prefix: str) -> str:
    """Counts this process; the key that the last one sets."""
    if store.add(prefix + _COUNT, 1) == world_size:
        store.set(prefix + _LAST, _ARRIVED)
    return prefix + _LAST


def barrier(
    store: Store,
    world_size: int,
    key_prefix: str,
    barrier_timeout: float = 300,
    rank: int | None = None,
    rank_tracing_decoder: Callable[[int], str] | None = None,
    trace_timeout: float = 10,
) -> None:
    """Waits until all processes have called it.

    Args:
        store, world_size: see get_all.
        key_prefix: what the keys begin with; of each call another.
        barrier_timeout: seconds to wait for the others.
        rank: of this process, with which the error can tell who is missing.
        rank_tracing_decoder: what the error calls the process of a rank.
        trace_timeout: seconds that rank 0 waits for a sign of each that is missing.

    Raises:
        DistStoreError: if they do not come in time.
    """
    with store_timeout(store, barrier_timeout):
        last = _arrive(store, world_size, key_prefix)
        try:
            store.wait([last])
        except DistStoreError as error:
            if rank is None:
                raise
            called = rank_tracing_decoder or str
            missing = _missing(store, world_size, key_prefix, rank, called, trace_timeout)
            if missing is None:
                raise
            raise DistStoreError(
                f"Timed out waiting on barrier on rank {rank}, for key prefix: {key_prefix} "
                f"(world_size={world_size}, {missing}, timeout={barrier_timeout})"
            ) from error


def _missing(
    store: Store,
    world_size: int,
    prefix: str,
    rank: int,
    called: Callable[[int], str],
    timeout: float,
) -> str | None:
    """Who has not come: rank 0 looks, the others say that they are here."""
    store.set(f"{prefix}{rank}{_TRACE}", _ARRIVED)
    if rank != 0:
        try:
            store.wait([prefix + _TRACED], store.timeout)
        except DistStoreError:
            return None
        return f"check rank 0 ({called(0)}) for missing rank info"

    def lost(ranks: Iterable[int]) -> Iterator[int]:
        for i in ranks:
            try:
                store.wait([f"{prefix}{i}{_TRACE}"], timedelta(seconds=timeout))
            except DistStoreError:
                yield i

    ranks = list(lost(range(1, world_size)))
    store.set(prefix + _TRACED, _ARRIVED)
    return f"missing_ranks=[{', '.join(map(called, ranks))}]"
