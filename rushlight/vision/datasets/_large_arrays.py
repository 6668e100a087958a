"""Data sets in large arrays: films of digits, tissue, and patches of photographs.

Owns their files, .npy, .h5 and a cache of tensors; what is smaller is in _arrays.py.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.datasets._files import (
    DownloadableDataset,
    Source,
    on_drive,
    told_with_path,
)
from rushlight.vision.datasets.folder import read_image
from rushlight.vision.datasets.utils import verify_str_arg
from rushlight.vision.datasets.vision import AnyPath, Transform


class MovingMNIST(DownloadableDataset):
    """Films of two digits that move, 20 frames of 64 x 64 pixels: Srivastava et al. 2015.

    Args:
        root: folder of the data set's folder, MovingMNIST.
        split: "train" for the first frames of each film, "test" for the others, None for all.
        split_ratio: how many frames are the first, 1 to 19.
        download: whether to download the file if it is not there.
        transform: function of the film, (frames, 1, 64, 64) uint8.

    Raises:
        RuntimeError: if the file is not there.
        ValueError: if there is no such split, or the file is damaged.
    """

    _URL = "http://www.cs.toronto.edu/~nitish/unsupervised_video/mnist_test_seq.npy"

    def __init__(
        self,
        root: AnyPath,
        split: str | None = None,
        split_ratio: int = 10,
        download: bool = False,
        transform: Transform = None,
    ) -> None:
        super().__init__(root, transform=transform)
        if split is not None:
            verify_str_arg(split, "split", ("train", "test"))
        if not isinstance(split_ratio, int):
            raise TypeError(f"`split_ratio` should be an integer, but got {type(split_ratio)}")
        if not 1 <= split_ratio <= 19:
            raise ValueError(f"`split_ratio` should be from 1 to 19, but got {split_ratio}.")
        self.split = split
        self.split_ratio = split_ratio
        name = os.path.join("MovingMNIST", os.path.basename(self._URL))
        md5 = "be083ec986bfe91a449d63653c411eb2"
        self._sources = (Source(self._URL, md5, folder="MovingMNIST", into=None),)
        self._needs = (name,)
        self._prepare(download)
        path = os.path.join(self.root, name)
        films = told_with_path(path, lambda: np.load(path, allow_pickle=False))
        parts = {"train": slice(split_ratio), "test": slice(split_ratio, None)}
        films = rl.from_numpy(films[parts.get(split or "", slice(None))])
        self.data = films.transpose(0, 1).unsqueeze(2).contiguous()  # (N, frames, 1, 64, 64)

    def __getitem__(self, idx: int) -> Any:
        film = self.data[idx]
        return film if self.transform is None else self.transform(film)

    def __len__(self) -> int:
        return len(self.data)


def _h5py() -> Any:
    try:
        import h5py  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise RuntimeError(
            "h5py is not found. This dataset needs to have h5py installed: please run pip install "
            "h5py"
        ) from error
    return h5py


class PCAM(DownloadableDataset):
    """Tissue of lymph nodes with or without cancer, 96 x 96 color images: Veeling et al. 2018.

    Args:
        root: folder of the data set's folder, pcam.
        split: "train", "test" or "val".
        transform: function of the PIL image.
        target_transform: function of the label, 0 or 1.
        download: whether to download the files that are not there.

    Raises:
        RuntimeError: if the files are not there, or h5py is not installed.
    """

    _FILES = {
        "train": (
            ("1Ka0XfEMiwgCYPdTI-vv6eUElOBnKFKQ2", "1571f514728f59376b705fc836ff4b63"),
            ("1269yhu3pZDP8UYFQs-NYs3FPwuK-nGSG", "35c2d7259d906cfc8143347bb8e05be7"),
        ),
        "test": (
            ("1qV65ZqZvWzuIVthK8eVDhIwrbnsJdbg_", "d8c2d60d490dbd479f8199bdfa0cf6ec"),
            ("17BHrSrwWKjYsOgTMmoqrIjDy6Fa2o_gP", "60a7035772fbdb7f34eb86d4420cf66a"),
        ),
        "val": (
            ("1hgshYGWK8V-eGRy8LToWJJgDU_rXWVJ3", "d5b63470df7cfa627aeec8b9dc0c066e"),
            ("1bH8ZRbhSVAhScTS0p9-ZzGnX91cHT3uO", "2b85f58b927af9964a4c15b8f7e8f179"),
        ),
    }

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        _h5py()
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", self._FILES)
        part = "valid" if split == "val" else split
        names = [f"camelyonpatch_level_2_split_{part}_{kind}.h5" for kind in "xy"]
        self._sources = [
            Source(on_drive(file_id), md5, f"{name}.gz", "pcam")
            for name, (file_id, md5) in zip(names, self._FILES[split], strict=True)
        ]
        self._needs = [os.path.join("pcam", name) for name in names]
        self._prepare(download)
        self._images_path, self._targets_path = (os.path.join(self.root, n) for n in self._needs)

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        with _h5py().File(self._images_path) as images:
            image = Image.fromarray(images["x"][idx]).convert("RGB")
        with _h5py().File(self._targets_path) as targets:
            target = int(targets["y"][idx, 0, 0, 0])  # (N, 1, 1, 1)
        return self._transformed(image, target)

    def __len__(self) -> int:
        with _h5py().File(self._images_path) as images:
            return images["x"].shape[0]


_BROWN = "http://matthewalunbrown.com/patchdata"
_BALNTAS = "http://icvl.ee.ic.ac.uk/vbalnt"
_SCENES = {  # site, MD5 and number of patches of each scene
    "notredame_harris": (_BROWN, "69f8c90f78e171349abdf0307afefe4d", 325295),
    "yosemite_harris": (_BROWN, "a73253d1c6fbd3ba2613c45065c00d46", 450912),
    "liberty_harris": (_BROWN, "c731fcfb3abb4091110d0ae8c7ba182c", 379587),
    "notredame": (_BALNTAS, "509eda8535847b8c0a90bbb210c83484", 468159),
    "yosemite": (_BALNTAS, "533b2e8eb7ede31be40abc317b2fd4f0", 633587),
    "liberty": (_BALNTAS, "fdd9152f138ea5ef2091746689176414", 450092),
}
_MOMENTS = {
    "notredame": (0.4854, 0.1864),
    "yosemite": (0.4844, 0.1818),
    "liberty": (0.4437, 0.2019),
}


class PhotoTour(DownloadableDataset):
    """64 x 64 gray patches of photographs that show the same place or not: Brown et al. 2011.

    Args:
        root: folder of the data set's folders.
        name: which scene: "notredame", "yosemite" or "liberty", or with "_harris" at the end.
        train: whether a sample is one patch, not two and whether they match.
        transform: function of a patch, a tensor.
        download: whether to download the files that are not there.

    Attributes:
        data: (N, 64, 64) uint8.
        labels: (N,), number of the place that a patch shows.
        matches: (M, 3), numbers of two patches and whether they match.

    Raises:
        ValueError: if there is no such scene, or a file is damaged.
        RuntimeError: if the files are not there, and are not to be downloaded.
    """

    urls = {
        name: [f"{site}/{name}.zip", f"{name}.zip", md5] for name, (site, md5, _) in _SCENES.items()
    }
    lens = {name: count for name, (_, _, count) in _SCENES.items()}
    means = {name: _MOMENTS[name.partition("_")[0]][0] for name in _SCENES}
    stds = {name: _MOMENTS[name.partition("_")[0]][1] for name in _SCENES}
    image_ext = "bmp"
    info_file = "info.txt"
    matches_files = "m50_100000_100000_0.txt"

    def __init__(
        self,
        root: AnyPath,
        name: str,
        train: bool = True,
        transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform)
        self.name = verify_str_arg(name, "name", self.urls)
        self.train = train
        self.mean = self.means[name]
        self.std = self.stds[name]
        self.data_dir = os.path.join(self.root, name)
        self.data_down = os.path.join(self.root, f"{name}.zip")
        self.data_file = os.path.join(self.root, f"{name}.pt")
        if not os.path.exists(self.data_file):
            url, archive, md5 = self.urls[name]
            self._sources = (Source(url, md5, archive, into=name, keep=False),)
            self._needs = (name,)
            self._prepare(download)
            self.cache()
        self.data, self.labels, self.matches = rl.load(self.data_file, weights_only=True)

    def cache(self) -> None:
        """Reads the images and tables, and keeps them as tensors in one file."""
        info = os.path.join(self.data_dir, self.info_file)
        matches = os.path.join(self.data_dir, self.matches_files)
        labels = told_with_path(info, lambda: [int(row[0]) for row in self._rows(info)])
        pairs = told_with_path(
            matches,
            lambda: [[int(r[0]), int(r[3]), int(r[1] == r[4])] for r in self._rows(matches)],
        )
        rl.save((self._patches(), rl.tensor(labels), rl.tensor(pairs)), self.data_file)

    @staticmethod
    def _rows(path: str) -> list[list[str]]:
        return [line.split() for line in Path(path).read_text().splitlines()]

    def _patches(self) -> Tensor:
        """The patches of all images, which are grids of them, row by row."""
        patches = []
        for path in sorted(Path(self.data_dir).glob(f"*{self.image_ext}")):
            grid = np.asarray(read_image(path))
            rows, columns = grid.shape[0] // 64, grid.shape[1] // 64
            cut = grid[: rows * 64, : columns * 64].reshape(rows, 64, columns, 64)
            patches.append(cut.swapaxes(1, 2).reshape(-1, 64, 64))
        if not patches:
            raise ValueError(f"{self.data_dir} has no images in .{self.image_ext}.")
        return rl.from_numpy(np.concatenate(patches)[: self.lens[self.name]])

    def __getitem__(self, index: int) -> Any:
        def patch(number: Any) -> Any:
            data = self.data[number]
            return data if self.transform is None else self.transform(data)

        if self.train:
            return patch(index)
        first, second, is_match = self.matches[index]
        return patch(first), patch(second), is_match

    def __len__(self) -> int:
        return len(self.data if self.train else self.matches)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"
