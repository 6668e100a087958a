"""PyTorchFileReader: the entries of a checkpoint by name, for programs that load in parts."""

from __future__ import annotations

import os
from typing import IO, Any

import rushlight as rl
from rushlight import Tensor
from rushlight._checkpoint.archive import ArchiveReader, ReadOptions


class PyTorchFileReader:
    """Reads the entries of a checkpoint: data.pkl, and data/0, data/1, ... for its tensors.

    Args:
        file: path, or binary file that can be read and sought.

    Raises:
        RuntimeError: the file is not an archive of a checkpoint, or is damaged.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"x": torch.ones(2)}, file)
        >>> torch.PyTorchFileReader(file).get_record_size("data/0")
        8
    """

    def __init__(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        self._own: IO[bytes] | None = None
        if isinstance(file, (str, os.PathLike)):
            self._own = open(file, "rb")  # noqa: SIM115, closed by __del__
            self._reader = ArchiveReader(self._own, os.fspath(file), ReadOptions())
        else:
            self._reader = ArchiveReader(file, "the file", ReadOptions())

    def __del__(self) -> None:
        if self._own is not None:
            self._own.close()

    def get_all_records(self) -> list[str]:
        """Returns the names of all entries."""
        return self._reader.names()

    def has_record(self, name: str) -> bool:
        """Returns whether there is an entry."""
        return name in self._reader

    def get_record_size(self, name: str) -> int:
        """Returns the number of bytes of an entry."""
        return self._reader.size(self._checked(name))

    def get_record(self, name: str) -> bytes:
        """Returns the bytes of an entry."""
        return self._reader.read(self._checked(name))

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """Returns an entry as a tensor of `numel` elements of a dtype, or of bytes.

        Args:
            name: of the entry.
            numel: number of elements.
            dtype: of them; a class of storages stands for bytes.
        """
        found = self._reader.read_tensor(self._checked(name))
        found = found.view(dtype) if isinstance(dtype, rl.dtype) else found
        if found.numel() != numel:
            raise RuntimeError(
                f"get_storage_from_record: {name} has {found.numel()} elements, not {numel}. "
                "get_record_size tells how many bytes there are."
            )
        return found

    def _checked(self, name: str) -> str:
        if name not in self._reader:
            raise RuntimeError(
                f"PyTorchFileReader: file not found: {name}. get_all_records lists all entries."
            )
        return name
