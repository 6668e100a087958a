"""CIFAR-10 and CIFAR-100: small color images in pickles of Python 2.

Owns how these are read without running code from them: the machine that reads checkpoints is given
stand-ins for the three names of NumPy that an array in a pickle uses.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import math
import os
from pickle import UnpicklingError
from typing import Any

import numpy as np
from PIL import Image

from rushlight._checkpoint.unpickling import read_pickle
from rushlight.vision.datasets._files import DownloadableDataset, Source
from rushlight.vision.datasets.vision import AnyPath, Transform

__all__ = ["CIFAR10", "CIFAR100"]


class _Type:
    """Stands in for numpy.dtype."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        pass  # the byte order and fields, of which a type of one byte has none


class _Array:
    """Stands in for numpy.ndarray."""

    def __init__(self, *_: Any) -> None:
        self.values = np.empty(0, np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, data = state
        if isinstance(data, str):
            data = data.encode("latin-1")
        if dtype.name != "u1" or is_fortran or len(data) != math.prod(shape):
            raise UnpicklingError("its array is not one of bytes, or not of the size it says")
        self.values = np.frombuffer(data, np.uint8).reshape(shape)


_NUMPY = {
    **{
        f"{module}.multiarray._reconstruct": _Array
        for module in ("numpy.core", "numpy._core")  # before and after NumPy 2
    },
    "numpy.ndarray": _Array,
    "numpy.dtype": _Type,
}


def _read_batch(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        batch = read_pickle(file.read(), path, _NUMPY)
    if not isinstance(batch, dict):
        raise UnpicklingError(f"load: cannot read {path}: it holds no batch of CIFAR.")
    return batch


class CIFAR10(DownloadableDataset):
    """Color images of 32 x 32 pixels, 50,000 and 10,000 in ten classes: Krizhevsky 2009.

    The files are in root/cifar-10-batches-py.

    Args:
        root: folder of the data set's folder.
        train: whether to take the training set, not the test set.
        transform: function of the PIL image.
        target_transform: function of the number of the class.
        download: whether to download the files that are not there.

    Attributes:
        data: (N, 32, 32, 3) uint8, an array of NumPy.
        targets: list of numbers of classes.
        classes: names of the classes.
        class_to_idx: number of each class.

    Raises:
        RuntimeError: if the files are not there or damaged, and are not to be downloaded.
        pickle.UnpicklingError: if a file holds anything else than numbers, texts and one array.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [
        ["data_batch_1", "c99cafc152244af753f735de768cd75f"],
        ["data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"],
        ["data_batch_3", "54ebc095f3ab1f0389bbae665268c751"],
        ["data_batch_4", "634d18415352ddfa80567beed471001a"],
        ["data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"],
    ]
    test_list = [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    meta = {
        "filename": "batches.meta",
        "key": "label_names",
        "md5": "5ff9c542aee3614f3951f8cda6e48888",
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
        self.train = train
        self._sources = (Source(self.url, self.tgz_md5, self.filename),)
        files = [*self.train_list, *self.test_list, (self.meta["filename"], self.meta["md5"])]
        self._needs = [(os.path.join(self.base_folder, name), md5) for name, md5 in files]
        self._prepare(download)
        self.data: Any = []
        self.targets: list[int] = []
        for name, _ in self.train_list if train else self.test_list:
            path = self._path(name)
            batch = _read_batch(path)
            pixels, labels = batch.get("data"), batch.get("labels", batch.get("fine_labels"))
            if (
                not isinstance(pixels, _Array)
                or not isinstance(labels, list)
                or pixels.values.shape != (len(labels), 3072)
            ):
                raise UnpicklingError(
                    f"load: cannot read {path}: its data are not (N, 3072) for its N labels."
                )
            self.data.append(pixels.values)
            self.targets += labels
        pixels = np.vstack(self.data).reshape(-1, 3, 32, 32)
        self.data = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))  # (N, 32, 32, 3)
        self._set_classes(_read_batch(self._path(self.meta["filename"]))[self.meta["key"]])

    def _path(self, name: str) -> str:
        return os.path.join(self.root, self.base_folder, name)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        pixels = self.data[index]
        height, width, _ = pixels.shape
        image = Image.frombytes("RGB", (width, height), pixels.tobytes())
        return self._transformed(image, self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


class CIFAR100(CIFAR10):
    """CIFAR-10's relative with a hundred classes; arguments as there."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {
        "filename": "meta",
        "key": "fine_label_names",
        "md5": "7973b15100ade9c7d40fb424638fde48",
    }
