"""The pipe of files in folders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.iter.utils import IterableWrapperIterDataPipe
from rushlight.utils.data.datapipes.utils.common import get_file_pathnames_from_root

__all__ = ["FileListerIterDataPipe"]


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The paths of the files in folders, in the order of their names.

    Args:
        root: the folder, several, or a pipe of them; a file stands for itself.
        masks: patterns of names such as "*.png", one of which must fit.
        recursive: whether files in folders of the folders count.
        abspath: whether paths are absolute.
        non_deterministic: accepted for PyTorch's sake.
        length: what len() is to return.
    """

    def __init__(
        self,
        root: Any = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        if not isinstance(root, IterDataPipe):
            root = IterableWrapperIterDataPipe([root] if isinstance(root, str) else root)
        self.datapipe = root
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.length = length

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            yield from get_file_pathnames_from_root(root, self.masks, self.recursive, self.abspath)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length
