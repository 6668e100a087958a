"""Unpacking archives from the network: tar, zip and single compressed files.

Owns what an archive may do: make folders and files below one folder, and nothing else. Links are
never made, so no entry can lead anywhere. Invariant: what it holds appears in its folder when all
of it could be read, so that a folder which is there is whole.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import re
import shutil
import stat
import tarfile
import zipfile
import zlib

from rushlight._checkpoint.archive import replace_when_complete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

_CHUNK = 1 << 20
# More than both is taken for an attack: pictures hardly shrink, and labels are small.
_MAX_SIZE = 1 << 30
_MAX_RATIO = 200
_MAX_PADDING = 16 << 20

_DECOMPRESSORS = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
_ALIASES = {".tbz": (".tar", ".bz2"), ".tbz2": (".tar", ".bz2"), ".tgz": (".tar", ".gz")}
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    NotImplementedError,  # what zipfile says of unknown compressions
)


def kind_of(path: str) -> tuple[str, str, str]:
    """The ending of an archive's name, then ".tar", ".zip" or "", and ".gz" or the like or "".

    Raises:
        RuntimeError: if the ending is unknown.
    """
    stem, ending = os.path.splitext(path)
    if ending in _ALIASES:
        return (ending, *_ALIASES[ending])
    if ending in (".tar", ".zip"):
        return ending, ending, ""
    if ending in _DECOMPRESSORS:
        if stem.endswith(".tar"):
            return f".tar{ending}", ".tar", ending
        return ending, "", ending
    known = sorted({*_ALIASES, *_DECOMPRESSORS, ".tar", ".zip"})
    raise RuntimeError(
        f"Unknown compression or archive type: '{ending}' of {path}. Known are {', '.join(known)}."
    )


def unpack(path: str, folder: str, caller: str) -> None:
    """Unpacks a tar or zip archive into a folder, which is made; files there are replaced.

    Args:
        path: the archive.
        folder: where to put what it holds.
        caller: function that errors name.

    Raises:
        ValueError: if an entry leads out of the folder, is a link or device, or all is too large.
        RuntimeError: if the archive is damaged.
    """
    os.makedirs(folder, exist_ok=True)
    hidden = os.path.join(folder, f".unpacking-{os.urandom(4).hex()}")
    os.mkdir(hidden)
    entries = _zip_entries if kind_of(path)[1] == ".zip" else _tar_entries
    left = _Allowance(path, caller)
    try:
        with _told_as_damage(path, caller):
            for name, source in entries(path, hidden, caller):
                target = os.path.join(hidden, *_parts(name, path, caller))
                if source is None:
                    os.makedirs(target, exist_ok=True)
                    continue
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with source, open(target, "wb") as file:
                    left.copy(source, file)
        _merge(hidden, folder)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def decompress(path: str, target: str, caller: str) -> None:
    """Decompresses a file to another, which is there when it is complete.

    Raises:
        ValueError: if the file becomes too large.
        RuntimeError: if it is damaged.
    """
    opener = _DECOMPRESSORS[kind_of(path)[2]]
    with (
        _told_as_damage(path, caller),
        opener(path, "rb") as source,
        replace_when_complete(target, caller) as file,
    ):
        _Allowance(path, caller).copy(source, file)


class _Allowance:
    """Copies out of an archive until it has become implausibly large."""

    def __init__(self, path: str, caller: str) -> None:
        self._limit = max(_MAX_SIZE, _MAX_RATIO * os.path.getsize(path))
        self._left = self._limit
        self._what = f"{caller}: {path} unpacks"

    def copy(self, source: IO[bytes], target: IO[bytes]) -> None:
        while chunk := source.read(_CHUNK):
            self._left -= len(chunk)
            if self._left < 0:
                raise ValueError(
                    f"{self._what} to more than {self._limit} bytes, over {_MAX_RATIO} times its "
                    "size, which no collection of data does. Unpack it by hand if you trust it."
                )
            target.write(chunk)


@contextlib.contextmanager
def _told_as_damage(path: str, caller: str) -> Iterator[None]:
    try:
        yield
    except (*_DAMAGE, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the disk's trouble: damage has no number
            raise
        raise RuntimeError(
            f"{caller}: {path} is damaged: {error}. Remove it and download it again."
        ) from error


def _parts(name: str, path: str, caller: str) -> list[str]:
    """The folders and the file of an entry's name, none of which leads up or to the root."""
    parts = name.replace("\\", "/").split("/")
    if not parts[0] or ".." in parts or re.match("[A-Za-z]:", parts[0]) or "\0" in name:
        raise ValueError(f"{caller}: entry leads out of the archive {path}: {name!r}")
    return [part for part in parts if part not in ("", ".")]


def _zip_entries(path: str, folder: str, caller: str) -> Iterator[tuple[str, IO[bytes] | None]]:
    """The name of each entry and, of a file, its content."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise _not_a_file(entry.filename, path, caller)
            yield entry.filename, None if entry.is_dir() else archive.open(entry)


def _tar_entries(path: str, folder: str, caller: str) -> Iterator[tuple[str, IO[bytes] | None]]:
    """The name of each entry and, of a file, its content; what came before is in the folder."""
    compression = kind_of(path)[2]
    mode: Any = f"r:{compression[1:]}" if compression else "r"
    with tarfile.open(path, mode) as archive:
        remembered: Any = vars(archive)["members"]
        while (entry := archive.next()) is not None:
            remembered.clear()  # of millions of pictures
            if entry.isdir():
                yield entry.name, None
            elif entry.isfile():
                yield entry.name, archive.extractfile(entry)
            elif entry.islnk():  # a second name for an earlier file, which is copied
                target = os.path.join(folder, *_parts(entry.linkname, path, caller))
                if not os.path.isfile(target):
                    raise _not_a_file(entry.name, path, caller)
                with open(target, "rb") as file:
                    yield entry.name, file
            else:
                raise _not_a_file(entry.name, path, caller)
        # Behind the padding is the checksum of a compressed archive, which only the end checks.
        rest: Any = archive.fileobj
        for _ in range(_MAX_PADDING // _CHUNK):
            if not rest.read(_CHUNK):
                break


def _not_a_file(name: str, path: str, caller: str) -> ValueError:
    return ValueError(
        f"{caller}: entry {name!r} of the archive {path} is neither a file nor a folder. Links and "
        "devices are never unpacked."
    )


def _merge(source: str, target: str) -> None:
    """Moves what is in a folder into another, into whose folders it goes by name."""
    for entry in os.scandir(source):
        there = os.path.join(target, entry.name)
        if entry.is_dir() and os.path.isdir(there):
            _merge(entry.path, there)
        else:
            os.replace(entry.path, there)
