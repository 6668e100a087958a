"""iNaturalist: photographs of animals and plants, with all ranks of their names.

Owns how the names of the folders are taken apart: "00012_Animalia_..._genus_species" since 2021,
"Birds/123" (in 2017 "Birds/Corvus corax") before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from rushlight.vision.datasets._files import DownloadableDataset, Source, one_or_tuple
from rushlight.vision.datasets.folder import read_image
from rushlight.vision.datasets.utils import list_dir, verify_str_arg
from rushlight.vision.datasets.vision import AnyPath, Transform

__all__ = ["INaturalist"]

CATEGORIES_2021 = ["kingdom", "phylum", "class", "order", "family", "genus"]
_URL = "https://ml-inat-competition-datasets.s3.amazonaws.com/"
DATASET_URLS = {
    "2017": f"{_URL}2017/train_val_images.tar.gz",
    "2018": f"{_URL}2018/train_val2018.tar.gz",
    "2019": f"{_URL}2019/train_val2019.tar.gz",
    "2021_train": f"{_URL}2021/train.tar.gz",
    "2021_train_mini": f"{_URL}2021/train_mini.tar.gz",
    "2021_valid": f"{_URL}2021/val.tar.gz",
}
DATASET_MD5 = {
    "2017": "7c784ea5e424efaec655bd392f87301f",
    "2018": "b1c6952ce38f31868cc50ea72d066cc3",
    "2019": "c60a6e2962c9b8ccbd458d12c8582644",
    "2021_train": "e0526d53c7f7b2e3167b2b43bb2690ed",
    "2021_train_mini": "db6ed8330e634445efc8fec83ae81442",
    "2021_valid": "f6f6e0e242e3d4c9569ba56400938afc",
}


class INaturalist(DownloadableDataset):
    """Photographs of up to ten thousand species: Van Horn et al. 2018, 2021.

    Args:
        root: folder of the version's folder.
        version: "2017", "2018", "2019", "2021_train", "2021_train_mini" or "2021_valid".
        target_type: "full" for the species, or its "kingdom", "phylum", "class", "order",
            "family" or "genus"; before 2021 only "super", such as birds; or a list of these.
        transform: function of the image.
        target_transform: function of the target.
        download: whether to download the archive if the images are not there.
        loader: function of a path that returns the image, by default Pillow's.

    Attributes:
        all_categories: folders of the species.
        categories_index: number of each name of each rank.
        categories_map: the numbers of the ranks of each species.
        index: pairs of the number of the species and the name of the file.

    Raises:
        ValueError: if there is no such version or rank.
        RuntimeError: if the files are not there, or a folder has an unexpected name.
    """

    def __init__(
        self,
        root: AnyPath,
        version: str = "2021_train",
        target_type: list[str] | str = "full",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Callable[..., Any] | None = None,
    ) -> None:
        self.version = verify_str_arg(version, "version", DATASET_URLS)
        super().__init__(
            os.path.join(root, version), transform=transform, target_transform=target_transform
        )
        self._prepare(download)
        self.loader = loader
        is_recent = version.startswith("2021")
        known = ("full", *(CATEGORIES_2021 if is_recent else ("super",)))
        kinds = [target_type] if isinstance(target_type, str) else target_type
        self.target_type = [verify_str_arg(kind, "target_type", known) for kind in kinds]
        self.all_categories: list[str] = []
        self.categories_index: dict[str, dict[str, int]] = {kind: {} for kind in known[1:]}
        self.categories_map: list[dict[str, int]] = []
        (self._list_recent if is_recent else self._list_older)()
        self.index = [
            (number, name)
            for number, folder in enumerate(self.all_categories)
            for name in sorted(os.listdir(os.path.join(self.root, folder)))
        ]

    def _missing(self) -> str | None:
        if os.path.isdir(self.root) and os.listdir(self.root):
            return None
        return f"there is nothing in {self.root}"

    def _advice(self) -> str:
        return "You can use download=True to download it"

    def download(self) -> None:
        if self._missing() is not None:
            url = DATASET_URLS[self.version]
            parent = os.path.dirname(self.root)
            Source(url, DATASET_MD5[self.version], f"{self.version}.tgz").fetch(parent)
            unpacked = os.path.basename(url).removesuffix(".tar.gz")
            os.rename(os.path.join(parent, unpacked), self.root)

    def _list_recent(self) -> None:
        self.all_categories = list_dir(self.root)
        for number, folder in enumerate(self.all_categories):
            found, *names = folder.split("_")
            if len(names) != 7 or found != f"{number:05d}":
                raise RuntimeError(
                    f"INaturalist: unexpected folder {folder}. It must be {number:05d}, six ranks "
                    "and the species, with underscores between them."
                )
            ranks = {}
            for kind, name in zip(CATEGORIES_2021, names[:6], strict=True):
                known = self.categories_index[kind]
                ranks[kind] = known.setdefault(name, len(known))
            self.categories_map.append(ranks)

    def _list_older(self) -> None:
        species: dict[int, tuple[str, int]] = {}
        for number, group in enumerate(list_dir(self.root)):
            self.categories_index["super"][group] = number
            for name in list_dir(os.path.join(self.root, group)):
                if self.version != "2017" and not name.isdecimal():
                    raise RuntimeError(f"INaturalist: unexpected folder {name}, not a number.")
                key = len(species) if self.version == "2017" else int(name)
                if key in species:
                    raise RuntimeError(f"INaturalist: duplicate category {name}.")
                species[key] = os.path.join(group, name), number
        missing = set(range(len(species))) - set(species)
        if missing:
            raise RuntimeError(f"INaturalist: missing category {min(missing)}.")
        for key in sorted(species):
            folder, number = species[key]
            self.all_categories.append(folder)
            self.categories_map.append({"super": number})

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        number, name = self.index[index]
        path = os.path.join(self.root, self.all_categories[number], name)
        image = read_image(path) if self.loader is None else self.loader(path)
        ranks = {"full": number, **self.categories_map[number]}
        return self._transformed(image, one_or_tuple([ranks[kind] for kind in self.target_type]))

    def __len__(self) -> int:
        return len(self.index)

    def category_name(self, category_type: str, category_id: int) -> str:
        """Returns the name that a number stands for.

        Args:
            category_type: "full" or a rank.
            category_id: the number.

        Raises:
            ValueError: if there is no such rank or number.
        """
        if category_type == "full":
            return self.all_categories[category_id]
        if category_type not in self.categories_index:
            raise ValueError(f"Invalid category type '{category_type}'")
        for name, number in self.categories_index[category_type].items():
            if number == category_id:
                return name
        raise ValueError(f"Invalid category id {category_id} for {category_type}")
