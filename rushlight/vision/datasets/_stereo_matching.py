"""Pairs of images of two cameras side by side, with the disparity of each pixel.

Owns what the files of disparities mean; each data set says by patterns where they are. A disparity
is how many pixels further left the same point lies in the right image.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.vision.datasets._files import Source
from rushlight.vision.datasets._optical_flow import listed, read_pfm
from rushlight.vision.datasets.folder import read_image
from rushlight.vision.datasets.utils import verify_str_arg
from rushlight.vision.datasets.vision import AnyPath, Transform, VisionDataset

Disparity = tuple[np.ndarray | None, np.ndarray | None]


class StereoMatchingDataset(VisionDataset):
    """Images of a left and a right camera with the disparity of the left one.

    A sample is both images, the disparity, (1, height, width), and, where the data set knows it
    or a transform made it, the mask of the pixels that have one. Test sets have None for both.

    Args:
        root: folder of the data set's folder.
        transforms: function of both images, both disparities and both masks, as three pairs.

    Raises:
        FileNotFoundError: if the files are not there.
        ValueError: if there are not as many left as right ones, or an argument is unknown.
    """

    _has_built_in_disparity_mask = False

    def __init__(self, root: AnyPath, transforms: Transform = None) -> None:
        super().__init__(root)
        self.transforms = transforms
        self._images: list[tuple[str, str]] = []
        self._disparities: list[tuple[str | None, str | None]] = []

    def _add(self, folder: Path, images: tuple[str, str], *disparities: str) -> None:
        """Adds what matches the patterns of both images, and of one, both or no disparities."""
        left, right = (self._found(folder, pattern) for pattern in images)
        self._images += self._paired(left, right, folder, images)
        maps: list[Any] = [self._found(folder, pattern) for pattern in disparities]
        maps += [[None] * len(maps[0] if maps else left) for _ in range(2 - len(maps))]
        self._disparities += self._paired(maps[0], maps[1], folder, disparities)

    @staticmethod
    def _found(folder: Path, pattern: str) -> list[str]:
        paths = listed(folder, pattern)
        if not paths:
            raise FileNotFoundError(
                f"Could not find any files matching the patterns: {folder / pattern}"
            )
        return paths

    @staticmethod
    def _paired(left: list[Any], right: list[Any], folder: Path, patterns: Any) -> list[Any]:
        if len(left) != len(right):
            raise ValueError(
                f"Found {len(left)} left files but {len(right)} right files in {folder} using "
                f"{' and '.join(patterns)}."
            )
        return list(zip(left, right, strict=True))

    def _read_img(self, path: str) -> Any:
        return read_image(path, "RGB")

    def _read_disparity(self, path: str) -> Disparity:
        """The disparity and its mask; here of a .pfm file, without one."""
        return abs(read_pfm(path, 1)), None

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        images = tuple(self._read_img(path) for path in self._images[index])
        read = [
            (None, None) if path is None else self._read_disparity(path)
            for path in self._disparities[index]
        ]
        disparities, masks = zip(*read, strict=True)
        if self.transforms is not None:
            images, disparities, masks = self.transforms(images, disparities, masks)
        if self._has_built_in_disparity_mask or masks[0] is not None:
            return images[0], images[1], disparities[0], masks[0]
        return images[0], images[1], disparities[0]

    def __len__(self) -> int:
        return len(self._images)


def _read_png(path: str, divisor: float, dtype: Any = np.float32) -> Disparity:
    """A disparity whose unit is a fraction of a pixel, from a gray PNG."""
    return (np.asarray(read_image(path), dtype) / dtype(divisor))[None], None


class CarlaStereo(StereoMatchingDataset):
    """Streets of a simulator in high resolution. Arguments as for StereoMatchingDataset."""

    def __init__(self, root: AnyPath, transforms: Transform = None) -> None:
        super().__init__(root, transforms)
        folder = Path(self.root) / "carla-highres" / "trainingF"
        self._add(folder, ("*/im0.png", "*/im1.png"), "*/disp0GT.pfm", "*/disp1GT.pfm")


class _KittiStereo(StereoMatchingDataset):
    _has_built_in_disparity_mask = True

    def __init__(self, root: AnyPath, split: str = "train", transforms: Transform = None) -> None:
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "test"))
        name = type(self).__name__.removesuffix("Stereo")
        self._list(Path(self.root) / name / f"{split}ing", split == "train")

    def _list(self, folder: Path, has_disparities: bool) -> None:
        raise NotImplementedError

    def _read_disparity(self, path: str) -> Disparity:
        return _read_png(path, 256, np.float64)


class Kitti2012Stereo(_KittiStereo):
    """Streets of Karlsruhe: Geiger et al. 2012. Arguments as for StereoMatchingDataset, and:

    Args:
        split: "train" or "test".
    """

    def _list(self, folder: Path, has_disparities: bool) -> None:
        disparities = ("disp_noc/*.png",) if has_disparities else ()
        self._add(folder, ("colored_0/*_10.png", "colored_1/*_10.png"), *disparities)


class Kitti2015Stereo(_KittiStereo):
    """Streets of Karlsruhe: Menze and Geiger 2015. Arguments as for Kitti2012Stereo."""

    def _list(self, folder: Path, has_disparities: bool) -> None:
        disparities = ("disp_occ_0/*.png", "disp_occ_1/*.png") if has_disparities else ()
        self._add(folder, ("image_2/*.png", "image_3/*.png"), *disparities)


class Middlebury2014Stereo(StereoMatchingDataset):
    """Things on tables: Scharstein et al. 2014. Arguments as for StereoMatchingDataset, and:

    Args:
        split: "train", "additional" or "test".
        calibration: "perfect", "imperfect" or "both"; None for the test set.
        use_ambient_views: whether to take, at random, a right image in other light.
        download: whether to download the scenes that are not there.
    """

    _has_built_in_disparity_mask = True
    splits = {
        "train": [
            "Adirondack",
            "Jadeplant",
            "Motorcycle",
            "Piano",
            "Pipes",
            "Playroom",
            "Playtable",
            "Recycle",
            "Shelves",
            "Vintage",
        ],
        "additional": [
            "Backpack",
            "Bicycle1",
            "Cable",
            "Classroom1",
            "Couch",
            "Flowers",
            "Mask",
            "Shopvac",
            "Sticks",
            "Storage",
            "Sword1",
            "Sword2",
            "Umbrella",
        ],
        "test": [
            "Plants",
            "Classroom2E",
            "Classroom2",
            "Australia",
            "DjembeL",
            "CrusadeP",
            "Crusade",
            "Hoops",
            "Bicycle2",
            "Staircase",
            "Newkuba",
            "AustraliaP",
            "Djembe",
            "Livingroom",
            "Computer",
        ],
    }
    _URL = "https://vision.middlebury.edu/stereo/"

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        calibration: str | None = "perfect",
        use_ambient_views: bool = False,
        transforms: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transforms)
        self.split = verify_str_arg(split, "split", self.splits)
        if calibration is not None:
            verify_str_arg(calibration, "calibration", ("perfect", "imperfect", "both"))
        if (calibration is None) != (split == "test"):
            raise ValueError(
                f"Split '{split}' with calibration={calibration!r}: the test set has none, the "
                "others are 'perfect', 'imperfect' or 'both'. Please set it so."
            )
        self.use_ambient_views = use_ambient_views
        if download:
            self._download(Path(self.root) / "Middlebury2014")
        folder = Path(self.root) / "Middlebury2014" / split
        if not folder.exists():
            raise FileNotFoundError(f"The {split} directory was not found: {folder}")
        kinds = ("perfect", "imperfect") if calibration == "both" else (calibration,)
        for scene in ("*" if kind is None else f"*-{kind}" for kind in kinds):
            maps = () if split == "test" else (f"{scene}/disp0.pfm", f"{scene}/disp1.pfm")
            self._add(folder, (f"{scene}/im0.png", f"{scene}/im1.png"), *maps)

    def _download(self, folder: Path) -> None:
        if self.split != "test":
            for scene in self.splits[self.split]:
                for name in (f"{scene}-perfect", f"{scene}-imperfect"):
                    if not (folder / self.split / name).exists():
                        url = f"{self._URL}data/scenes2014/zip/{name}.zip"
                        Source(url, keep=False).fetch(folder / self.split)
        elif not (folder / "test").exists():
            Source(f"{self._URL}submit3/zip/MiddEval3-data-F.zip", keep=False).fetch(folder)
            os.rename(folder / "MiddEval3" / "testF", folder / "test")

    def _read_img(self, path: str) -> Any:
        if self.use_ambient_views and os.path.basename(path) == "im1.png":
            views = [os.path.join(os.path.dirname(path), n) for n in ("im1E.png", "im1L.png")]
            path = random.choice([*filter(os.path.exists, views), path])
        return super()._read_img(path)

    def _read_disparity(self, path: str) -> Disparity:
        values = abs(read_pfm(path, 1))
        values[values == np.inf] = 0  # unknown
        return values, values[0] > 0


class CREStereo(StereoMatchingDataset):
    """Rendered scenes: Li et al. 2022. Arguments as for StereoMatchingDataset."""

    _has_built_in_disparity_mask = True

    def __init__(self, root: AnyPath, transforms: Transform = None) -> None:
        super().__init__(root, transforms)
        for name in ("shapenet", "reflective", "tree", "hole"):
            self._add(
                Path(self.root) / "CREStereo" / name,
                ("*_left.jpg", "*_right.jpg"),
                "*_left.disp.png",
                "*_right.disp.png",
            )

    def _read_disparity(self, path: str) -> Disparity:
        return _read_png(path, 32)


class FallingThingsStereo(StereoMatchingDataset):
    """Things that fall: Tremblay et al. 2018. Arguments as for StereoMatchingDataset, and:

    Args:
        variant: "single" things, "mixed" ones, or "both".
    """

    def __init__(
        self, root: AnyPath, variant: str = "single", transforms: Transform = None
    ) -> None:
        super().__init__(root, transforms)
        verify_str_arg(variant, "variant", ("single", "mixed", "both"))
        for name in ("single", "mixed") if variant == "both" else (variant,):
            part = "*/*" if name == "single" else "*"
            self._add(
                Path(self.root) / "FallingThings" / name,
                (f"{part}/*.left.jpg", f"{part}/*.right.jpg"),
                f"{part}/*.left.depth.png",
                f"{part}/*.right.depth.png",
            )

    def _read_disparity(self, path: str) -> Disparity:
        settings = json.loads((Path(path).parent / "_camera_settings.json").read_text())
        focal = settings["camera_settings"][0]["intrinsic_settings"]["fx"]
        depth = np.asarray(read_image(path), np.float32)
        # The cameras are 6 cm apart, depth is in tenths of a millimetre.
        return (6 * 100 * focal / depth)[None], None


class SceneFlowStereo(StereoMatchingDataset):
    """Rendered scenes: Mayer et al. 2016. Arguments as for StereoMatchingDataset, and:

    Args:
        variant: "FlyingThings3D", "Driving" or "Monkaa".
        pass_name: "clean", "final" with blur, or "both".
    """

    def __init__(
        self,
        root: AnyPath,
        variant: str = "FlyingThings3D",
        pass_name: str = "clean",
        transforms: Transform = None,
    ) -> None:
        super().__init__(root, transforms)
        verify_str_arg(variant, "variant", ("FlyingThings3D", "Driving", "Monkaa"))
        verify_str_arg(pass_name, "pass_name", ("clean", "final", "both"))
        part = "*" if variant == "Monkaa" else "*/*/*"
        for name in ("clean", "final") if pass_name == "both" else (pass_name,):
            images = f"frames_{name}pass/{part}"
            self._add(
                Path(self.root) / "SceneFlow" / variant,
                (f"{images}/left/*.png", f"{images}/right/*.png"),
                f"disparity/{part}/left/*.pfm",
                f"disparity/{part}/right/*.pfm",
            )


class SintelStereo(StereoMatchingDataset):
    """Scenes of an animated film: Butler et al. 2012. Arguments as for StereoMatchingDataset, and:

    Args:
        pass_name: "final" with fog and blur, "clean", or "both".
    """

    _has_built_in_disparity_mask = True

    def __init__(
        self, root: AnyPath, pass_name: str = "final", transforms: Transform = None
    ) -> None:
        super().__init__(root, transforms)
        verify_str_arg(pass_name, "pass_name", ("final", "clean", "both"))
        for name in ("final", "clean") if pass_name == "both" else (pass_name,):
            self._add(
                Path(self.root) / "Sintel" / "training",
                (f"{name}_left/*/*.png", f"{name}_right/*/*.png"),
                "disparities/*/*.png",
            )

    def _read_disparity(self, path: str) -> Disparity:
        red, green, blue = np.asarray(read_image(path), np.float32).transpose(2, 0, 1)
        values = red * 4 + green / 2**6 + blue / 2**14
        scene, name = Path(path).parts[-2:]
        folder = Path(path).parents[2]
        hidden, outside = (
            np.asarray(read_image(folder / kind / scene / name)) != 0
            for kind in ("occlusions", "outofframe")
        )
        return values[None], ~hidden & ~outside


class InStereo2k(StereoMatchingDataset):
    """Rooms: Bao et al. 2020. Arguments as for StereoMatchingDataset, and:

    Args:
        split: "train" or "test".
    """

    def __init__(self, root: AnyPath, split: str = "train", transforms: Transform = None) -> None:
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "test"))
        self._add(
            Path(self.root) / "InStereo2k" / split,
            ("*/left.png", "*/right.png"),
            "*/left_disp.png",
            "*/right_disp.png",
        )

    def _read_disparity(self, path: str) -> Disparity:
        return _read_png(path, 1024)


class ETH3DStereo(StereoMatchingDataset):
    """Rooms and buildings: Schöps et al. 2017. Arguments as for StereoMatchingDataset, and:

    Args:
        split: "train" or "test".
    """

    _has_built_in_disparity_mask = True

    def __init__(self, root: AnyPath, split: str = "train", transforms: Transform = None) -> None:
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "test"))
        images = "two_view_training" if split == "train" else "two_view_test"
        disparities = ("two_view_training_gt/*/disp0GT.pfm",) if split == "train" else ()
        self._add(
            Path(self.root) / "ETH3D", (f"{images}/*/im0.png", f"{images}/*/im1.png"), *disparities
        )

    def _read_disparity(self, path: str) -> Disparity:
        mask = read_image(Path(path).parent / "mask0nocc.png")
        return abs(read_pfm(path, 1)), np.asarray(mask).astype(bool)
