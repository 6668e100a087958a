"""What most data sets are: archives to download, files that must be there, a list of samples.

Owns the description of what a data set is made of, its download and the check that it is there.
A data set says `_sources` and `_needs`, calls _prepare, and lists its samples.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.error import URLError

from rushlight.vision.datasets.folder import default_loader
from rushlight.vision.datasets.utils import (
    check_integrity,
    download_url,
    extract_archive,
    name_in,
)
from rushlight.vision.datasets.vision import AnyPath, Loader, Transform, VisionDataset

# A folder or file below the root, or a file and its MD5.
Need = str | tuple[str, str | None]


@dataclass(frozen=True)
class Source:
    """A file to download, and what to do with it.

    Args:
        urls: its address, or several that are tried in turn.
        md5: its MD5, if known.
        name: name for it, by default the last part of its address.
        folder: where to put it, below the root.
        into: where to unpack it, below the root, by default where it is; None leaves it packed.
        keep: whether to keep the archive.
    """

    urls: str | tuple[str, ...]
    md5: str | None = None
    name: str = ""
    folder: str = ""
    into: str | None = ""
    keep: bool = True

    def fetch(self, root: AnyPath) -> None:
        """Downloads it and unpacks it.

        Raises:
            RuntimeError: if it is damaged, or none of several addresses has it.
            urllib.error.URLError: if the only address cannot be reached.
        """
        urls = (self.urls,) if isinstance(self.urls, str) else self.urls
        name = self.name or name_in(urls[0])
        folder = os.path.join(root, self.folder)
        errors = []
        for url in urls:
            try:
                download_url(url, folder, name, self.md5)
                break
            except (RuntimeError, URLError) as error:
                if len(urls) == 1:
                    raise
                errors.append(f"Tried {url}, got:\n{error}")
        else:
            raise RuntimeError("\n".join([f"Error downloading {name}:", *errors]))
        if self.into is not None:
            extract_archive(
                os.path.join(folder, name), os.path.join(folder, self.into), not self.keep
            )


def on_drive(file_id: str) -> str:
    """The address of a file on Google Drive."""
    return f"https://drive.google.com/file/d/{file_id}"


class DownloadableDataset(VisionDataset):
    """A data set that knows where its files are found.

    Args:
        root: folder of the files.
        transform: function of the sample.
        target_transform: function of the target.
        transforms: function of both, in place of the other two.
    """

    _sources: Sequence[Source] = ()
    _needs: Sequence[Need] = ()

    def _prepare(self, download: bool) -> None:
        """Makes sure that the files are there, by downloading them if that is wanted."""
        missing = self._missing()
        if missing is not None and download:
            self.download()
            missing = self._missing()
        if missing is not None:
            raise RuntimeError(
                f"{type(self).__name__}: Dataset not found or corrupted: {missing}. "
                + self._advice()
            )

    def _advice(self) -> str:
        if self._sources:
            return "You can use download=True to download it"
        return f"It cannot be downloaded: put its files in {self.root} yourself."

    def download(self) -> None:
        """Downloads and unpacks the files unless all are there.

        Raises:
            RuntimeError: if a file is damaged.
            urllib.error.URLError: if a server cannot be reached or does not have it.
        """
        if self._missing() is not None:
            for source in self._sources:
                source.fetch(self.root)

    def _missing(self) -> str | None:
        """Says what is missing or damaged, or None."""
        for need in self._needs:
            name, md5 = (need, None) if isinstance(need, str) else need
            path = os.path.join(self.root, name)
            if not os.path.exists(path):
                return f"there is no {path}"
            if md5 is not None and not check_integrity(path, md5):
                return f"{path} is not the file with the MD5 {md5}"
        return None

    def _set_classes(self, classes: Iterable[str]) -> None:
        self.classes = [*classes]
        self.class_to_idx = {name: index for index, name in enumerate(self.classes)}


class LabeledFiles(DownloadableDataset):
    """Files with a label each: a subclass fills `_samples` with pairs of both.

    Args:
        root: folder of the files.
        transform: function of the sample.
        target_transform: function of the label.
        loader: function of a path that returns the sample.
    """

    _samples: Sequence[tuple[Any, Any]] = ()

    def __init__(
        self,
        root: AnyPath,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader = loader

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, label = self._samples[index]
        return self._transformed(self.loader(path), label)

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def _image_files(self) -> list[Any]:
        return [path for path, _ in self._samples]

    @property
    def _labels(self) -> list[Any]:
        return [label for _, label in self._samples]


def one_or_tuple(targets: list[Any]) -> Any:
    """A target alone, several as a tuple, and None for none."""
    if not targets:
        return None
    return targets[0] if len(targets) == 1 else tuple(targets)


def read_lines(path: AnyPath) -> list[str]:
    """The lines of a text file, without the space around them."""
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file]


def read_mat(path: AnyPath, *names: str, **options: Any) -> tuple[Any, ...]:
    """The variables with these names in a MATLAB file.

    Args:
        path: the file.
        names: of the variables.
        options: scipy.io.loadmat's.

    Raises:
        RuntimeError: if SciPy is not installed, the file is damaged or lacks one of the names.
    """
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise RuntimeError(
            f"read_mat: {path} needs SciPy to be read. Install it: pip install scipy"
        ) from error
    try:
        content = loadmat(os.fspath(path), variable_names=list(names), **options)
        return tuple(content[name] for name in names)
    except FileNotFoundError:
        raise
    except KeyError as error:
        raise RuntimeError(f"read_mat: {path} has no variable {error}.") from error
    except Exception as error:  # SciPy meets damage with exceptions of all kinds
        raise RuntimeError(f"read_mat: {path} is not a whole MATLAB file: {error}.") from error


def told_with_path(path: AnyPath, read: Callable[[], Any]) -> Any:
    """What read returns; an error about what the file holds is told with its path."""
    try:
        return read()
    except (ValueError, IndexError, KeyError) as error:
        raise ValueError(f"{path} is damaged: {error}. Download it again.") from error
