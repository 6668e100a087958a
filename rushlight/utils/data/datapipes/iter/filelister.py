"""The pipe of files in folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.iter.utils import IterableWrapperIterDataPipe

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
        self.masks = [masks] if isinstance(masks, str) else list(masks)
        self.recursive = recursive
        self.abspath = abspath
        self.length = length

    def _fits(self, name: str) -> bool:
        return not any(self.masks) or any(fnmatch(name, mask) for mask in self.masks)

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            if os.path.isfile(root):
                path = os.path.abspath(root) if self.abspath else root
                yield from [path] if self._fits(os.path.basename(path)) else []
            for folder, folders, names in os.walk(os.path.abspath(root) if self.abspath else root):
                folders.sort()
                yield from (os.path.join(folder, n) for n in sorted(names) if self._fits(n))
                if not self.recursive:
                    break

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length
