"""PyTorchFileWriter: a checkpoint entry by entry, for programs that save in parts."""

from __future__ import annotations

import os
from typing import IO, Any

from rushlight._checkpoint.archive import ArchiveWriter
from rushlight._storage import TypedStorage, UntypedStorage


class PyTorchFileWriter:
    """Writes the entries of a checkpoint: data.pkl, and data/0, data/1, ... for its tensors.

    The file can be read when write_end_of_file has been called.

    Args:
        file: path, or file open for writing bytes.

    Example:
        >>> import io, pickle
        >>> file = io.BytesIO()
        >>> writer = torch.PyTorchFileWriter(file)
        >>> data = pickle.dumps({"step": 3}, 2)
        >>> writer.write_record("data.pkl", data, len(data))
        >>> writer.write_end_of_file()
        >>> torch.load(file)
        {'step': 3}
    """

    def __init__(self, file: str | os.PathLike[str] | IO[bytes], *options: Any) -> None:
        self._own: IO[bytes] | None = None
        if isinstance(file, (str, os.PathLike)):
            self._own = file = open(file, "wb")  # noqa: SIM115, closed at the end
        self._archive: ArchiveWriter | None = ArchiveWriter(file)
        self._names: dict[str, None] = {}

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Writes an entry.

        Args:
            name: of the entry.
            data: bytes, text or a storage; not an address.
            size: how many of its bytes are written.

        Raises:
            RuntimeError: there is such an entry, the data has fewer bytes, or the end was written.
            TypeError: for other data.
        """
        if self._archive is None:
            raise RuntimeError("write_record: the end of the file is written.")
        if name in self._names:
            raise RuntimeError(f"write_record: there is an entry {name} already.")
        memory = _memory_of(data)
        if not 0 <= size <= memory.nbytes:
            raise RuntimeError(f"write_record: {name} has {memory.nbytes} bytes, not {size}.")
        self._names[name] = None
        self._archive.add(name, memory[:size])

    def write_end_of_file(self) -> None:
        """Writes the table of contents, without which nobody can read the file."""
        if self._archive is None:
            raise RuntimeError("write_end_of_file: it is written.")
        if "version" not in self._names:
            self.write_record("version", b"3\n", 2)
        archive, self._archive = self._archive, None
        archive.__exit__(None)
        if self._own is not None:
            self._own.close()

    def get_all_written_records(self) -> set[str]:
        """Returns the names of the entries so far."""
        return set(self._names)

    def __del__(self) -> None:
        if self._own is not None:
            self._own.close()


def _memory_of(data: Any) -> memoryview:
    if isinstance(data, str):
        data = data.encode()
    if isinstance(data, (TypedStorage, UntypedStorage)):
        data = data.untyped()._values().cpu()
    elif not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"write_record: the data must be bytes, text or a storage, not {type(data).__name__}."
        )
    return memoryview(data).cast("B")
