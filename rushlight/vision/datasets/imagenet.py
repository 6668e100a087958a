"""ImageNet's classification set of 2012, from the archives that its owners give out.

Owns their unpacking into one folder for each class. A folder gets its name when it is complete.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

import rushlight as rl
from rushlight.vision.datasets._files import read_lines, read_mat
from rushlight.vision.datasets.folder import ImageFolder
from rushlight.vision.datasets.utils import check_integrity, extract_archive, verify_str_arg
from rushlight.vision.datasets.vision import AnyPath

__all__ = [
    "ImageNet",
    "load_meta_file",
    "parse_devkit_archive",
    "parse_train_archive",
    "parse_val_archive",
]

ARCHIVE_META = {
    "train": ("ILSVRC2012_img_train.tar", "1d675b47d978889d74fa0da5fadfb00e"),
    "val": ("ILSVRC2012_img_val.tar", "29b22e2961454d5413ddabcf34fc5622"),
    "devkit": ("ILSVRC2012_devkit_t12.tar.gz", "fa75699e90414af021442c21a62c3abf"),
}
META_FILE = "meta.bin"


class ImageNet(ImageFolder):
    """1.3 million photographs of a thousand kinds of things: Russakovsky et al. 2015.

    It cannot be downloaded without an account: put ILSVRC2012_devkit_t12.tar.gz and
    ILSVRC2012_img_train.tar or ILSVRC2012_img_val.tar into the root. They are unpacked once.

    Args:
        root: folder of the archives.
        split: "train" or "val".
        kwargs: further arguments of ImageFolder.

    Attributes:
        classes: names of the classes, a tuple for each.
        class_to_idx: number of the class of each name.
        wnids: WordNet's numbers of the classes.
        wnid_to_idx: number of the class of each of these.

    Raises:
        RuntimeError: if an archive is not there or damaged, or SciPy is not installed.
    """

    _repr_format = "Split: {split}"

    def __init__(self, root: AnyPath, split: str = "train", **kwargs: Any) -> None:
        root = self.root = os.path.expanduser(root)
        self.split = verify_str_arg(split, "split", ("train", "val"))
        self.parse_archives()
        names = load_meta_file(root)[0]
        super().__init__(self.split_folder, **kwargs)
        self.root = root
        self.wnids: list[str] = self.classes
        self.wnid_to_idx = self.class_to_idx
        self.classes: Any = [names[wnid] for wnid in self.wnids]
        self.class_to_idx = {n: i for i, several in enumerate(self.classes) for n in several}

    def parse_archives(self) -> None:
        """Unpacks the archives whose content is not there yet."""
        if not check_integrity(os.path.join(self.root, META_FILE)):
            parse_devkit_archive(self.root)
        if not os.path.isdir(self.split_folder):
            (parse_train_archive if self.split == "train" else parse_val_archive)(self.root)

    @property
    def split_folder(self) -> str:
        """The folder of the images."""
        return os.path.join(self.root, self.split)


def load_meta_file(
    root: AnyPath, file: str | None = None
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Returns the names of each class, by WordNet's numbers, and the numbers of the val images.

    Raises:
        RuntimeError: if the file is not there, which parse_devkit_archive writes.
    """
    path = os.path.join(root, file or META_FILE)
    if not check_integrity(path):
        raise RuntimeError(
            f"The meta file {os.path.basename(path)} is not present in the root directory {root} "
            "or is corrupted. This file is automatically created by the ImageNet dataset."
        )
    return rl.load(path, weights_only=True)


def _archive(root: AnyPath, kind: str, file: str | None) -> str:
    """The path of an archive, which is there and whole."""
    name, md5 = ARCHIVE_META[kind]
    path = os.path.join(root, file or name)
    if not check_integrity(path, md5):
        raise RuntimeError(
            f"The archive {os.path.basename(path)} is not present in the root directory or is "
            f"corrupted. You need to download it externally and place it in {root}."
        )
    return path


def parse_devkit_archive(root: AnyPath, file: str | None = None) -> None:
    """Writes the names of the classes and the labels of the val images to root/meta.bin.

    Args:
        root: folder of the archive.
        file: its name, by default ILSVRC2012_devkit_t12.tar.gz.

    Raises:
        RuntimeError: if it is not there or damaged, or SciPy is not installed.
    """
    archive = _archive(root, "devkit", file)
    with tempfile.TemporaryDirectory() as folder:
        extract_archive(archive, folder)
        data = os.path.join(folder, "ILSVRC2012_devkit_t12", "data")
        (synsets,) = read_mat(os.path.join(data, "meta.mat"), "synsets", squeeze_me=True)
        labels = read_lines(os.path.join(data, "ILSVRC2012_validation_ground_truth.txt"))
    # number, WordNet's number, names, description, number of children, ...
    leaves = [synset for synset in synsets if synset[4] == 0]
    wnids = {int(leaf[0]): str(leaf[1]) for leaf in leaves}
    names = {str(leaf[1]): tuple(str(leaf[2]).split(", ")) for leaf in leaves}
    content = names, [wnids[int(label)] for label in labels]
    rl.save(content, os.path.join(root, META_FILE))


def parse_train_archive(root: AnyPath, file: str | None = None, folder: str = "train") -> None:
    """Unpacks the training images, which are in one archive for each class within one.

    Args:
        root: folder of the archive.
        file: its name, by default ILSVRC2012_img_train.tar.
        folder: name of the folder to make.

    Raises:
        RuntimeError: if it is not there or damaged.
    """
    incomplete = _emptied(root, folder)
    extract_archive(_archive(root, "train", file), incomplete)
    for name in os.listdir(incomplete):
        path = os.path.join(incomplete, name)
        extract_archive(path, os.path.splitext(path)[0], remove_finished=True)
    os.rename(incomplete, os.path.join(root, folder))


def parse_val_archive(
    root: AnyPath, file: str | None = None, wnids: list[str] | None = None, folder: str = "val"
) -> None:
    """Unpacks the val images and moves them to one folder for each class.

    Args:
        root: folder of the archive.
        file: its name, by default ILSVRC2012_img_val.tar.
        wnids: WordNet's number of the class of each image, by default those of root/meta.bin.
        folder: name of the folder to make.

    Raises:
        RuntimeError: if it is not there or damaged.
    """
    if wnids is None:
        wnids = load_meta_file(root)[1]
    incomplete = _emptied(root, folder)
    extract_archive(_archive(root, "val", file), incomplete)
    pictures = sorted(os.listdir(incomplete))
    if len(pictures) != len(wnids):
        raise RuntimeError(
            f"parse_val_archive: the archive has {len(pictures)} images for {len(wnids)} labels."
        )
    for wnid in set(wnids):
        os.mkdir(os.path.join(incomplete, wnid))
    for wnid, name in zip(wnids, pictures, strict=True):
        os.rename(os.path.join(incomplete, name), os.path.join(incomplete, wnid, name))
    os.rename(incomplete, os.path.join(root, folder))


def _emptied(root: AnyPath, folder: str) -> str:
    """The folder to unpack to until all is there, without what an earlier attempt left."""
    path = os.path.join(root, f"{folder}.incomplete")
    shutil.rmtree(path, ignore_errors=True)
    return path
