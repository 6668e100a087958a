"""MNIST and the data sets in its format: Fashion-MNIST, KMNIST, EMNIST and QMNIST.

Owns the reader of that format, idx: two zero bytes, the type, the number of dimensions, the sizes
as big-endian 32-bit numbers, then the elements (http://yann.lecun.com/exdb/mnist). A file must be
as long as its header says.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import os
import shutil
import string
import struct
import warnings
from typing import Any

import numpy as np
from PIL import Image

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.datasets._files import DownloadableDataset, Source
from rushlight.vision.datasets.utils import extract_archive, verify_str_arg
from rushlight.vision.datasets.vision import AnyPath, Transform

__all__ = [
    "EMNIST",
    "KMNIST",
    "MNIST",
    "QMNIST",
    "FashionMNIST",
    "read_image_file",
    "read_label_file",
    "read_sn3_pascalvincent_tensor",
]

_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def read_sn3_pascalvincent_tensor(path: str, strict: bool = True) -> Tensor:
    """Reads a tensor from a file in MNIST's format.

    Args:
        path: the file.
        strict: accepted for torchvision's sake; a file is never read beyond its end.

    Raises:
        ValueError: if it is not such a file, or longer or shorter than it says.
    """
    with open(path, "rb") as file:
        header = file.read(4)
        if len(header) < 4 or header[:2] != b"\0\0" or header[2] not in _TYPES:
            raise ValueError(f"read_sn3_pascalvincent_tensor: {path} is not an idx file.")
        dtype, ndim = np.dtype(_TYPES[header[2]]), header[3]
        sizes = file.read(4 * ndim)
        if not 1 <= ndim <= 3 or len(sizes) < 4 * ndim:
            raise ValueError(
                f"read_sn3_pascalvincent_tensor: {path} has {ndim} dimensions. It must have 1 to 3."
            )
        shape = struct.unpack(f">{ndim}I", sizes)
        count = int(np.prod(shape, dtype=object))
        length = 4 + 4 * ndim + count * dtype.itemsize
        if os.path.getsize(path) != length:
            raise ValueError(
                f"read_sn3_pascalvincent_tensor: {path} has {os.path.getsize(path)} bytes, but "
                f"{length} are needed for its shape {shape}. Download it again."
            )
        values = np.fromfile(file, dtype, count)
    return rl.from_numpy(values.astype(dtype.newbyteorder("="), copy=False).reshape(shape))


def _read(path: str, ndim: int) -> Tensor:
    values = read_sn3_pascalvincent_tensor(path)
    if values.dtype != rl.uint8:
        raise TypeError(f"{path} should be of dtype torch.uint8 instead of {values.dtype}")
    if values.ndim != ndim:
        raise ValueError(f"{path} should have {ndim} dimensions instead of {values.ndim}")
    return values


def read_label_file(path: str) -> Tensor:
    """Reads labels, (N,) int64, from a file in MNIST's format."""
    return _read(path, 1).long()


def read_image_file(path: str) -> Tensor:
    """Reads images, (N, height, width) uint8, from a file in MNIST's format."""
    return _read(path, 3)


def _unpacked(name: str) -> str:
    """The name that a compressed file has when it is decompressed."""
    return os.path.splitext(os.path.basename(name))[0]


def _renamed(old: str, new: str) -> property:
    def get(self: MNIST) -> Any:
        warnings.warn(f"{old} has been renamed {new}", stacklevel=2)
        return getattr(self, new)

    return property(get, doc=f"The old name of {new}.")


class MNIST(DownloadableDataset):
    """Handwritten digits, 60,000 and 10,000 gray images of 28 x 28 pixels: LeCun et al. 1998.

    The files are in root/MNIST/raw; root/FashionMNIST/raw and so on for the data sets below.

    Args:
        root: folder of the data set's folder.
        train: whether to take the training set, not the test set.
        transform: function of the PIL image.
        target_transform: function of the number of the class.
        download: whether to download the files that are not there.

    Attributes:
        data: (N, 28, 28) uint8.
        targets: (N,) int64.
        classes: names of the classes.

    Raises:
        RuntimeError: if the files are not there, and are not to be downloaded.
        ValueError: if a file is damaged.
    """

    mirrors = [
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ]
    resources: Any = [
        *zip(
            _FILES,
            (
                "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                "d53e105ee54ea40749a09fcbcd1e9432",
                "9fb629c4189551a2d022fa330f9573f3",
                "ec29112dd5afa0611ce80d1b7f02629c",
            ),
            strict=True,
        )
    ]
    train_data, train_labels = _renamed("train_data", "data"), _renamed("train_labels", "targets")
    test_data, test_labels = _renamed("test_data", "data"), _renamed("test_labels", "targets")
    training_file = "training.pt"
    test_file = "test.pt"
    classes = [f"{digit} - {name}" for digit, name in enumerate(_DIGITS)]

    def __init__(
        self,
        root: AnyPath,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        older = [
            os.path.join(self.processed_folder, f) for f in (self.training_file, self.test_file)
        ]
        if all(os.path.isfile(path) for path in older):  # as torchvision kept them before 0.10
            self.data, self.targets = rl.load(older[0 if train else 1], weights_only=True)
            return
        self._describe()
        self._prepare(download)
        self.data, self.targets = self._load_data()

    @property
    def raw_folder(self) -> str:
        """The folder of the files as downloaded."""
        return os.path.join(self.root, self._raw)

    @property
    def _raw(self) -> str:
        return os.path.join(type(self).__name__, "raw")

    @property
    def processed_folder(self) -> str:
        """The folder of the files of old versions of torchvision."""
        return os.path.join(self.root, type(self).__name__, "processed")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class."""
        return {name: index for index, name in enumerate(self.classes)}

    @property
    def images_file(self) -> str:
        """The file of the images."""
        return os.path.join(self.raw_folder, _unpacked(_FILES[0 if self.train else 2]))

    @property
    def labels_file(self) -> str:
        """The file of the labels."""
        return os.path.join(self.raw_folder, _unpacked(_FILES[1 if self.train else 3]))

    def _describe(self) -> None:
        """Says which files are needed, and where they are found."""
        self._sources = [
            Source(tuple(mirror + name for mirror in self.mirrors), md5, folder=self._raw)
            for name, md5 in self.resources
        ]
        self._needs = [os.path.join(self._raw, _unpacked(name)) for name, _ in self.resources]

    def _load_data(self) -> tuple[Tensor, Tensor]:
        data, targets = read_image_file(self.images_file), read_label_file(self.labels_file)
        if len(data) != len(targets):
            raise ValueError(
                f"{type(self).__name__}: {self.images_file} has {len(data)} images, but "
                f"{self.labels_file} has {len(targets)} labels. Download both again."
            )
        return data, targets

    def _image(self, index: int) -> Image.Image:
        pixels: Any = self.data[index].contiguous()
        height, width = pixels.shape
        return Image.frombuffer("L", (width, height), pixels, "raw", "L", 0, 1)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(self._image(index), int(self.targets[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


class FashionMNIST(MNIST):
    """Images of clothes in MNIST's format: Xiao et al. 2017. Arguments as for MNIST."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        *zip(
            _FILES,
            (
                "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "25c81989df183df01b3e8a0aad5dffbe",
                "bef4ecab320f06d8554ea6380940ec79",
                "bb300cfdad3c16e7a12a480ee83cd310",
            ),
            strict=True,
        )
    ]
    classes = [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]


class KMNIST(MNIST):
    """Cursive Japanese letters in MNIST's format: Clanuwat et al. 2018. Arguments as for MNIST."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        *zip(
            _FILES,
            (
                "bdb82020997e1d708af4cf47b453dcf7",
                "e144d726b3acfaa3e44228e80efcd344",
                "5c965bf0a639b31b8f53240b1b52f4d7",
                "7320c461ea6c1c855c0b718fb2a4b134",
            ),
            strict=True,
        )
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class EMNIST(MNIST):
    """Handwritten letters and digits in MNIST's format: Cohen et al. 2017.

    Args:
        root: folder of the data set's folder.
        split: "byclass", "bymerge", "balanced", "letters", "digits" or "mnist".
        kwargs: further arguments of MNIST.

    Raises:
        ValueError: if there is no such split.
        RuntimeError: if the files are not there, and are not to be downloaded.
    """

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    _all_classes = sorted(string.digits + string.ascii_letters)
    # Letters whose large and small forms are one class.
    _merged_classes = sorted(set(_all_classes) - set("cijklmopsuvwxyz"))
    classes_split_dict = {
        "byclass": _all_classes,
        "bymerge": _merged_classes,
        "balanced": _merged_classes,
        "letters": ["N/A", *string.ascii_lowercase],
        "digits": [*string.digits],
        "mnist": [*string.digits],
    }

    def __init__(self, root: AnyPath, split: str, **kwargs: Any) -> None:
        self.split = verify_str_arg(split, "split", self.splits)
        self.training_file = f"training_{split}.pt"
        self.test_file = f"test_{split}.pt"
        super().__init__(root, **kwargs)
        self.classes = self.classes_split_dict[self.split]

    def _name(self, kind: str) -> str:
        return f"emnist-{self.split}-{'train' if self.train else 'test'}-{kind}-ubyte"

    @property
    def images_file(self) -> str:
        return os.path.join(self.raw_folder, self._name("images-idx3"))

    @property
    def labels_file(self) -> str:
        return os.path.join(self.raw_folder, self._name("labels-idx1"))

    def _describe(self) -> None:
        self._sources = (Source(self.url, self.md5, folder=self._raw),)
        kinds = ("images-idx3", "labels-idx1")
        self._needs = [os.path.join(self._raw, self._name(kind)) for kind in kinds]

    def download(self) -> None:
        if self._missing() is None:
            return
        super().download()
        inner = os.path.join(self.raw_folder, "gzip")
        for name in os.listdir(inner):
            if name.endswith(".gz"):
                extract_archive(os.path.join(inner, name), self.raw_folder)
        shutil.rmtree(inner)


_QMNIST = "https://raw.githubusercontent.com/facebookresearch/qmnist/master/"


class QMNIST(MNIST):
    """MNIST with 60,000 test digits, and where each digit comes from: Yadav and Bottou 2019.

    Args:
        root: folder of the data set's folder.
        what: "train", "test", "test10k" (MNIST's test set), "test50k" (the others) or "nist" (all),
            by default as `train` says.
        compat: whether a target is the number of the class, not a tensor of all that is known.
        train: whether to take the training set, not the test set, unless `what` says.
        kwargs: further arguments of MNIST.

    Raises:
        ValueError: if `what` is none of these, or a file is damaged.
        RuntimeError: if the files are not there, and are not to be downloaded.
    """

    subsets = {
        "train": "train",
        "test": "test",
        "test10k": "test",
        "test50k": "test",
        "nist": "nist",
    }
    resources = {
        "train": [
            (f"{_QMNIST}qmnist-train-images-idx3-ubyte.gz", "ed72d4157d28c017586c42bc6afe6370"),
            (f"{_QMNIST}qmnist-train-labels-idx2-int.gz", "0058f8dd561b90ffdd0f734c6a30e5e4"),
        ],
        "test": [
            (f"{_QMNIST}qmnist-test-images-idx3-ubyte.gz", "1394631089c404de565df7b7aeaf9412"),
            (f"{_QMNIST}qmnist-test-labels-idx2-int.gz", "5b5b05890a5e13444e108efe57b788aa"),
        ],
        "nist": [
            (f"{_QMNIST}xnist-images-idx3-ubyte.xz", "7f124b3b8ab81486c9d8c2749c17f834"),
            (f"{_QMNIST}xnist-labels-idx2-int.xz", "5ed0e788978e45d4a8bd4b7caec3d79d"),
        ],
    }

    def __init__(
        self,
        root: AnyPath,
        what: str | None = None,
        compat: bool = True,
        train: bool = True,
        **kwargs: Any,
    ) -> None:
        if what is None:
            what = "train" if train else "test"
        self.what = verify_str_arg(what, "what", self.subsets)
        self.compat = compat
        self.data_file = self.training_file = self.test_file = f"{what}.pt"
        super().__init__(root, train, **kwargs)

    def _describe(self) -> None:
        files = self.resources[self.subsets[self.what]]
        self._sources = [Source(url, md5, folder=self._raw) for url, md5 in files]
        self._needs = [os.path.join(self._raw, _unpacked(url)) for url, _ in files]

    def _file(self, number: int) -> str:
        url, _ = self.resources[self.subsets[self.what]][number]
        return os.path.join(self.raw_folder, _unpacked(url))

    @property
    def images_file(self) -> str:
        return self._file(0)

    @property
    def labels_file(self) -> str:
        return self._file(1)

    def _load_data(self) -> tuple[Tensor, Tensor]:
        data = read_image_file(self.images_file)
        targets = read_sn3_pascalvincent_tensor(self.labels_file).long()
        if targets.ndim != 2:
            raise ValueError(f"targets should have 2 dimensions instead of {targets.ndim}")
        part = {"test10k": slice(0, 10000), "test50k": slice(10000, None)}.get(self.what)
        return (data, targets) if part is None else (data[part].clone(), targets[part].clone())

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        target = self.targets[index]
        return self._transformed(self._image(index), int(target[0]) if self.compat else target)

    def extra_repr(self) -> str:
        return f"Split: {self.what}"
