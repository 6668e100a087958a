"""Data sets whose images are all in one file: numbers as text, plain bytes or .mat.

Owns the reading of these files into arrays, from which images are made when asked for.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import bz2
import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from rushlight.vision.datasets._files import DownloadableDataset, Source, read_mat, told_with_path
from rushlight.vision.datasets.utils import verify_str_arg
from rushlight.vision.datasets.vision import AnyPath, Transform


class SVHN(DownloadableDataset):
    """House numbers, 32 x 32 color images of digits: Netzer et al. 2011.

    Args:
        root: folder of the files.
        split: "train", "test" or "extra".
        transform: function of the PIL image.
        target_transform: function of the digit.
        download: whether to download the file if it is not there.

    Attributes:
        data: (N, 3, 32, 32) uint8, an array of NumPy.
        labels: (N,) int64, an array of NumPy.

    Raises:
        RuntimeError: if the file is not there or damaged, or SciPy is not installed.
    """

    _repr_format = "Split: {split}"
    split_list = {
        split: [f"http://ufldl.stanford.edu/housenumbers/{name}", name, md5]
        for split, name, md5 in (
            ("train", "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
            ("test", "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
            ("extra", "extra_32x32.mat", "a93ce644f1a588dc4d68dda5feec44a7"),
        )
    }

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self.split_list)
        self.url, self.filename, self.file_md5 = self.split_list[split]
        self._sources = (Source(self.url, self.file_md5, self.filename, into=None),)
        self._needs = ((self.filename, self.file_md5),)
        self._prepare(download)
        pixels, labels = read_mat(os.path.join(self.root, self.filename), "X", "y")
        self.data = pixels.transpose(3, 2, 0, 1)  # (N, 3, 32, 32)
        self.labels = labels.astype(np.int64).reshape(-1) % 10  # the file calls the digit 0 ten

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = Image.fromarray(self.data[index].transpose(1, 2, 0))
        return self._transformed(image, int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)


class STL10(DownloadableDataset):
    """96 x 96 color images in ten classes, most without a label: Coates et al. 2011.

    Args:
        root: folder of the data set's folder, stl10_binary.
        split: "train", "test", "unlabeled" or "train+unlabeled".
        folds: which thousand of the training set to take, 0 to 9, by default all of it.
        transform: function of the PIL image.
        target_transform: function of the number of the class, -1 where it has none.
        download: whether to download the files that are not there.

    Attributes:
        data: (N, 3, 96, 96) uint8, an array of NumPy.
        labels: (N,), an array of NumPy.
        classes: names of the classes.

    Raises:
        ValueError: if there is no such split or fold.
        RuntimeError: if the files are not there or damaged.
    """

    _repr_format = "Split: {split}"
    base_folder = "stl10_binary"
    url = "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"
    filename = "stl10_binary.tar.gz"
    tgz_md5 = "91f7769df0f17e558f3565bffb0c7dfb"
    class_names_file = "class_names.txt"
    folds_list_file = "fold_indices.txt"
    train_list = [
        ["train_X.bin", "918c2871b30a85fa023e0c44e0bee87f"],
        ["train_y.bin", "5a34089d4802c674881badbb80307741"],
        ["unlabeled_X.bin", "5242ba1fed5e4be9e1e742405eb56ca4"],
    ]
    test_list = [
        ["test_X.bin", "7f263ba9f9e0b06b93213547f721ac82"],
        ["test_y.bin", "36f9794fa4beb8a2c72628de14fa638e"],
    ]
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        folds: int | None = None,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self.splits)
        if folds is not None and not isinstance(folds, int):
            raise ValueError(f"Expected type None or int for argument folds, but got {type(folds)}")
        if folds is not None and folds not in range(10):
            raise ValueError(
                f"Value for argument folds should be in the range [0, 10), but got {folds}."
            )
        self.folds = folds
        self._needs = [
            (os.path.join(self.base_folder, name), md5)
            for name, md5 in self.train_list + self.test_list
        ]
        self._sources = (Source(self.url, self.tgz_md5, self.filename),)
        self._prepare(download)
        parts = [self._load(part) for part in split.split("+")]
        self.data = np.concatenate([data for data, _ in parts])
        self.labels = np.concatenate([labels for _, labels in parts])
        names = self._path(self.class_names_file)
        if os.path.isfile(names):
            self.classes = Path(names).read_text().splitlines()

    def _path(self, name: str) -> str:
        return os.path.join(self.root, self.base_folder, name)

    def _load(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        path = self._path(f"{part}_X.bin")
        data = told_with_path(path, lambda: np.fromfile(path, np.uint8).reshape(-1, 3, 96, 96))
        data = data.transpose(0, 1, 3, 2)  # the file goes column by column
        if part == "unlabeled":
            return data, np.full(len(data), -1)
        labels = np.fromfile(self._path(f"{part}_y.bin"), np.uint8) - np.uint8(1)
        if len(labels) != len(data):
            raise ValueError(f"{path} has {len(data)} images for {len(labels)} labels.")
        if part == "test" or self.folds is None:
            return data, labels
        lines = Path(self._path(self.folds_list_file)).read_text().splitlines()
        fold = [int(index) for index in lines[self.folds].split()]
        return data[fold], labels[fold]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = Image.fromarray(self.data[index].transpose(1, 2, 0))
        return self._transformed(image, int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)


class _GrayImages(DownloadableDataset):
    """`data`, (N, height, width) uint8, and as many labels."""

    data: np.ndarray

    def _label(self, index: int) -> int:
        raise NotImplementedError

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(Image.fromarray(self.data[index]), self._label(index))

    def __len__(self) -> int:
        return len(self.data)


class USPS(_GrayImages):
    """Digits from envelopes, 16 x 16 gray images: Hull 1994.

    Args:
        root: folder of the file.
        train: whether to take the training set, not the test set.
        transform: function of the PIL image.
        target_transform: function of the digit.
        download: whether to download the file if it is not there.

    Attributes:
        data: (N, 16, 16) uint8, an array of NumPy.
        targets: list of the digits.

    Raises:
        RuntimeError: if the file is not there.
        ValueError: if it is damaged.
    """

    split_list = {
        split: [
            f"https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/{name}",
            name,
            md5,
        ]
        for split, name, md5 in (
            ("train", "usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"),
            ("test", "usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"),
        )
    }

    def __init__(
        self,
        root: AnyPath,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        url, name, md5 = self.split_list["train" if train else "test"]
        self._sources = (Source(url, md5, name, into=None),)
        self._needs = (name,)
        self._prepare(download)
        path = os.path.join(self.root, name)
        self.data, self.targets = told_with_path(path, lambda: self._read(path))

    @staticmethod
    def _read(path: str) -> tuple[np.ndarray, list[int]]:
        """Reads lines of a label from 1 to 10 and 256 times "number:value" with values in -1..1."""
        with bz2.open(path, "rt") as file:
            rows = [line.split() for line in file]
        values = [[pixel.split(":")[-1] for pixel in row[1:]] for row in rows]
        pixels = np.asarray(values, np.float32).reshape(-1, 16, 16)
        return ((pixels + 1) / 2 * 255).astype(np.uint8), [int(row[0]) - 1 for row in rows]

    def _label(self, index: int) -> int:
        return int(self.targets[index])


class SEMEION(_GrayImages):
    """1,593 digits from Italy, 16 x 16 black and white images: Buscema 1998.

    Args:
        root: folder of the file, semeion.data.
        transform: function of the PIL image.
        target_transform: function of the digit.
        download: whether to download the file if it is not there.

    Attributes:
        data: (N, 16, 16) uint8, an array of NumPy.
        labels: (N,), an array of NumPy.

    Raises:
        RuntimeError: if the file is not there or damaged.
    """

    url = "http://archive.ics.uci.edu/ml/machine-learning-databases/semeion/semeion.data"
    filename = "semeion.data"
    md5_checksum = "cb545d371d2ce14ec121470795a77432"

    def __init__(
        self,
        root: AnyPath,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = True,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._sources = (Source(self.url, self.md5_checksum, self.filename, into=None),)
        self._needs = ((self.filename, self.md5_checksum),)
        self._prepare(download)
        path = os.path.join(self.root, self.filename)
        rows = told_with_path(path, lambda: np.loadtxt(path, ndmin=2))
        self.data = (rows[:, :256] * 255).astype(np.uint8).reshape(-1, 16, 16)
        self.labels = np.nonzero(rows[:, 256:])[1]

    def _label(self, index: int) -> int:
        return int(self.labels[index])


class FER2013(DownloadableDataset):
    """Faces with one of seven emotions, 48 x 48 gray images: Goodfellow et al. 2013.

    It comes from a contest at kaggle.com/c/challenges-in-representation-learning-facial-expression-
    recognition-challenge. The labels of the test set are in fer2013.csv and icml_face_data.csv;
    with test.csv alone they are None.

    Args:
        root: folder of the data set's folder, fer2013.
        split: "train" or "test".
        transform: function of the PIL image.
        target_transform: function of the number of the emotion.

    Raises:
        RuntimeError: if none of the files is there, or it is damaged.
    """

    _repr_format = "split={_split}"
    _RESOURCES = {
        "train": ("train.csv", "3f0dfb3d3fd99c811a1299cb947e3131"),
        "test": ("test.csv", "b02c2298636a634e8c2faabbf3ea9a23"),
        "fer": ("fer2013.csv", "f8428a1edbd21e88f42c73edd2a14f95"),
        "icml": ("icml_face_data.csv", "b114b9e04e6949e5fe8b6a98b3892b1d"),
    }

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        folder = Path(self.root) / "fer2013"
        found = (kind for kind in ("fer", "icml") if (folder / self._RESOURCES[kind][0]).exists())
        kind = next(found, split)
        name, md5 = self._RESOURCES[kind]
        self._needs = ((os.path.join("fer2013", name), md5),)
        self._prepare(download=False)
        path = folder / name
        self._samples = told_with_path(path, lambda: self._read(path, kind))

    def _read(self, path: Path, kind: str) -> list[tuple[np.ndarray, int | None]]:
        usages = ("Training",) if self._split == "train" else ("PublicTest", "PrivateTest")
        samples = []
        with path.open(newline="") as file:
            for row in csv.DictReader(file, skipinitialspace=True):
                if kind in ("fer", "icml") and row["Usage"] not in usages:
                    continue
                pixels = np.array(row["pixels"].split(), np.uint8).reshape(48, 48)
                samples.append((pixels, None if kind == "test" else int(row["emotion"])))
        return samples

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        pixels, target = self._samples[idx]
        return self._transformed(Image.fromarray(pixels), target)

    def __len__(self) -> int:
        return len(self._samples)
