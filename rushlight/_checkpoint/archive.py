"""The zip archive of a checkpoint.

Owns bytes in a file: entries stored as they are, aligned so that they can be mapped, checked by
CRC-32; and how a new file takes the place of an old one. What the entries mean is not its business.
Invariant: a reader returns bytes that lie inside the file, or raises RuntimeError; the bytes it
returns, all together, are no more than the file has.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pickle import UnpicklingError
from typing import IO, Any

import rushlight as rl
from rushlight import Tensor
from rushlight.utils.serialization import config

_FOLDER = "archive"
_ALIGNMENT = 64  # of the data of an entry, as in PyTorch; a cache line
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature ... length of name, length of extra field
_LOCAL_SIGNATURE = b"PK\x03\x04"
_EXTRA = struct.Struct("<2sH")  # id, length
_ZIP64_EXTRA_SIZE = 20


class _Stream:
    """Counts what is written; zipfile takes what cannot seek for a stream and never goes back."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file: IO[bytes] | None = file
        self._position = 0

    def write(self, data: Any) -> int:
        if self._file is not None:
            self._file.write(data)
        size = memoryview(data).nbytes
        self._position += size
        return size

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Leaves flushing to the owner of the file; zipfile asks for it after each entry."""

    def discard(self) -> None:
        """Lets go of the file: what is still written goes nowhere."""
        self._file = None


class ArchiveWriter:
    """Writes an archive to a file from its start to its end.

    Leaving its with block writes the table of contents, without which nobody can read the archive,
    unless something was raised.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._stream: Any = _Stream(file)
        self._zip = zipfile.ZipFile(self._stream, "w")

    def add(self, name: str, data: memoryview | bytes) -> None:
        """Adds an entry; its data begin at a multiple of the alignment that is set."""
        info = zipfile.ZipInfo(f"{_FOLDER}/{name}")
        header = _LOCAL_HEADER.size + len(info.filename.encode()) + _EXTRA.size + _ZIP64_EXTRA_SIZE
        padding = -(self._stream.tell() + header) % config.save.storage_alignment
        info.extra = _EXTRA.pack(b"FB", padding) + b"Z" * padding
        with self._zip.open(info, "w", force_zip64=True) as entry:
            entry.write(data)

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is not None:
            self._stream.discard()
        self._zip.close()


class ReadOptions:
    """How the bytes of tensors are read, and the texts of Python 2.

    Args:
        use_mmap: map the file into memory instead of reading tensors; skips their CRC-32.
        is_shared: what is written to tensors in a mapped file goes to the file.
        order: the order of bytes in a file that does not tell it: "little" or "big".
        skips_data: leave the tensors zero.
        encoding: of the texts; "bytes" for bytes in their place. latin1 loses neither.
        errors: what is done where a text is of another encoding, as in bytes.decode.
    """

    def __init__(
        self,
        use_mmap: bool = False,
        is_shared: bool = False,
        order: str = "little",
        skips_data: bool = False,
        encoding: str = "latin1",
        errors: str = "strict",
    ) -> None:
        self.use_mmap = use_mmap
        self.is_shared = is_shared
        self.order = order
        self.skips_data = skips_data
        self.encoding = encoding
        self.errors = errors

    def map_file(self, file: Any) -> mmap.mmap | None:
        """Maps a file if wanted; its pages are private unless it is to be shared."""
        if not self.use_mmap:
            return None
        access = mmap.ACCESS_WRITE if self.is_shared else mmap.ACCESS_COPY
        return mmap.mmap(file.fileno(), 0, access=access)


class NotAnArchive(RuntimeError, UnpicklingError):
    """What PyTorch's reader of archives calls by the one class, its load by the other."""


class ArchiveReader:
    """Reads the entries of an archive.

    Args:
        file: file that can be read and sought.
        name: what error messages call it.
        options: how to read it.
    """

    def __init__(self, file: Any, name: str, options: ReadOptions) -> None:
        self._file = file
        self._name = name
        file.seek(0, 2)  # which returns None where the file is an mmap
        self._size = file.tell()
        try:
            self._zip = zipfile.ZipFile(file)
            infos = self._zip.infolist()
        except (
            zipfile.BadZipFile,
            struct.error,
            NotImplementedError,
            OSError,
            OverflowError,
            ValueError,
        ) as error:
            raise self._not_an_archive(error) from None
        self._entries = self._check_entries(infos)
        self._options = options
        self._map = options.map_file(file)

    def _not_an_archive(self, error: Exception) -> RuntimeError | EOFError:
        self._file.seek(0)
        start = self._file.read(len(_LOCAL_SIGNATURE) + 8)
        if not start:
            return EOFError(f"load: cannot read {self._name}: it is empty.")
        if start[8:10] == b'{"':
            problem = "it may be a safetensors file. Use rushlight.utils.safetensors.load_file"
        elif start.startswith(_LOCAL_SIGNATURE):
            return self._bad(f"the archive is cut off or damaged ({error})")
        else:
            problem = "it is not a zip archive, as checkpoints are"
        return NotAnArchive(f"load: cannot read {self._name}: {problem}.")

    def _bad(self, problem: str) -> RuntimeError:
        return RuntimeError(f"load: cannot read {self._name}: {problem}.")

    def _check_entries(self, infos: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
        folder = infos[0].filename.partition("/")[0] if infos else ""
        entries = {info.filename.removeprefix(f"{folder}/"): info for info in infos}
        if "constants.pkl" in entries:
            raise self._bad("it is a TorchScript program, not a checkpoint")
        if "data.pkl" not in entries:
            raise self._bad("it is a zip archive without a data.pkl, so not a checkpoint")
        if len(entries) != len(infos):
            raise self._bad("entries of the archive have the same name")
        for name, info in entries.items():
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                raise self._bad(
                    f"{name} is compressed or encrypted; entries must be stored plainly"
                )
            if info.file_size != info.compress_size:
                raise self._bad(f"{name} has two different sizes")
        # Entries over the same bytes could unfold a small file into a huge one.
        if sum(info.file_size for info in infos) > self._size:
            raise self._bad("its entries are larger than the file")
        return entries

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def names(self) -> list[str]:
        """Returns the names of all entries."""
        return list(self._entries)

    def size(self, name: str) -> int:
        """Returns the number of bytes of an entry, or -1 if there is no such entry."""
        return self._entries[name].file_size if name in self._entries else -1

    def read(self, name: str) -> bytes:
        """Returns the bytes of an entry."""
        data = bytearray(self.size(name))
        self._read_into(name, memoryview(data))
        return bytes(data)

    def read_tensor(self, name: str) -> Tensor:
        """Returns the bytes of an entry as a uint8 tensor, in new memory or in the mapped file."""
        size = self.size(name)
        if self._options.skips_data:
            return rl.zeros(size, dtype=rl.uint8)
        start = self._data_start(name) if self._map is not None else 0
        if self._map is not None and size > 0 and start % _ALIGNMENT == 0:
            return rl.frombuffer(self._map, dtype=rl.uint8, count=size, offset=start)
        result = rl.empty(size, dtype=rl.uint8)
        self._read_into(name, memoryview(result))
        return result

    def _read_into(self, name: str, view: memoryview) -> None:
        self._file.seek(self._data_start(name))
        rest = view
        while rest:
            count = self._read_some(rest)
            if not count:
                raise self._bad(f"the file ends in the middle of {name}")
            rest = rest[count:]
        if zlib.crc32(view) != self._entries[name].CRC:
            raise self._bad(f"{name} is damaged: its bytes do not match their checksum")

    def _read_some(self, view: memoryview) -> int:
        if hasattr(self._file, "readinto"):
            return self._file.readinto(view)
        data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _data_start(self, name: str) -> int:
        """Returns the position of an entry's data, which follow a header of variable length."""
        info = self._entries[name]
        try:
            self._file.seek(info.header_offset)
            header = self._file.read(_LOCAL_HEADER.size)
            signature, name_size, extra_size = _LOCAL_HEADER.unpack(header)
        except (OSError, OverflowError, ValueError, struct.error):
            raise self._bad(f"the place of {name} is damaged") from None
        start = info.header_offset + _LOCAL_HEADER.size + name_size + extra_size
        if signature != _LOCAL_SIGNATURE or start + info.file_size > self._size:
            raise self._bad(f"the place of {name} is damaged")
        return start


@contextlib.contextmanager
def replace_when_complete(path: str, caller: str = "save") -> Iterator[IO[bytes]]:
    """Opens a new file that takes the place of the path's at the end, if nothing was raised."""
    target = os.path.realpath(path)  # a symbolic link stays one
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:  # a device or pipe; a folder raises
            yield file
        return
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"{caller}: Parent directory {folder} does not exist.")
    temporary = f"{target}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave the new name with old blocks
        if os.path.exists(target):
            os.chmod(temporary, os.stat(target).st_mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
        raise
