"""Fetching a file over the network: the one mechanism of torch.hub and of vision.datasets.

Owns how the bytes arrive and what is told meanwhile on stderr. Invariant: a file gets its name only
when all of it is there and its digest was found to be right.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import sys
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rushlight._checkpoint.archive import replace_when_complete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from email.message import Message
    from typing import Any

_CHUNK = 128 * 1024
_TIMEOUT = 60  # seconds without a byte, after which a server counts as gone


class _Progress:
    """Tells on stderr how much was downloaded: with tqdm if it is installed."""

    def __init__(self, total: int | None, is_shown: bool) -> None:
        self._total = total
        self._done = 0
        self._is_shown = is_shown
        self._bar: Any = None
        if is_shown:
            with contextlib.suppress(ImportError):
                tqdm = importlib.import_module("tqdm").tqdm
                self._bar = tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024)

    def add(self, count: int) -> None:
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
        elif self._is_shown and self._total:
            sys.stderr.write(f"\r{100 * self._done / self._total:.1f}%")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._is_shown:
            sys.stderr.write("\n")


def fetch(
    url: str,
    place: str,
    caller: str,
    check_digest: Callable[[str], None],
    digest: str = "sha256",
    progress: bool = True,
    agent: str = "torch.hub",
    max_redirects: int = 10,
    check_headers: Callable[[Message], None] | None = None,
) -> None:
    """Downloads a file.

    Args:
        url: address.
        place: path to put it at, in a folder that exists.
        caller: function that errors name.
        check_digest: raises if the hexadecimal digest of the file is not the right one.
        digest: name of the hash function.
        progress: whether to tell on stderr how far it is.
        agent: what to be called by the server.
        max_redirects: how often the server may name another address.
        check_headers: raises if the server answers with something else than the file.

    Raises:
        RuntimeError: if the file is cut off.
        urllib.error.URLError: if the server cannot be reached or does not have it.
    """
    redirects = HTTPRedirectHandler()
    vars(redirects)["max_redirections"] = max_redirects
    request = Request(url, headers={"User-Agent": agent})
    hasher = hashlib.new(digest, usedforsecurity=False)
    with (
        build_opener(redirects).open(request, timeout=_TIMEOUT) as source,
        replace_when_complete(place, caller) as file,
    ):
        if check_headers is not None:
            check_headers(source.headers)
        length = source.headers.get("Content-Length")
        bar = _Progress(int(length) if length else None, progress)
        count = 0
        while chunk := source.read(_CHUNK):
            file.write(chunk)
            hasher.update(chunk)
            bar.add(len(chunk))
            count += len(chunk)
        bar.close()
        if length and count != int(length):
            raise RuntimeError(
                f"{caller}: {url} was cut off after {count} of {length} bytes. Try again."
            )
        check_digest(hasher.hexdigest())
