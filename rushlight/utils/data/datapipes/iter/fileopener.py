"""The step that opens files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.common import get_file_binaries_from_pathnames

__all__ = ["FileOpenerIterDataPipe"]


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """(path, open file) for each path; a file is closed when nobody has it any more.

    Args:
        datapipe: the pipe of paths.
        mode, encoding: see open.
        length: what len() is to return.
    """

    def __init__(
        self,
        datapipe: Iterable[str],
        mode: str = "r",
        encoding: str | None = None,
        length: int = -1,
    ) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        self.datapipe = datapipe
        self.mode = mode
        self.encoding = encoding
        self.length = length

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length
