"""The step that reads files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["StreamReaderIterDataPipe"]


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(path, contents) for each open file, which is closed.

    Args:
        datapipe: the pipe of (path, open file).
        chunk: how much is read at a time; without it all at once.
    """

    def __init__(self, datapipe: Iterable[tuple[str, Any]], chunk: int | None = None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path, stream in self.datapipe:
            with stream:
                while data := stream.read(self.chunk):
                    yield path, data
