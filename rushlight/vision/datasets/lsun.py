"""LSUN: photographs of scenes and objects in databases of LMDB.

Owns the list of keys, which is read from the database each time: a cache in a pickle, as elsewhere,
would be code that whoever can write to the folder could have run.
"""

from __future__ import annotations

import bisect
import io
import itertools
import os
from collections.abc import Iterable
from typing import Any

from PIL import Image

from rushlight.vision.datasets.utils import iterable_to_str, verify_str_arg
from rushlight.vision.datasets.vision import AnyPath, Transform, VisionDataset

__all__ = ["LSUN", "LSUNClass"]

_CATEGORIES = (
    "bedroom",
    "bridge",
    "church_outdoor",
    "classroom",
    "conference_room",
    "dining_room",
    "kitchen",
    "living_room",
    "restaurant",
    "tower",
)
_SPLITS = ("train", "val", "test")


class LSUNClass(VisionDataset):
    """One database of LSUN; the targets are None.

    Args:
        root: folder of the database.
        transform: function of the PIL image.
        target_transform: function of the target.

    Raises:
        RuntimeError: if lmdb is not installed.
    """

    def __init__(
        self,
        root: AnyPath,
        transform: Transform = None,
        target_transform: Transform = None,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._open()
        with self.env.begin(write=False) as transaction:
            self.keys = list(transaction.cursor().iternext(keys=True, values=False))
        self.length = len(self.keys)

    def _open(self) -> None:
        try:
            import lmdb  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise RuntimeError("LSUN needs lmdb. Install it: pip install lmdb") from error
        self.env = lmdb.open(
            os.fspath(self.root),
            max_readers=1,
            readonly=True,
            lock=False,
            readahead=False,
            meminit=False,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "env"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()  # an open database cannot go to another process

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        with self.env.begin(write=False) as transaction:
            data = transaction.get(self.keys[index])
        with Image.open(io.BytesIO(data)) as image:
            return self._transformed(image.convert("RGB"), None)

    def __len__(self) -> int:
        return self.length


class LSUN(VisionDataset):
    """Photographs of ten kinds of scenes: Yu et al. 2015.

    Args:
        root: folder of the databases, such as bedroom_train_lmdb.
        classes: "train", "val" or "test", or a list such as ["bedroom_train", "tower_train"].
        transform: function of the PIL image.
        target_transform: function of the number of the class.

    Raises:
        ValueError: if there is no such class.
        RuntimeError: if lmdb is not installed.
    """

    _repr_format = "Classes: {classes}"

    def __init__(
        self,
        root: AnyPath,
        classes: str | list[str] = "train",
        transform: Transform = None,
        target_transform: Transform = None,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes = self._verify_classes(classes)
        self.dbs = [
            LSUNClass(os.path.join(self.root, f"{name}_lmdb"), transform) for name in self.classes
        ]
        self.indices = list(itertools.accumulate(len(db) for db in self.dbs))
        self.length = self.indices[-1]

    @staticmethod
    def _verify_classes(classes: str | Iterable[str]) -> list[str]:
        if classes == "test":
            return ["test"]
        if isinstance(classes, str):
            verify_str_arg(classes, "classes", _SPLITS)
            return [f"{category}_{classes}" for category in _CATEGORIES]
        names = list(classes)
        for name in names:
            category, _, split = verify_str_arg(name, "classes").rpartition("_")
            for value, what, known in (
                (category, "LSUN class", _CATEGORIES),
                (split, "postfix", _SPLITS),
            ):
                message = f"Unknown value '{value}' for {what}. Valid values are "
                verify_str_arg(value, what, known, f"{message}{{{iterable_to_str(known)}}}.")
        return names

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        number = bisect.bisect_right(self.indices, index)
        image, _ = self.dbs[number][index - (self.indices[number - 1] if number else 0)]
        if self.target_transform is not None:
            return image, self.target_transform(number)
        return image, number

    def __len__(self) -> int:
        return self.length
