"""Collections of photographs whose labels come from folders, lists or tables of several kinds.

Owns no mechanism, like _labeled.py: each data set says what to download and lists its images.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rushlight.vision.datasets._files import (
    DownloadableDataset,
    LabeledFiles,
    Source,
    one_or_tuple,
    read_lines,
    read_mat,
)
from rushlight.vision.datasets.folder import ImageFolder, default_loader, read_image
from rushlight.vision.datasets.utils import (
    extract_archive,
    list_dir,
    list_files,
    verify_str_arg,
)
from rushlight.vision.datasets.vision import AnyPath, Loader, Transform


class _DownloadableFolder(DownloadableDataset, ImageFolder):
    """An ImageFolder somewhere below the root."""

    def _list(self, folder: str, *args: Any) -> None:
        root = self.root
        ImageFolder.__init__(self, os.path.join(root, folder), *args)
        self.root = root


class Country211(_DownloadableFolder):
    """63,300 photographs of 211 countries: Radford et al. 2021.

    Args as for ImageFolder, and:
        root: folder of the data set's folder, country211.
        split: "train", "valid" or "test".
        download: whether to download the archive if the images are not there.

    Raises:
        RuntimeError: if the files are not there.
    """

    _sources = (
        Source(
            "https://openaipublic.azureedge.net/clip/data/country211.tgz",
            "84988d7644798601126c29e9877aab6a",
        ),
    )
    _needs = ("country211",)

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        self._split = verify_str_arg(split, "split", ("train", "valid", "test"))
        self.root = os.path.expanduser(root)
        self._prepare(download)
        self._list(f"country211/{split}", transform, target_transform, loader)


class EuroSAT(_DownloadableFolder):
    """27,000 satellite images of ten kinds of land: Helber et al. 2019.

    Args as for ImageFolder, and:
        root: folder of the data set's folder, eurosat.
        download: whether to download the archive if the images are not there.

    Raises:
        RuntimeError: if the files are not there.
    """

    _sources = (
        Source(
            "https://huggingface.co/datasets/torchgeo/eurosat/resolve/"
            "c877bcd43f099cd0196738f714544e355477f3fd/EuroSAT.zip",
            "c8fa014336c82ac7804f0398fcb19387",
            folder="eurosat",
        ),
    )
    _needs = ("eurosat/2750",)

    def __init__(
        self,
        root: AnyPath,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Loader = default_loader,
    ) -> None:
        self.root = os.path.expanduser(root)
        self._prepare(download)
        self._list("eurosat/2750", transform, target_transform, loader)


class Places365(LabeledFiles):
    """1.8 million photographs of 365 kinds of places: Zhou et al. 2017.

    Args as for LabeledFiles, and:
        split: "train-standard", "train-challenge", "val" or "test", whose labels are None.
        small: whether to take images of 256 x 256 pixels, not the large ones.
        download: whether to download the lists and images that are not there.

    Attributes:
        classes: names of the classes.
        class_to_idx: number of each class.
        imgs: pairs of a path and the number of its class.
        targets: numbers of the classes of all images.

    Raises:
        RuntimeError: if the lists are not there or damaged.
    """

    _repr_format = "Split: {split}\nSmall: {small}"
    _BASE_URL = "http://data.csail.mit.edu/places/places365/"
    _LISTS = {
        "standard": "35a0585fee1fa656440f3ab298f8479c",
        "challenge": "70a8307e459c3de41690a7c76c931734",
    }
    _CATEGORIES = ("categories_places365.txt", "06c963b85866bd0649f97cb43dd16673")
    # The list of a split, its MD5, the archives of its large and small images and their MD5.
    _SPLITS = {
        "train-standard": (
            ("places365_train_standard.txt", "30f37515461640559006b8329efbed1a"),
            ("train_large_places365standard.tar", "67e186b496a84c929568076ed01a8aa1"),
            ("train_256_places365standard.tar", "53ca1c756c3d1e7809517cc47c5561c5"),
        ),
        "train-challenge": (
            ("places365_train_challenge.txt", "b2931dc997b8c33c27e7329c073a6b57"),
            ("train_large_places365challenge.tar", "605f18e68e510c82b958664ea134545f"),
            ("train_256_places365challenge.tar", "741915038a5e3471ec7332404dfb64ef"),
        ),
        "val": (
            ("places365_val.txt", "e9f2fd57bfd9d07630173f4e8708e4b1"),
            ("val_large.tar", "9b71c4993ad89d2d8bcbdc4aef38042f"),
            ("val_256.tar", "e27b17d8d44f4af9a78502beb927f808"),
        ),
        "test": (
            ("places365_test.txt", "2fce8233fe493576d724142e45d93653"),
            ("test_large.tar", "41a4b6b724b1d2cd862fb3871ed59913"),
            ("test_256.tar", "f532f6ad7b582262a2ec8009075e186b"),
        ),
    }

    def __init__(
        self,
        root: AnyPath,
        split: str = "train-standard",
        small: bool = False,
        download: bool = False,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform, loader)
        self.split = verify_str_arg(split, "split", self._SPLITS)
        self.small = small
        listed, *archives = self._SPLITS[split]
        lists = f"filelist_places365-{self.variant}.tar"
        self._sources = (Source(self._BASE_URL + lists, self._LISTS[self.variant]),)
        self._needs = (self._CATEGORIES, listed)
        self._prepare(download)
        rows = read_lines(os.path.join(self.root, self._CATEGORIES[0]))
        self.class_to_idx = {name: int(index) for name, index in (row.split() for row in rows)}
        self.classes = sorted(self.class_to_idx)
        self._samples = self.imgs = [
            (os.path.join(self.images_dir, name.lstrip("/")), int(label[0]) if label else None)
            for name, *label in map(str.split, read_lines(os.path.join(self.root, listed[0])))
        ]
        self.targets = self._labels
        if download and not os.path.exists(self.images_dir):
            name, md5 = archives[small]
            Source(self._BASE_URL + name, md5).fetch(self.root)
            if split.startswith("train"):  # both variants unpack to the same folder
                os.rename(self.images_dir.rpartition("_")[0], self.images_dir)

    @property
    def variant(self) -> str:
        """Which of the two training sets, and so lists, is meant."""
        return "challenge" if "challenge" in self.split else "standard"

    @property
    def images_dir(self) -> str:
        """The folder of the images."""
        size = "256" if self.small else "large"
        is_train = self.split.startswith("train")
        name = f"data_{size}_{self.variant}" if is_train else f"{self.split}_{size}"
        return os.path.join(self.root, name)


_FLOWERS = """\
pink primrose, hard-leaved pocket orchid, canterbury bells, sweet pea, english marigold,
tiger lily, moon orchid, bird of paradise, monkshood, globe thistle, snapdragon, colt's foot,
king protea, spear thistle, yellow iris, globe-flower, purple coneflower, peruvian lily,
balloon flower, giant white arum lily, fire lily, pincushion flower, fritillary, red ginger,
grape hyacinth, corn poppy, prince of wales feathers, stemless gentian, artichoke, sweet william,
carnation, garden phlox, love in the mist, mexican aster, alpine sea holly, ruby-lipped cattleya,
cape flower, great masterwort, siam tulip, lenten rose, barbeton daisy, daffodil, sword lily,
poinsettia, bolero deep blue, wallflower, marigold, buttercup, oxeye daisy, common dandelion,
petunia, wild pansy, primula, sunflower, pelargonium, bishop of llandaff, gaura, geranium,
orange dahlia, pink-yellow dahlia?, cautleya spicata, japanese anemone, black-eyed susan,
silverbush, californian poppy, osteospermum, spring crocus, bearded iris, windflower, tree poppy,
gazania, azalea, water lily, rose, thorn apple, morning glory, passion flower, lotus, toad lily,
anthurium, frangipani, clematis, hibiscus, columbine, desert-rose, tree mallow, magnolia,
cyclamen, watercress, canna lily, hippeastrum, bee balm, ball moss, foxglove, bougainvillea,
camellia, mallow, mexican petunia, bromelia, blanket flower, trumpet creeper, blackberry lily"""


class Flowers102(LabeledFiles):
    """8,189 photographs of 102 kinds of flowers: Nilsback and Zisserman 2008.

    Args as for LabeledFiles, and:
        split: "train", "val" or "test".
        download: whether to download the files that are not there.

    Raises:
        RuntimeError: if the files are not there or damaged, or SciPy is not installed.
    """

    _repr_format = "split={_split}"
    _URL = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/"
    _SPLITS = {"train": "trnid", "val": "valid", "test": "tstid"}
    _TABLES = (
        ("imagelabels.mat", "e0620be6f572b9609742df49c70aed4d"),
        ("setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c"),
    )
    classes = _FLOWERS.replace("\n", " ").split(", ")

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
        self._split = verify_str_arg(split, "split", self._SPLITS)
        pictures = Source(
            f"{self._URL}102flowers.tgz", "52808999861908f626f3c1f4e79d11fa", folder="flowers-102"
        )
        tables = [
            Source(self._URL + name, md5, folder="flowers-102", into=None)
            for name, md5 in self._TABLES
        ]
        self._sources = (pictures, *tables)
        self._needs = (
            "flowers-102/jpg",
            *((f"flowers-102/{name}", md5) for name, md5 in self._TABLES),
        )
        self._prepare(download)
        folder = Path(self.root) / "flowers-102"
        labels, ids = (folder / name for name, _ in self._TABLES)
        labels = read_mat(labels, "labels", squeeze_me=True)[0].tolist()
        ids = read_mat(ids, self._SPLITS[split], squeeze_me=True)[0].tolist()
        self._samples = [(folder / "jpg" / f"image_{i:05d}.jpg", labels[i - 1] - 1) for i in ids]


class _Caltech(LabeledFiles):
    """A folder of photographs for each class, which are numbered: 001_0002.jpg."""

    categories: list[str]

    def _list_samples(self, folder: str) -> None:
        self._samples = [
            (path, label)
            for label, name in enumerate(self.categories)
            for path in list_files(os.path.join(folder, name), ".jpg", prefix=True)
        ]
        self.index = [int(path[-8:-4]) for path, _ in self._samples]
        self.y = self._labels


class Caltech256(_Caltech):
    """30,607 photographs of 256 kinds of objects: Griffin et al. 2007.

    Args as for LabeledFiles, and:
        root: folder of the data set's folder, caltech256.
        download: whether to download the archive if the images are not there.

    Attributes:
        categories: names of the classes.
        index: number of each image within its class.
        y: number of the class of each image.

    Raises:
        RuntimeError: if the files are not there.
    """

    _sources = (
        Source(
            "https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar",
            "67b4f42ca05d46448c6bb8ecd2220f6d",
        ),
    )
    _needs = ("256_ObjectCategories",)

    def __init__(
        self,
        root: AnyPath,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(os.path.join(root, "caltech256"), transform, target_transform, read_image)
        self._prepare(download)
        folder = os.path.join(self.root, "256_ObjectCategories")
        self.categories = list_dir(folder)
        self._list_samples(folder)


class Caltech101(_Caltech):
    """8,677 photographs of 101 kinds of objects and their outlines: Li et al. 2004.

    Args as for LabeledFiles, and:
        root: folder of the data set's folder, caltech101.
        target_type: "category", "annotation" (the points of the outline), or a list of these.
        download: whether to download the archive if the images are not there.

    Attributes:
        categories: names of the classes.
        index: number of each image within its class.
        y: number of the class of each image.

    Raises:
        RuntimeError: if the files are not there, or SciPy is needed but not installed.
    """

    _repr_format = "Target type: {target_type}"
    _sources = (
        Source(
            "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip",
            "3138e1922a9193bfa496528edbbc45d0",
            keep=False,
        ),
    )
    _needs = ("101_ObjectCategories",)
    # Classes whose outlines are in folders of another name.
    _ANNOTATIONS = {
        "Faces": "Faces_2",
        "Faces_easy": "Faces_3",
        "Motorbikes": "Motorbikes_16",
        "airplanes": "Airplanes_Side_2",
    }

    def __init__(
        self,
        root: AnyPath,
        target_type: list[str] | str = "category",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(os.path.join(root, "caltech101"), transform, target_transform, read_image)
        kinds = [target_type] if isinstance(target_type, str) else target_type
        self.target_type = [
            verify_str_arg(kind, "target_type", ("category", "annotation")) for kind in kinds
        ]
        self._prepare(download)
        folder = os.path.join(self.root, "101_ObjectCategories")
        self.categories = [name for name in list_dir(folder) if name != "BACKGROUND_Google"]
        self.annotation_categories = [self._ANNOTATIONS.get(c, c) for c in self.categories]
        self._list_samples(folder)

    def download(self) -> None:
        if self._missing() is None:
            return
        super().download()
        inner = os.path.join(self.root, "caltech-101")
        for path in list_files(inner, ".gz", prefix=True):
            extract_archive(path, self.root)
        shutil.rmtree(inner)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, label = self._samples[index]
        targets = [label if t == "category" else self._outline(index) for t in self.target_type]
        return self._transformed(self.loader(path), one_or_tuple(targets))

    def _outline(self, index: int) -> Any:
        name = self.annotation_categories[self.y[index]]
        file = f"annotation_{self.index[index]:04d}.mat"
        return read_mat(os.path.join(self.root, "Annotations", name, file), "obj_contour")[0]


class OxfordIIITPet(DownloadableDataset):
    """7,349 photographs of 37 breeds of cats and dogs, and their outlines: Parkhi et al. 2012.

    Args as for VisionDataset, and:
        split: "trainval" or "test".
        target_types: "category", "binary-category" (cat or dog), "segmentation" (an image of
            what is the animal, its border and the rest), or a list of these.
        download: whether to download the archives if the images are not there.

    Raises:
        RuntimeError: if the files are not there.
    """

    _URL = "https://www.robots.ox.ac.uk/~vgg/data/pets/data/"
    _sources = (
        Source(
            f"{_URL}images.tar.gz", "5c4f3ee8e5d25df40f4fd59a7f44e54c", folder="oxford-iiit-pet"
        ),
        Source(
            f"{_URL}annotations.tar.gz",
            "95a8c909bbe2e81eed6a22bccdf3f68f",
            folder="oxford-iiit-pet",
        ),
    )
    _needs = ("oxford-iiit-pet/images", "oxford-iiit-pet/annotations")
    _VALID_TARGET_TYPES = ("category", "binary-category", "segmentation")

    def __init__(
        self,
        root: AnyPath,
        split: str = "trainval",
        target_types: Sequence[str] | str = "category",
        transforms: Transform = None,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self._split = verify_str_arg(split, "split", ("trainval", "test"))
        kinds = [target_types] if isinstance(target_types, str) else target_types
        self._target_types = [
            verify_str_arg(kind, "target_types", self._VALID_TARGET_TYPES) for kind in kinds
        ]
        self._prepare(download)
        folder = Path(self.root) / "oxford-iiit-pet"
        rows = [line.split() for line in read_lines(folder / "annotations" / f"{split}.txt")]
        self._labels = [int(label) - 1 for _, label, _, _ in rows]
        self._bin_labels = [int(label) - 1 for _, _, label, _ in rows]
        breeds = {int(label): name.rpartition("_")[0] for name, label, _, _ in rows}
        self._set_classes(
            " ".join(word.title() for word in breeds[label].split("_")) for label in sorted(breeds)
        )
        self.bin_classes = ["Cat", "Dog"]
        self.bin_class_to_idx = {"Cat": 0, "Dog": 1}
        self._images = [folder / "images" / f"{name}.jpg" for name, *_ in rows]
        self._segs = [folder / "annotations" / "trimaps" / f"{name}.png" for name, *_ in rows]

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        targets = [
            read_image(self._segs[idx])
            if kind == "segmentation"
            else (self._labels if kind == "category" else self._bin_labels)[idx]
            for kind in self._target_types
        ]
        return self._transformed_together(
            read_image(self._images[idx], "RGB"), one_or_tuple(targets)
        )

    def __len__(self) -> int:
        return len(self._images)
