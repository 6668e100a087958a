"""Images with what is where in them: Pascal VOC, SBD, Cityscapes and KITTI's objects.

Owns the reading of boxes, outlines and classes of pixels from XML, .mat, JSON and text.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import json
import os
from collections import defaultdict
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from rushlight.vision.datasets._files import (
    DownloadableDataset,
    Source,
    one_or_tuple,
    read_lines,
    read_mat,
    told_with_path,
)
from rushlight.vision.datasets.folder import read_image
from rushlight.vision.datasets.utils import (
    extract_archive,
    iterable_to_str,
    list_dir,
    list_files,
    verify_str_arg,
)
from rushlight.vision.datasets.vision import AnyPath, Transform

_YEARS = (  # year, part of the name of the archive, its MD5
    ("2012", "trainval_11-May-2012", "6cd6e144f989b92b3379bac3b3de84fd"),
    ("2011", "trainval_25-May-2011", "6c3384ef61512963050cb5d687e5bf1e"),
    ("2010", "trainval_03-May-2010", "da459979d0c395079b5c75ee67908abb"),
    ("2009", "trainval_11-May-2009", "a3e00b113cfcfebf17e343f59da3caa1"),
    ("2008", "trainval_14-Jul-2008", "2629fa636546599198acfcfbfcf1904a"),
    ("2007", "trainval_06-Nov-2007", "c52e279531787c972589f7e41ab4ae64"),
    ("2007-test", "test_06-Nov-2007", "b6e924de25625d8de591ea690078ad9f"),
)
DATASET_YEAR_DICT = {
    year: {
        "url": f"https://thor.robots.ox.ac.uk/pascal/VOC/voc{year[:4]}/VOC{name}.tar",
        "filename": f"VOC{name}.tar",
        "md5": md5,
        "base_dir": os.path.join(
            "TrainVal" if year == "2011" else "", "VOCdevkit", f"VOC{year[:4]}"
        ),
    }
    for year, name, md5 in _YEARS
}


class _VOC(DownloadableDataset):
    """What the two tasks of Pascal VOC have in common: lists of names, a folder of targets."""

    _SPLITS_DIR: str
    _TARGET_DIR: str
    _TARGET_FILE_EXT: str

    def __init__(
        self,
        root: AnyPath,
        year: str = "2012",
        image_set: str = "train",
        download: bool = False,
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Transform = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.year = verify_str_arg(year, "year", [str(year) for year in range(2007, 2013)])
        sets = ("train", "trainval", "val", *(("test",) if year == "2007" else ()))
        self.image_set = verify_str_arg(image_set, "image_set", sets)
        facts = DATASET_YEAR_DICT["2007-test" if image_set == "test" else year]
        self.url, self.filename, self.md5 = facts["url"], facts["filename"], facts["md5"]
        # The test set of 2007 goes into the folders of its training set: the list tells them apart.
        listed = os.path.join(facts["base_dir"], "ImageSets", self._SPLITS_DIR, f"{image_set}.txt")
        self._sources = (Source(self.url, self.md5, self.filename),)
        self._needs = (listed,)
        self._prepare(download)
        names = read_lines(os.path.join(self.root, listed))
        folder = os.path.join(self.root, facts["base_dir"])
        self.images = [os.path.join(folder, "JPEGImages", f"{name}.jpg") for name in names]
        self.targets = [
            os.path.join(folder, self._TARGET_DIR, name + self._TARGET_FILE_EXT) for name in names
        ]

    def __len__(self) -> int:
        return len(self.images)


class VOCSegmentation(_VOC):
    """Pascal VOC's photographs with the class of each pixel: Everingham et al. 2010.

    Args as for VisionDataset, and:
        year: "2007" to "2012".
        image_set: "train", "val" or "trainval"; in 2007 also "test".
        download: whether to download the archive if the files are not there.

    Attributes:
        images, masks: paths of the images and of the targets, which are images too.

    Raises:
        ValueError: if there is no such year or set.
        RuntimeError: if the files are not there.
    """

    _SPLITS_DIR = "Segmentation"
    _TARGET_DIR = "SegmentationClass"
    _TARGET_FILE_EXT = ".png"

    @property
    def masks(self) -> list[str]:
        return self.targets

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed_together(
            read_image(self.images[index], "RGB"), read_image(self.masks[index])
        )


class VOCDetection(_VOC):
    """Pascal VOC's photographs with the boxes of their objects; arguments as for VOCSegmentation.

    A target is a dict of what the XML file says, as text.

    Attributes:
        images, annotations: paths of the images and of the XML files.
    """

    _SPLITS_DIR = "Main"
    _TARGET_DIR = "Annotations"
    _TARGET_FILE_EXT = ".xml"

    @property
    def annotations(self) -> list[str]:
        return self.targets

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path = self.annotations[index]
        try:
            root = ElementTree.parse(path).getroot()
        except ElementTree.ParseError as error:
            raise ValueError(f"{path} is damaged: {error}.") from error
        return self._transformed_together(
            read_image(self.images[index], "RGB"), self.parse_voc_xml(root)
        )

    @staticmethod
    def parse_voc_xml(node: ElementTree.Element) -> dict[str, Any]:
        """Returns a node as a dict from its tag to its text, or to a dict of its children.

        Children of one tag are a list; those called "object" also if there is only one.
        """
        if not len(node):
            return {node.tag: (node.text or "").strip()} if node.text else {}
        children = defaultdict(list)
        for child in node:
            for tag, value in VOCDetection.parse_voc_xml(child).items():
                children[tag].append(value)
        if node.tag == "annotation":
            children["object"] = [children["object"]]
        return {node.tag: {tag: v[0] if len(v) == 1 else v for tag, v in children.items()}}


class SBDataset(DownloadableDataset):
    """11,355 photographs of Pascal VOC with the borders of objects: Hariharan et al. 2011.

    Args:
        root: folder of the files.
        image_set: "train", "val" or "train_noval", which leaves out what VOC 2012 evaluates on.
        mode: "boundaries" for (20, height, width), the border of each class, or "segmentation"
            for an image of the classes of the pixels.
        download: whether to download the archive if the files are not there.
        transforms: function of the image and its target.

    Attributes:
        images, masks: paths of the images and of the .mat files.

    Raises:
        ValueError: if there is no such set or mode.
        RuntimeError: if the files are not there, a file is damaged or SciPy is not installed.
    """

    _repr_format = "Image set: {image_set}\nMode: {mode}"
    url = "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/semantic_contours/benchmark.tgz"
    md5 = "82b4d87ceb2ed10f6038a1cba92111cb"
    filename = "benchmark.tgz"
    voc_train_url = "https://www.cs.cornell.edu/~bharathh/train_noval.txt"
    voc_split_filename = "train_noval.txt"
    voc_split_md5 = "79bff800c5f0b1ec6b21080a3c066722"

    def __init__(
        self,
        root: AnyPath,
        image_set: str = "train",
        mode: str = "boundaries",
        download: bool = False,
        transforms: Transform = None,
    ) -> None:
        super().__init__(root, transforms)
        self.image_set = verify_str_arg(image_set, "image_set", ("train", "val", "train_noval"))
        self.mode = verify_str_arg(mode, "mode", ("segmentation", "boundaries"))
        self.num_classes = 20
        self._needs = ("img", "cls", f"{image_set}.txt")
        self._prepare(download)
        names = read_lines(os.path.join(self.root, f"{image_set}.txt"))
        self.images = [os.path.join(self.root, "img", f"{name}.jpg") for name in names]
        self.masks = [os.path.join(self.root, "cls", f"{name}.mat") for name in names]

    def _advice(self) -> str:
        return "You can use download=True to download it"

    def download(self) -> None:
        if not os.path.isdir(os.path.join(self.root, "cls")):
            Source(self.url, self.md5, self.filename).fetch(self.root)
            unpacked = os.path.join(self.root, "benchmark_RELEASE", "dataset")
            for name in ("img", "inst", "train.txt", "val.txt", "cls"):
                os.rename(os.path.join(unpacked, name), os.path.join(self.root, name))
        if self.image_set == "train_noval":
            Source(
                self.voc_train_url, self.voc_split_md5, self.voc_split_filename, into=None
            ).fetch(self.root)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path = self.masks[index]
        (target,) = read_mat(path, "GTcls")
        target = target[0][self.mode.capitalize()][0]
        if self.mode == "segmentation":
            target = Image.fromarray(target)
        else:
            target = np.stack([target[i][0].toarray() for i in range(self.num_classes)])
        return self._transformed_together(read_image(self.images[index], "RGB"), target)

    def __len__(self) -> int:
        return len(self.images)


class CityscapesClass(NamedTuple):
    """A class of Cityscapes: https://github.com/mcordts/cityscapesScripts."""

    name: str
    id: int
    train_id: int
    category: str
    category_id: int
    has_instances: bool
    ignore_in_eval: bool
    color: tuple[int, int, int]


class Cityscapes(DownloadableDataset):
    """Streets of fifty cities with the class and object of each pixel: Cordts et al. 2016.

    It cannot be downloaded without an account: unpack leftImg8bit_trainvaltest.zip and
    gtFine_trainvaltest.zip (or gtCoarse.zip) into the root, or put them there.

    Args as for VisionDataset, and:
        split: "train", "val" or "test"; with coarse outlines "train", "train_extra" or "val".
        mode: "fine" or "coarse" outlines.
        target_type: "instance", "semantic", "color" (all images), "polygon" (a dict), or a list.

    Attributes:
        images: paths of the images.
        targets: paths of the targets of each.
        classes: list of CityscapesClass.

    Raises:
        ValueError: if there is no such split, mode or target.
        RuntimeError: if the files are not there.
    """

    _repr_format = "Split: {split}\nMode: {mode}\nType: {target_type}"
    CityscapesClass = CityscapesClass
    _SUFFIXES = {
        "instance": "instanceIds.png",
        "semantic": "labelIds.png",
        "color": "color.png",
        "polygon": "polygons.json",
    }
    classes = [
        CityscapesClass(*row)
        for row in (
            ("unlabeled", 0, 255, "void", 0, False, True, (0, 0, 0)),
            ("ego vehicle", 1, 255, "void", 0, False, True, (0, 0, 0)),
            ("rectification border", 2, 255, "void", 0, False, True, (0, 0, 0)),
            ("out of roi", 3, 255, "void", 0, False, True, (0, 0, 0)),
            ("static", 4, 255, "void", 0, False, True, (0, 0, 0)),
            ("dynamic", 5, 255, "void", 0, False, True, (111, 74, 0)),
            ("ground", 6, 255, "void", 0, False, True, (81, 0, 81)),
            ("road", 7, 0, "flat", 1, False, False, (128, 64, 128)),
            ("sidewalk", 8, 1, "flat", 1, False, False, (244, 35, 232)),
            ("parking", 9, 255, "flat", 1, False, True, (250, 170, 160)),
            ("rail track", 10, 255, "flat", 1, False, True, (230, 150, 140)),
            ("building", 11, 2, "construction", 2, False, False, (70, 70, 70)),
            ("wall", 12, 3, "construction", 2, False, False, (102, 102, 156)),
            ("fence", 13, 4, "construction", 2, False, False, (190, 153, 153)),
            ("guard rail", 14, 255, "construction", 2, False, True, (180, 165, 180)),
            ("bridge", 15, 255, "construction", 2, False, True, (150, 100, 100)),
            ("tunnel", 16, 255, "construction", 2, False, True, (150, 120, 90)),
            ("pole", 17, 5, "object", 3, False, False, (153, 153, 153)),
            ("polegroup", 18, 255, "object", 3, False, True, (153, 153, 153)),
            ("traffic light", 19, 6, "object", 3, False, False, (250, 170, 30)),
            ("traffic sign", 20, 7, "object", 3, False, False, (220, 220, 0)),
            ("vegetation", 21, 8, "nature", 4, False, False, (107, 142, 35)),
            ("terrain", 22, 9, "nature", 4, False, False, (152, 251, 152)),
            ("sky", 23, 10, "sky", 5, False, False, (70, 130, 180)),
            ("person", 24, 11, "human", 6, True, False, (220, 20, 60)),
            ("rider", 25, 12, "human", 6, True, False, (255, 0, 0)),
            ("car", 26, 13, "vehicle", 7, True, False, (0, 0, 142)),
            ("truck", 27, 14, "vehicle", 7, True, False, (0, 0, 70)),
            ("bus", 28, 15, "vehicle", 7, True, False, (0, 60, 100)),
            ("caravan", 29, 255, "vehicle", 7, True, True, (0, 0, 90)),
            ("trailer", 30, 255, "vehicle", 7, True, True, (0, 0, 110)),
            ("train", 31, 16, "vehicle", 7, True, False, (0, 80, 100)),
            ("motorcycle", 32, 17, "vehicle", 7, True, False, (0, 0, 230)),
            ("bicycle", 33, 18, "vehicle", 7, True, False, (119, 11, 32)),
            ("license plate", -1, -1, "vehicle", 7, False, True, (0, 0, 142)),
        )
    ]

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        mode: str = "fine",
        target_type: list[str] | str = "instance",
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Transform = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        verify_str_arg(mode, "mode", ("fine", "coarse"))
        self.mode = "gtFine" if mode == "fine" else "gtCoarse"
        splits = ("train", "test", "val") if mode == "fine" else ("train", "train_extra", "val")
        self.split = verify_str_arg(
            split,
            "split",
            splits,
            f"Unknown value '{split}' for argument split if mode is '{mode}'. Valid values are "
            f"{{{iterable_to_str(splits)}}}.",
        )
        kinds = target_type if isinstance(target_type, list) else [target_type]
        self.target_type = [verify_str_arg(k, "target_type", self._SUFFIXES) for k in kinds]
        self.images_dir = os.path.join(self.root, "leftImg8bit", split)
        self.targets_dir = os.path.join(self.root, self.mode, split)
        if not (os.path.isdir(self.images_dir) and os.path.isdir(self.targets_dir)):
            self._unpack()
        self.images: list[str] = []
        self.targets: list[list[str]] = []
        for city in list_dir(self.images_dir):
            for name in list_files(os.path.join(self.images_dir, city), ""):
                stem = os.path.join(self.targets_dir, city, name.split("_leftImg8bit")[0])
                self.images.append(os.path.join(self.images_dir, city, name))
                self.targets.append(
                    [f"{stem}_{self.mode}_{self._SUFFIXES[kind]}" for kind in self.target_type]
                )

    def _unpack(self) -> None:
        part = "trainextra" if self.split == "train_extra" else "trainvaltest"
        targets = "gtFine_trainvaltest" if self.mode == "gtFine" else "gtCoarse"
        paths = [
            os.path.join(self.root, f"{name}.zip") for name in (f"leftImg8bit_{part}", targets)
        ]
        if not all(os.path.isfile(path) for path in paths):
            raise RuntimeError(
                f"Cityscapes: Dataset not found or incomplete. {self.images_dir} and "
                f"{self.targets_dir} must be there, or {paths[0]} and {paths[1]}."
            )
        for path in paths:
            extract_archive(path, self.root)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        targets = [
            self._read_polygons(path) if kind == "polygon" else read_image(path)
            for kind, path in zip(self.target_type, self.targets[index], strict=True)
        ]
        return self._transformed_together(
            read_image(self.images[index], "RGB"), one_or_tuple(targets)
        )

    @staticmethod
    def _read_polygons(path: str) -> Any:
        with open(path) as file:
            return told_with_path(path, lambda: json.load(file))

    def __len__(self) -> int:
        return len(self.images)


class Kitti(DownloadableDataset):
    """Streets of Karlsruhe with the boxes of cars and people: Geiger et al. 2012.

    The files are in root/Kitti/raw/training and root/Kitti/raw/testing.

    Args as for VisionDataset, and:
        train: whether to take the training set, not the test set, whose targets are None.
        download: whether to download the archives if the files are not there.

    Returns:
        Of each sample the image and a list of dicts with "type", "truncated", "occluded",
        "alpha", "bbox" (left, top, right, bottom), "dimensions", "location" and "rotation_y".

    Raises:
        RuntimeError: if the files are not there.
        ValueError: if a target is damaged.
    """

    data_url = "https://s3.eu-central-1.amazonaws.com/avg-kitti/"
    resources = ["data_object_image_2.zip", "data_object_label_2.zip"]
    image_dir_name = "image_2"
    labels_dir_name = "label_2"

    def __init__(
        self,
        root: AnyPath,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.train = train
        raw = os.path.join(type(self).__name__, "raw")
        folder = os.path.join(raw, "training" if train else "testing")
        images, labels = (
            os.path.join(folder, name) for name in (self.image_dir_name, self.labels_dir_name)
        )
        self._sources = [Source(self.data_url + name, folder=raw) for name in self.resources]
        self._needs = (images, labels) if train else (images,)
        self._prepare(download)
        self.images = list_files(os.path.join(self.root, images), "", prefix=True)
        stems = [os.path.basename(path).split(".")[0] for path in self.images] if train else []
        self.targets = [os.path.join(self.root, labels, f"{stem}.txt") for stem in stems]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        target = None
        if self.train:
            path = self.targets[index]
            target = told_with_path(path, lambda: [self._object(r) for r in read_lines(path)])
        return self._transformed_together(read_image(self.images[index]), target)

    @staticmethod
    def _object(line: str) -> dict[str, Any]:
        kind, truncated, occluded, *rest = line.split()
        numbers = [float(value) for value in rest]
        return {
            "type": kind,
            "truncated": float(truncated),
            "occluded": int(occluded),
            "alpha": numbers[0],
            "bbox": numbers[1:5],
            "dimensions": numbers[5:8],
            "location": numbers[8:11],
            "rotation_y": numbers[11],
        }

    def __len__(self) -> int:
        return len(self.images)
