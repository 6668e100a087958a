"""Photographs of faces: CelebA, Labeled Faces in the Wild and WIDER FACE.

Owns the reading of their tables, which are text in three formats.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import csv
import os
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor
from rushlight.vision.datasets._files import (
    DownloadableDataset,
    Source,
    on_drive,
    one_or_tuple,
    read_lines,
    told_with_path,
)
from rushlight.vision.datasets.folder import default_loader, read_image
from rushlight.vision.datasets.utils import verify_str_arg
from rushlight.vision.datasets.vision import AnyPath, Loader, Transform


class _Table(NamedTuple):
    header: list[str]
    names: list[str]
    data: Tensor


class CelebA(DownloadableDataset):
    """202,599 faces of 10,177 people, with 40 attributes: Liu et al. 2015.

    Args:
        root: folder of the data set's folder, celeba.
        split: "train", "valid", "test" or "all".
        target_type: "attr" ((40,), 0 or 1), "identity" (number of the person), "bbox" ((4,), x, y,
            width and height, in the uncropped image), "landmarks" ((10,), x and y of the eyes,
            the nose and the corners of the mouth), or a list of these; [] for None.
        transform: function of the PIL image.
        target_transform: function of the target.
        download: whether to download the files that are not there.

    Attributes:
        filename: names of the images.
        attr, identity, bbox, landmarks_align: all targets of each kind.
        attr_names: names of the attributes.

    Raises:
        ValueError: if there is no such split or target, or a table is damaged.
        RuntimeError: if the files are not there or damaged.
    """

    base_folder = "celeba"
    file_list = [
        # Google Drive's name, MD5, name
        (
            "0B7EVK8r0v71pZjFTYXZWM3FlRnM",
            "00d2c5bc6d35e252742224ab0c1e8fcb",
            "img_align_celeba.zip",
        ),
        (
            "0B7EVK8r0v71pblRyaVFSWGxPY0U",
            "75e246fa4810816ffd6ee81facbd244c",
            "list_attr_celeba.txt",
        ),
        (
            "1_ee_0u7vcNLOfNLegJRHmolfH5ICW-XS",
            "32bd1bd63d3c78cd57e08160ec5ed1e2",
            "identity_CelebA.txt",
        ),
        (
            "0B7EVK8r0v71pbThiMVRxWXZ4dU0",
            "00566efa6fedff7a56946cd1c10f1c16",
            "list_bbox_celeba.txt",
        ),
        (
            "0B7EVK8r0v71pd0FJY3Blby1HUTQ",
            "cc24ecafdb5b50baae59b03474781f8c",
            "list_landmarks_align_celeba.txt",
        ),
        (
            "0B7EVK8r0v71pY0NSMzRuSXJEVkk",
            "d32c9cbf5e040fd4025c592c306e6668",
            "list_eval_partition.txt",
        ),
    ]
    _SPLITS = {"train": 0, "valid": 1, "test": 2, "all": None}

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        target_type: list[str] | str = "attr",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = split
        self.target_type = target_type if isinstance(target_type, list) else [target_type]
        if not self.target_type and target_transform is not None:
            raise RuntimeError("target_transform is specified but target_type is empty")
        for kind in self.target_type:
            verify_str_arg(kind, "target_type", ("attr", "identity", "bbox", "landmarks"))
        split = verify_str_arg(
            split.lower() if isinstance(split, str) else split, "split", self._SPLITS
        )
        archive, *tables = self.file_list
        self._needs = (
            os.path.join(self.base_folder, "img_align_celeba"),
            *((os.path.join(self.base_folder, name), md5) for _, md5, name in tables),
        )
        self._sources = [
            Source(
                on_drive(file_id),
                md5,
                name,
                self.base_folder,
                into="" if name == archive[2] else None,
            )
            for file_id, md5, name in self.file_list
        ]
        self._prepare(download)
        parts = self._table("list_eval_partition.txt")
        wanted = self._SPLITS[split]
        rows = rl.arange(len(parts.names))
        if wanted is not None:
            rows = rows[parts.data[:, 0] == wanted]
        attr = self._table("list_attr_celeba.txt", header=1)
        self.filename = [parts.names[row] for row in rows.tolist()]
        self.attr = (attr.data[rows] + 1) // 2  # from -1 and 1 to 0 and 1
        self.attr_names = attr.header
        self.identity = self._table("identity_CelebA.txt").data[rows]
        self.bbox = self._table("list_bbox_celeba.txt", header=1).data[rows]
        self.landmarks_align = self._table("list_landmarks_align_celeba.txt", header=1).data[rows]

    def _table(self, name: str, header: int | None = None) -> _Table:
        """Reads lines of a name and numbers, after a line with the names of the columns."""
        path = os.path.join(self.root, self.base_folder, name)
        with open(path, newline="") as file:
            rows = list(csv.reader(file, delimiter=" ", skipinitialspace=True))
        head, rows = ([], rows) if header is None else (rows[header], rows[header + 1 :])
        numbers = told_with_path(path, lambda: [[int(value) for value in row[1:]] for row in rows])
        return _Table(head, [row[0] for row in rows], rl.tensor(numbers))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        name = os.path.join(self.root, self.base_folder, "img_align_celeba", self.filename[index])
        targets = {
            "attr": lambda: self.attr[index],
            "identity": lambda: self.identity[index, 0],
            "bbox": lambda: self.bbox[index],
            "landmarks": lambda: self.landmarks_align[index],
        }
        target = one_or_tuple([targets[kind]() for kind in self.target_type])
        return self._transformed(read_image(name), target)

    def __len__(self) -> int:
        return len(self.attr)

    def extra_repr(self) -> str:
        return f"Target type: {self.target_type}\nSplit: {self.split}"


class _LFW(DownloadableDataset):
    """What both views of Labeled Faces in the Wild have in common."""

    _repr_format = "Alignment: {image_set}\nSplit: {split}"
    base_folder = "lfw-py"
    download_url_prefix = "http://vis-www.cs.umass.edu/lfw/"
    file_dict = {
        "original": ("lfw", "lfw.tgz", "a17d05bd522c52d84eca14327a23d494"),
        "funneled": ("lfw_funneled", "lfw-funneled.tgz", "1b42dfed7d15c9b2dd63d5e5840c86ad"),
        "deepfunneled": (
            "lfw-deepfunneled",
            "lfw-deepfunneled.tgz",
            "68331da3eb755a505a502b5aacb3c201",
        ),
    }
    checksums = {
        "pairs.txt": "9f1ba174e4e1c508ff7cdf10ac338a7d",
        "pairsDevTest.txt": "5132f7440eb68cf58910c8a45a2ac10b",
        "pairsDevTrain.txt": "4f27cbf15b2da4a85c1907eb4181ad21",
        "people.txt": "450f0863dd89e85e73936a6d71a3474b",
        "peopleDevTest.txt": "e4bf5be0a43b5dcd9dc5ccfcb8fb19c5",
        "peopleDevTrain.txt": "54eaac34beb6d042ed3a7d883e247a21",
        "lfw-names.txt": "a6d0a479bd074669f656265a6e693f6d",
    }
    annot_file = {"10fold": "", "train": "DevTrain", "test": "DevTest"}
    names = "lfw-names.txt"

    def __init__(
        self,
        root: AnyPath,
        split: str,
        image_set: str,
        view: str,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(
            os.path.join(root, self.base_folder),
            transform=transform,
            target_transform=target_transform,
        )
        self.image_set = verify_str_arg(image_set.lower(), "image_set", self.file_dict)
        self.view = verify_str_arg(view.lower(), "view", ("people", "pairs"))
        self.split = verify_str_arg(split.lower(), "split", self.annot_file)
        if download:
            raise ValueError(
                "LFW dataset is no longer available for automatic download. Please download it, "
                "for example from https://www.kaggle.com/datasets/jessicali9530/lfw-dataset, and "
                f"put it in {self.root}."
            )
        folder, self.filename, self.md5 = self.file_dict[self.image_set]
        self.labels_file = f"{view}{self.annot_file[self.split]}.txt"
        tables = (self.labels_file, *((self.names,) if view == "people" else ()))
        self._needs = (
            (self.filename, self.md5),
            *((name, self.checksums[name]) for name in tables),
        )
        self._prepare(download=False)
        self.images_dir = os.path.join(self.root, folder)
        self.data: list[Any] = []
        self.targets: list[int] = []
        self._loader = loader
        path = os.path.join(self.root, self.labels_file)
        told_with_path(path, lambda: self._list([line.split("\t") for line in read_lines(path)]))

    def _list(self, rows: list[list[str]]) -> None:
        raise NotImplementedError

    def _get_path(self, identity: str, no: int | str) -> str:
        return os.path.join(self.images_dir, identity, f"{identity}_{int(no):04d}.jpg")

    def __len__(self) -> int:
        return len(self.data)


class LFWPeople(_LFW):
    """13,233 faces of 5,749 people: Huang et al. 2007. It is no longer online.

    Args:
        root: folder of the data set's folder, lfw-py.
        split: "train", "test" or "10fold" for all.
        image_set: how faces are aligned, "original", "funneled" or "deepfunneled".
        transform: function of the image.
        target_transform: function of the number of the person.
        download: must be False.
        loader: function of a path that returns the image.

    Raises:
        ValueError: if there is no such split or set, or it is to be downloaded.
        RuntimeError: if the files are not there or damaged.
    """

    def __init__(
        self,
        root: AnyPath,
        split: str = "10fold",
        image_set: str = "funneled",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(
            root, split, image_set, "people", transform, target_transform, download, loader
        )

    def _list(self, rows: list[list[str]]) -> None:
        people = read_lines(os.path.join(self.root, self.names))
        self.class_to_idx = {line.split()[0]: number for number, line in enumerate(people)}
        # The number of folds, then of each the number of its people, then those.
        start, folds = (1, int(rows[0][0])) if self.split == "10fold" else (0, 1)
        for _ in range(folds):
            end = start + 1 + int(rows[start][0])
            for name, count in rows[start + 1 : end]:
                self.data += [self._get_path(name, number + 1) for number in range(int(count))]
                self.targets += [self.class_to_idx[name]] * int(count)
            start = end

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(self._loader(self.data[index]), self.targets[index])

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}\nClasses (identities): {len(self.class_to_idx)}"


class LFWPairs(_LFW):
    """Pairs of faces of one person or of two: Huang et al. 2007. Arguments as for LFWPeople."""

    def __init__(
        self,
        root: AnyPath,
        split: str = "10fold",
        image_set: str = "funneled",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(
            root, split, image_set, "pairs", transform, target_transform, download, loader
        )

    def _list(self, rows: list[list[str]]) -> None:
        self.pair_names: list[tuple[str, str]] = []
        # The number of folds and of pairs; then of each fold so many of one person and of two.
        head, *rows = rows
        folds, count = (int(head[0]), int(head[1])) if self.split == "10fold" else (1, int(head[0]))
        for row in rows[: folds * 2 * count]:
            first, number, *other = row
            second, other_number = other if len(other) == 2 else (first, other[0])
            self.pair_names.append((first, second))
            self.data.append((self._get_path(first, number), self._get_path(second, other_number)))
            self.targets.append(int(len(other) == 1))

    def __getitem__(self, index: int) -> tuple[Any, Any, Any]:
        pair = [self._loader(path) for path in self.data[index]]
        if self.transform is not None:
            pair = [self.transform(image) for image in pair]
        target = self.targets[index]
        if self.target_transform is not None:
            target = self.target_transform(target)
        return pair[0], pair[1], target


class WIDERFace(DownloadableDataset):
    """393,703 faces in 32,203 photographs: Yang et al. 2016.

    Args:
        root: folder of the data set's folder, widerface.
        split: "train", "val" or "test", whose targets are None.
        transform: function of the PIL image.
        target_transform: function of the target: of all faces "bbox" (x, y, width, height),
            "blur", "expression", "illumination", "occlusion", "pose" and "invalid".
        download: whether to download the archives if the files are not there.

    Raises:
        ValueError: if there is no such split.
        RuntimeError: if the files are not there, or a list is damaged.
    """

    _repr_format = "Split: {split}"
    BASE_FOLDER = "widerface"
    FILE_LIST = [
        # Google Drive's name, MD5, name
        (
            "15hGDLhsx8bLgLcIRD5DhYt5iBxnjNF1M",
            "3fedf70df600953d25982bcd13d91ba2",
            "WIDER_train.zip",
        ),
        ("1GUCogbp16PMGa39thoMMeWxp7Rp5oM8Q", "dfa7d7e790efa35df3788964cf0bbaea", "WIDER_val.zip"),
        ("1HIfDbVEWKmsYKJZm4lchTBDLW5N7dY5T", "e5d8f4248ed24c334bbd12f49c29dd40", "WIDER_test.zip"),
    ]
    ANNOTATIONS_FILE = (
        "http://shuoyang1213.me/WIDERFACE/support/bbx_annotation/wider_face_split.zip",
        "0e3767bcf0e326556d407bf5bff5d27c",
        "wider_face_split.zip",
    )
    _COLUMNS = ("blur", "expression", "illumination", "occlusion", "pose", "invalid")

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(
            os.path.join(root, self.BASE_FOLDER),
            transform=transform,
            target_transform=target_transform,
        )
        self.split = verify_str_arg(split, "split", ("train", "val", "test"))
        archives = [(on_drive(file_id), md5, name) for file_id, md5, name in self.FILE_LIST]
        self._sources = [Source(*file) for file in (*archives, self.ANNOTATIONS_FILE)]
        self._needs = [source.name.removesuffix(".zip") for source in self._sources]
        self._prepare(download)
        self._images = os.path.join(os.path.abspath(self.root), f"WIDER_{split}", "images")
        name = "test_filelist" if split == "test" else f"{split}_bbx_gt"
        path = os.path.join(self.root, "wider_face_split", f"wider_face_{name}.txt")
        self.img_info = told_with_path(path, lambda: self._list(read_lines(path)))

    def _list(self, lines: list[str]) -> list[dict[str, Any]]:
        """Reads of each image its path, the number of faces, and a line of numbers for each."""
        if self.split == "test":
            return [{"img_path": os.path.join(self._images, line)} for line in lines]
        found = []
        rest = iter(lines)
        for line in rest:
            count = max(1, int(next(rest, "")))  # without faces there is a line of zeros
            faces = rl.tensor([[int(v) for v in next(rest, "").split()] for _ in range(count)])
            boxes = {"bbox": faces[:, 0:4].clone()}
            others = {name: faces[:, 4 + i].clone() for i, name in enumerate(self._COLUMNS)}
            found.append(
                {"img_path": os.path.join(self._images, line), "annotations": boxes | others}
            )
        return found

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        info = self.img_info[index]
        return self._transformed(read_image(info["img_path"]), info.get("annotations"))

    def __len__(self) -> int:
        return len(self.img_info)
