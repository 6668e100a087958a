"""Helpers that libraries import from torch._dynamo.utils."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["counters", "disable_cache_limit", "warn_once"]

# What a compiler counts by subject; nothing is.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)

_warned: set[str] = set()


@contextmanager
def disable_cache_limit() -> Iterator[None]:
    """A with block or decorator that changes nothing: no program is compiled once too often."""
    yield


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Gives a warning that was not given in this process before.

    Args:
        msg: the warning.
        stacklevel: whose line it names, as in warnings.warn, seen from the caller.
    """
    if msg not in _warned:
        _warned.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)
