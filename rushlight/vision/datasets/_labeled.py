"""Collections of images with one label each, in files of their own.

Owns no mechanism: each data set says what to download, and lists its images and their labels.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

from rushlight.vision.datasets._files import LabeledFiles, Source, read_lines, read_mat
from rushlight.vision.datasets.folder import (
    default_loader,
    find_classes,
    make_dataset,
    pil_loader,
    read_image,
)
from rushlight.vision.datasets.utils import list_dir, list_files, verify_str_arg
from rushlight.vision.datasets.vision import AnyPath, Loader, Transform


class Food101(LabeledFiles):
    """101,000 images of food in 101 classes: Bossard et al. 2014.

    Args as for LabeledFiles, and:
        split: "train" or "test".
        download: whether to download the archive if the images are not there.

    Raises:
        RuntimeError: if the files are not there.
    """

    _repr_format = "split={_split}"
    _sources = (
        Source(
            "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz", "85eeb15f3717b99a5da872d97d918f87"
        ),
    )
    _needs = ("food-101/meta", "food-101/images")

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        self._prepare(download)
        folder = Path(self.root) / "food-101"
        listed = json.loads((folder / "meta" / f"{split}.json").read_text())
        self._set_classes(sorted(listed))
        self._samples = [
            (folder / "images" / f"{name}.jpg", self.class_to_idx[kind])
            for kind, names in listed.items()
            for name in names
        ]


class DTD(LabeledFiles):
    """5,640 images of textures in 47 classes: Cimpoi et al. 2014.

    Args as for LabeledFiles, and:
        split: "train", "val" or "test".
        partition: which of ten ways to split them, 1 to 10.
        download: whether to download the archive if the images are not there.

    Raises:
        ValueError: if there is no such split or partition.
        RuntimeError: if the files are not there.
    """

    _repr_format = "split={_split}, partition={_partition}"
    _sources = (
        Source(
            "https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz",
            "fff73e5086ae6bdbea199a49dfb8a4c1",
            folder="dtd",
        ),
    )
    _needs = ("dtd/dtd",)

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        partition: int = 1,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        if not isinstance(partition, int) or not 1 <= partition <= 10:
            raise ValueError(
                "Parameter 'partition' should be an integer with `1 <= partition <= 10`, but got "
                f"{partition} instead"
            )
        self._partition = partition
        self._prepare(download)
        folder = Path(self.root) / "dtd" / "dtd"
        names = read_lines(folder / "labels" / f"{split}{partition}.txt")
        kinds = [name.split("/")[0] for name in names]
        self._set_classes(sorted(set(kinds)))
        self._samples = [
            (folder / "images" / name, self.class_to_idx[kind])
            for name, kind in zip(names, kinds, strict=True)
        ]


class FGVCAircraft(LabeledFiles):
    """10,000 images of aircraft in 100 variants of 70 families: Maji et al. 2013.

    Args as for LabeledFiles, and:
        split: "train", "val", "trainval" or "test".
        annotation_level: whether a label is the "variant", "family" or "manufacturer".
        download: whether to download the archive if the images are not there.

    Raises:
        RuntimeError: if the files are not there.
    """

    _sources = (
        Source(
            "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz"
        ),
    )
    _needs = ("fgvc-aircraft-2013b",)
    _LISTS = {"variant": "variants", "family": "families", "manufacturer": "manufacturers"}

    def __init__(
        self,
        root: AnyPath,
        split: str = "trainval",
        annotation_level: str = "variant",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "trainval", "test"))
        self._annotation_level = verify_str_arg(annotation_level, "annotation_level", self._LISTS)
        self._prepare(download)
        folder = os.path.join(self.root, "fgvc-aircraft-2013b", "data")
        self._set_classes(read_lines(os.path.join(folder, f"{self._LISTS[annotation_level]}.txt")))
        rows = read_lines(os.path.join(folder, f"images_{annotation_level}_{split}.txt"))
        self._samples = [
            (os.path.join(folder, "images", f"{name}.jpg"), self.class_to_idx[kind])
            for name, kind in (row.split(" ", 1) for row in rows)
        ]


class SUN397(LabeledFiles):
    """108,754 images of scenes in 397 classes: Xiao et al. 2010.

    Args as for LabeledFiles, and:
        download: whether to download the archive if the images are not there.

    Raises:
        RuntimeError: if the files are not there.
    """

    _sources = (
        Source(
            "http://vision.princeton.edu/projects/2010/SUN/SUN397.tar.gz",
            "8ca2778205c41d23104230ba66911c7a",
        ),
    )
    _needs = ("SUN397",)

    def __init__(
        self,
        root: AnyPath,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._prepare(download)
        folder = Path(self.root) / "SUN397"
        self._set_classes(line[3:] for line in read_lines(folder / "ClassName.txt"))  # "/a/abbey"
        self._samples = [
            (path, self.class_to_idx["/".join(path.relative_to(folder).parts[1:-1])])
            for path in sorted(folder.rglob("sun_*.jpg"))
        ]


class CLEVRClassification(LabeledFiles):
    """100,000 images of solids, with how many there are: Johnson et al. 2017.

    Args as for LabeledFiles, and:
        split: "train", "val" or "test", whose labels are None.
        download: whether to download the archive if the images are not there.

    Raises:
        RuntimeError: if the files are not there.
    """

    _repr_format = "split={_split}"
    _sources = (
        Source(
            "https://dl.fbaipublicfiles.com/clevr/CLEVR_v1.0.zip",
            "b11922020e72d0cd9154779b2d3d07d2",
            folder="clevr",
        ),
    )
    _needs = ("clevr/CLEVR_v1.0",)

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        self._prepare(download)
        folder = Path(self.root) / "clevr" / "CLEVR_v1.0"
        counts: dict[str, int] = {}
        if split != "test":
            content = json.loads((folder / "scenes" / f"CLEVR_{split}_scenes.json").read_text())
            counts = {s["image_filename"]: len(s["objects"]) for s in content["scenes"]}
        paths = sorted((folder / "images" / split).glob("*"))
        self._samples = [(p, counts[p.name] if split != "test" else None) for p in paths]


class RenderedSST2(LabeledFiles):
    """9,613 images of sentences that praise or blame a film: Radford et al. 2021.

    Args as for LabeledFiles, and:
        split: "train", "val" or "test".
        download: whether to download the archive if the images are not there.

    Raises:
        RuntimeError: if the files are not there.
    """

    _repr_format = "split={_split}"
    _sources = (
        Source(
            "https://openaipublic.azureedge.net/clip/data/rendered-sst2.tgz",
            "2384d08e9dcfa4bd55b324e610496ee5",
        ),
    )

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        self._set_classes(("negative", "positive"))
        folder = os.path.join("rendered-sst2", "valid" if split == "val" else split)
        self._needs = [os.path.join(folder, name) for name in self.classes]
        self._prepare(download)
        self._samples = make_dataset(os.path.join(self.root, folder), extensions=("png",))


class GTSRB(LabeledFiles):
    """51,839 images of German traffic signs in 43 classes: Stallkamp et al. 2012.

    Args as for LabeledFiles without the loader, and:
        split: "train" or "test".
        download: whether to download the archives if the images are not there.

    Raises:
        RuntimeError: if the files are not there.
    """

    _URL = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"
    _ARCHIVES = {
        "train": (("GTSRB-Training_fixed.zip", "513f3c79a4c5141765e10e952eaa2478"),),
        "test": (
            ("GTSRB_Final_Test_Images.zip", "c7e4e6327067d32654124b0fe9e82185"),
            ("GTSRB_Final_Test_GT.zip", "fe31e9c9270bbcd7b84b7f21a9d9d9e5"),
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
        super().__init__(root, transform, target_transform, pil_loader)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        self._sources = [
            Source(self._URL + name, md5, folder="gtsrb") for name, md5 in self._ARCHIVES[split]
        ]
        folder = "gtsrb/GTSRB/Training" if split == "train" else "gtsrb/GTSRB/Final_Test/Images"
        self._needs = (folder,)
        self._prepare(download)
        pictures = Path(self.root) / folder
        if split == "train":
            self._samples = make_dataset(pictures, extensions=(".ppm",))
            return
        with open(Path(self.root) / "gtsrb" / "GT-final_test.csv", newline="") as file:
            self._samples = [
                (str(pictures / row["Filename"]), int(row["ClassId"]))
                for row in csv.DictReader(file, delimiter=";", skipinitialspace=True)
            ]


class StanfordCars(LabeledFiles):
    """16,185 images of cars in 196 classes: Krause et al. 2013. It is no longer online.

    Args as for LabeledFiles, and:
        split: "train" or "test".
        download: must be False.

    Raises:
        ValueError: if it is to be downloaded.
        RuntimeError: if the files are not there or damaged, or SciPy is not installed.
    """

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        table = "devkit/cars_train_annos" if split == "train" else "cars_test_annos_withlabels"
        self._needs = [
            os.path.join("stanford_cars", name)
            for name in ("devkit", f"{table}.mat", f"cars_{split}")
        ]
        self._prepare(download)
        folder = Path(self.root) / "stanford_cars"
        rows = read_mat(folder / f"{table}.mat", "annotations", squeeze_me=True)[0]
        names = read_mat(folder / "devkit" / "cars_meta.mat", "class_names", squeeze_me=True)[0]
        self._set_classes(names.tolist())
        self._samples = [
            (str(folder / f"cars_{split}" / row["fname"]), row["class"] - 1) for row in rows
        ]

    def download(self) -> None:
        raise ValueError(
            "The original URL is broken so the StanfordCars dataset cannot be downloaded anymore."
        )


class Imagenette(LabeledFiles):
    """13,394 images of ImageNet in ten classes that are easily told apart: Howard 2019.

    Args as for LabeledFiles, and:
        split: "train" or "val".
        size: "full", or "320px" or "160px" for the shorter side.
        download: whether to download the archive if the images are not there.

    Attributes:
        classes: names of the classes, a tuple for each.
        class_to_idx: number of the class of each name.
        wnids: WordNet's numbers of the classes.
        wnid_to_idx: number of the class of each of these.

    Raises:
        RuntimeError: if the files are not there.
    """

    _URL = "https://s3.amazonaws.com/fast-ai-imageclas/"
    _ARCHIVES = {
        "full": ("imagenette2", "fe2fc210e6bb7c5664d602c3cd71e612"),
        "320px": ("imagenette2-320", "3df6f0d01a2c9592104656642f5e78a3"),
        "160px": ("imagenette2-160", "e793b78cc4c9e9a4ccc0c1155377a412"),
    }
    _WNID_TO_CLASS = {
        "n01440764": ("tench", "Tinca tinca"),
        "n02102040": ("English springer", "English springer spaniel"),
        "n02979186": ("cassette player",),
        "n03000684": ("chain saw", "chainsaw"),
        "n03028079": ("church", "church building"),
        "n03394916": ("French horn", "horn"),
        "n03417042": ("garbage truck", "dustcart"),
        "n03425413": ("gas pump", "gasoline pump", "petrol pump", "island dispenser"),
        "n03445777": ("golf ball",),
        "n03888257": ("parachute", "chute"),
    }

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        size: str = "full",
        download: bool = False,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val"))
        self._size = verify_str_arg(size, "size", self._ARCHIVES)
        name, md5 = self._ARCHIVES[size]
        self._sources = (Source(f"{self._URL}{name}.tgz", md5),)
        self._needs = (name,)
        self._prepare(download)
        folder = os.path.join(self.root, name, split)
        self.wnids, self.wnid_to_idx = find_classes(folder)
        self.classes = [self._WNID_TO_CLASS[wnid] for wnid in self.wnids]
        self.class_to_idx = {
            name: index for index, names in enumerate(self.classes) for name in names
        }
        self._samples = make_dataset(folder, self.wnid_to_idx, extensions=".jpeg")


class Omniglot(LabeledFiles):
    """1,623 handwritten characters of 50 alphabets, twenty images of each: Lake et al. 2015.

    Args as for LabeledFiles, and:
        root: folder of the data set's folder, omniglot-py.
        background: whether to take the background set, not the evaluation set.
        download: whether to download the archive if it is not there.
        loader: function of a path that returns the image, by default Pillow's in gray.

    Raises:
        RuntimeError: if the files are not there or damaged.
    """

    folder = "omniglot-py"
    download_url_prefix = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
    zips_md5 = {
        "images_background": "68d2efa1b9178cc56df9314c21c6e718",
        "images_evaluation": "6b91aef0f799c5bb55b94e3f2daec811",
    }

    def __init__(
        self,
        root: AnyPath,
        background: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader | None = None,
    ) -> None:
        super().__init__(
            os.path.join(root, self.folder), transform, target_transform, loader or _gray
        )
        self.background = background
        name = "images_background" if background else "images_evaluation"
        md5 = self.zips_md5[name]
        self._sources = (Source(f"{self.download_url_prefix}/{name}.zip", md5),)
        self._needs = ((f"{name}.zip", md5), name)
        self._prepare(download)
        self.target_folder = os.path.join(self.root, name)
        characters = [
            character
            for alphabet in list_dir(self.target_folder, prefix=True)
            for character in list_dir(alphabet, prefix=True)
        ]
        self._samples = [
            (path, index)
            for index, character in enumerate(characters)
            for path in list_files(character, ".png", prefix=True)
        ]


def _gray(path: AnyPath) -> Any:
    return read_image(path, "L")
