"""Photographs with sentences about them: Flickr8k, Flickr30k and SBU.

Owns the reading of their lists, a web page and two kinds of text.
"""

from __future__ import annotations

import contextlib
import os
from html.parser import HTMLParser
from pathlib import Path

from rushlight.vision.datasets._files import LabeledFiles, Source, read_lines, told_with_path
from rushlight.vision.datasets.folder import default_loader
from rushlight.vision.datasets.utils import download_url
from rushlight.vision.datasets.vision import AnyPath, Loader, Transform


class Flickr8kParser(HTMLParser):
    """Reads Flickr8k's web page: in a table, links to images with lists of captions."""

    def __init__(self, root: AnyPath) -> None:
        super().__init__()
        self.root = root
        self.annotations: dict[str, list[str]] = {}
        self._is_in_table = False
        self._tag: str | None = None
        self._picture: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        self._is_in_table |= tag == "table"

    def handle_endtag(self, tag: str) -> None:
        self._tag = None
        self._is_in_table &= tag != "table"

    def handle_data(self, data: str) -> None:
        if not self._is_in_table:
            return
        if data == "Image Not Found":
            self._picture = None
        elif self._tag == "a":
            number = data.split("/")[-2]  # http://flickr.com/photos/someone/<number>/
            found = sorted(Path(self.root).glob(f"{number}_*.jpg"))
            if not found:
                raise ValueError(f"there is no {number}_*.jpg in {self.root}")
            self._picture = str(found[0])
            self.annotations[self._picture] = []
        elif self._tag == "li" and self._picture is not None:
            self.annotations[self._picture].append(data.strip())


class _Captioned(LabeledFiles):
    """Images with all their captions as the target, which _read returns by image."""

    def __init__(
        self,
        root: AnyPath,
        ann_file: str,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self.ann_file = os.path.expanduser(ann_file)
        self.annotations: dict[str, list[str]] = told_with_path(self.ann_file, self._read)
        self.ids = sorted(self.annotations)
        self._samples = [(self._path(name), self.annotations[name]) for name in self.ids]

    def _path(self, name: str) -> str:
        return os.path.join(self.root, name)

    def _read(self) -> dict[str, list[str]]:
        raise NotImplementedError


class Flickr8k(_Captioned):
    """8,092 photographs with five captions each: Hodosh et al. 2013.

    Args as for LabeledFiles, and:
        root: folder of the images.
        ann_file: web page with the captions.

    Raises:
        ValueError: if this page is damaged, or an image in it is not there.
    """

    def _read(self) -> dict[str, list[str]]:
        parser = Flickr8kParser(self.root)
        parser.feed(Path(self.ann_file).read_text())
        return parser.annotations

    def _path(self, name: str) -> str:
        return name


class Flickr30k(_Captioned):
    """31,783 photographs with five captions each: Young et al. 2014.

    Args as for LabeledFiles, and:
        root: folder of the images.
        ann_file: text with a name, "#", a number, a tab and a caption in each line.

    Raises:
        ValueError: if this text is damaged.
    """

    def _read(self) -> dict[str, list[str]]:
        captions: dict[str, list[str]] = {}
        for line in read_lines(self.ann_file):
            name, caption = line.split("\t")
            captions.setdefault(name.rpartition("#")[0], []).append(caption)  # 36979.jpg#0
        return captions


class SBU(LabeledFiles):
    """A million photographs with a caption each: Ordonez et al. 2011.

    Args as for LabeledFiles, and:
        download: whether to download the list and the images, as far as they still exist.

    Attributes:
        photos: names of the images that are there.
        captions: their captions.

    Raises:
        RuntimeError: if the list is not there or damaged.
    """

    url = "https://www.cs.rice.edu/~vo9/sbucaptions/SBUCaptionedPhotoDataset.tar.gz"
    filename = "SBUCaptionedPhotoDataset.tar.gz"
    md5_checksum = "9aec147b3488753cf758b4d493422285"

    def __init__(
        self,
        root: AnyPath,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = True,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._sources = (Source(self.url, self.md5_checksum, self.filename),)
        self._needs = ((self.filename, self.md5_checksum), "dataset")
        self._prepare(download)
        captions = read_lines(self._path("SBU_captioned_photo_dataset_captions.txt"))
        self._samples = [
            (self._path(os.path.basename(url)), caption)
            for url, caption in zip(self._urls(), captions, strict=False)
            if os.path.exists(self._path(os.path.basename(url)))
        ]
        self.photos = [os.path.basename(path) for path, _ in self._samples]
        self.captions = self._labels

    def _path(self, name: str) -> str:
        return os.path.join(self.root, "dataset", name)

    def _urls(self) -> list[str]:
        return read_lines(self._path("SBU_captioned_photo_dataset_urls.txt"))

    def download(self) -> None:
        if self._missing() is None:
            return
        super().download()
        for url in self._urls():
            # Whoever took a photograph may have removed it.
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                download_url(url, os.path.join(self.root, "dataset"))
