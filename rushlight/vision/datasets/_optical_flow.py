"""Pairs of images with the motion between them: Sintel, KITTI, Flying Chairs and Things, HD1K.

Owns the formats of motion: .flo (https://vision.middlebury.edu/flow), .pfm, and KITTI's PNG.
"""

from __future__ import annotations

import itertools
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np

import rushlight as rl
from rushlight.vision.datasets._png import read_png16
from rushlight.vision.datasets.folder import default_loader
from rushlight.vision.datasets.utils import verify_str_arg
from rushlight.vision.datasets.vision import AnyPath, Loader, Transform, VisionDataset


def read_flo(path: AnyPath) -> np.ndarray:
    """Reads motion, (2, height, width) float32, from a .flo file.

    Raises:
        ValueError: if it is not one, or not as long as it says.
    """
    with open(path, "rb") as file:
        header = file.read(12)
        if len(header) < 12 or header[:4] != b"PIEH":
            raise ValueError(f"Magic number incorrect. Invalid .flo file: {path}.")
        width, height = struct.unpack("<ii", header[4:])
        values = _read_floats(file, path, "<f4", (height, width, 2))
    return values.transpose(2, 0, 1)


def read_pfm(path: AnyPath, slice_channels: int = 2) -> np.ndarray:
    """Reads the first channels of a .pfm file, (channels, height, width) float32.

    Raises:
        ValueError: if it is not one, or not as long as it says.
    """
    with open(path, "rb") as file:
        kind = file.readline(8).strip()
        header = re.fullmatch(rb"(\d+)\s+(\d+)\s+(\S+)\s", file.readline(64) + file.readline(64))
        if kind not in (b"PF", b"Pf") or header is None:
            raise ValueError(f"Invalid PFM file: {path}.")
        shape = int(header[2]), int(header[1]), 3 if kind == b"PF" else 1
        values = _read_floats(file, path, "<f4" if header[3].startswith(b"-") else ">f4", shape)
    # Rows go from the bottom to the top.
    return values[::-1].transpose(2, 0, 1)[:slice_channels].astype(np.float32)


def _read_floats(file: Any, path: AnyPath, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    size = os.path.getsize(path) - file.tell()
    if min(shape) < 1 or size != 4 * shape[0] * shape[1] * shape[2]:
        raise ValueError(
            f"{path} has {size} bytes of values, which does not fit its shape {shape}."
        )
    return np.fromfile(file, dtype).reshape(shape)


def read_png_flow(path: AnyPath) -> tuple[np.ndarray, np.ndarray]:
    """Reads motion, (2, height, width) float32, and where it is known, from a 16-bit PNG."""
    values = read_png16(path)
    return (values[:2].astype(np.float32) - 2**15) / 64, values[2] != 0


class FlowDataset(VisionDataset):
    """Pairs of images with the motion of each pixel of the first.

    A sample is both images, the motion and, where the data set knows it or a transform made it,
    the mask of the pixels whose motion is known. Without targets motion and mask are None.

    Args:
        root: folder of the data set's folder.
        transforms: function of both images, the motion and the mask that returns all four.
        loader: function of a path that returns the image.
    """

    _has_builtin_flow_mask = False

    def __init__(
        self,
        root: AnyPath,
        transforms: Transform = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root)
        self.transforms = transforms
        self._loader = loader
        self._image_list: list[list[str]] = []
        self._flow_list: list[str] = []

    def _read_flow(self, file_name: str) -> Any:
        """The motion, and its mask if the data set has one."""
        return read_flo(file_name)

    def _add_successive(self, images: list[str]) -> None:
        self._image_list += [[first, second] for first, second in itertools.pairwise(images)]

    def _check_found(self, found: Any) -> None:
        if not found:
            raise FileNotFoundError(
                f"Could not find the {type(self).__name__} images in {self.root}. Please make sure "
                "the directory structure is correct."
            )

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        first, second = (self._loader(path) for path in self._image_list[index])
        flow = mask = None
        if self._flow_list:
            flow = self._read_flow(self._flow_list[index])
            if self._has_builtin_flow_mask:
                flow, mask = flow
        if self.transforms is not None:
            first, second, flow, mask = self.transforms(first, second, flow, mask)
        if self._has_builtin_flow_mask or mask is not None:
            return first, second, flow, mask
        return first, second, flow

    def __len__(self) -> int:
        return len(self._image_list)

    def __rmul__(self, v: int) -> rl.utils.data.ConcatDataset:
        return rl.utils.data.ConcatDataset([self] * v)


def listed(folder: Path, pattern: str) -> list[str]:
    """The paths in a folder that match a pattern, sorted."""
    return sorted(str(path) for path in folder.glob(pattern))


class Sintel(FlowDataset):
    """Scenes of an animated film: Butler et al. 2012. Arguments as for FlowDataset, and:

    Args:
        split: "train" or "test", which has no targets.
        pass_name: "clean", "final" with fog and blur, or "both".
    """

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        pass_name: str = "clean",
        transforms: Transform = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", ("train", "test"))
        verify_str_arg(pass_name, "pass_name", ("clean", "final", "both"))
        folder = Path(self.root) / "Sintel"
        part = folder / ("training" if split == "train" else "test")
        for name in ("clean", "final") if pass_name == "both" else (pass_name,):
            for scene in sorted(os.listdir(part / name)):
                self._add_successive(listed(part / name / scene, "*.png"))
                if split == "train":
                    self._flow_list += listed(folder / "training" / "flow" / scene, "*.flo")


class KittiFlow(FlowDataset):
    """Streets of Karlsruhe, 2015: Menze and Geiger 2015. Arguments as for FlowDataset, and:

    Args:
        split: "train" or "test", which has no targets.
    """

    _has_builtin_flow_mask = True

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transforms: Transform = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", ("train", "test"))
        folder = Path(self.root) / "KittiFlow" / f"{split}ing"
        firsts, seconds = (listed(folder / "image_2", f"*_{n}.png") for n in (10, 11))
        self._check_found(firsts and seconds)
        self._image_list = [[*pair] for pair in zip(firsts, seconds, strict=True)]
        if split == "train":
            self._flow_list = listed(folder / "flow_occ", "*_10.png")

    def _read_flow(self, file_name: str) -> tuple[np.ndarray, np.ndarray]:
        return read_png_flow(file_name)


class FlyingChairs(FlowDataset):
    """Chairs that fly over photographs: Dosovitskiy et al. 2015. Arguments as for FlowDataset, and:

    Args:
        split: "train" or "val", as root/FlyingChairs/FlyingChairs_train_val.txt says.
    """

    def __init__(self, root: AnyPath, split: str = "train", transforms: Transform = None) -> None:
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "val"))
        folder = Path(self.root) / "FlyingChairs"
        splits = folder / "FlyingChairs_train_val.txt"
        if not splits.exists():
            raise FileNotFoundError(
                f"{splits} was not found - please download it from the dataset page."
            )
        wanted = "1" if split == "train" else "2"
        images, flows = listed(folder / "data", "*.ppm"), listed(folder / "data", "*.flo")
        for number, part in enumerate(splits.read_text().split()[: len(flows)]):
            if part == wanted:
                self._flow_list.append(flows[number])
                self._image_list.append(images[2 * number : 2 * number + 2])


class FlyingThings3D(FlowDataset):
    """Things that fly through space: Mayer et al. 2016. Arguments as for FlowDataset, and:

    Args:
        split: "train" or "test".
        pass_name: "clean", "final" with blur, or "both".
        camera: "left", "right" or "both".
    """

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        pass_name: str = "clean",
        camera: str = "left",
        transforms: Transform = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", ("train", "test"))
        verify_str_arg(pass_name, "pass_name", ("clean", "final", "both"))
        verify_str_arg(camera, "camera", ("left", "right", "both"))
        folder = Path(self.root) / "FlyingThings3D"
        passes = ("clean", "final") if pass_name == "both" else (pass_name,)
        cameras = ("left", "right") if camera == "both" else (camera,)
        for name, side, direction in itertools.product(
            passes, cameras, ("into_future", "into_past")
        ):
            scenes = listed(folder / f"frames_{name}pass" / split.upper(), "*/*")
            motions = listed(folder / "optical_flow" / split.upper(), "*/*")
            self._check_found(scenes and motions)
            for scene, motion in zip(scenes, motions, strict=True):
                images = listed(Path(scene) / side, "*.png")
                flows = listed(Path(motion) / direction / side, "*.pfm")
                if direction == "into_future":
                    self._add_successive(images[: len(flows)])
                    self._flow_list += flows[:-1]
                else:
                    pairs = itertools.pairwise(images[: len(flows)])
                    self._image_list += [[second, first] for first, second in pairs]
                    self._flow_list += flows[1:]

    def _read_flow(self, file_name: str) -> np.ndarray:
        return read_pfm(file_name)


class HD1K(FlowDataset):
    """Streets of Hildesheim: Kondermann et al. 2016. Arguments as for FlowDataset, and:

    Args:
        split: "train" or "test", which has no targets.
    """

    _has_builtin_flow_mask = True

    def __init__(
        self,
        root: AnyPath,
        split: str = "train",
        transforms: Transform = None,
        loader: Loader = default_loader,
    ) -> None:
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", ("train", "test"))
        folder = Path(self.root) / "hd1k"
        if split == "train":
            for number in range(36):  # films, whose images must not be paired
                flows = listed(folder / "hd1k_flow_gt" / "flow_occ", f"{number:06d}_*.png")
                images = listed(folder / "hd1k_input" / "image_2", f"{number:06d}_*.png")
                self._add_successive(images[: len(flows)])
                self._flow_list += flows[:-1]
        else:
            images = folder / "hd1k_challenge" / "image_2"
            pairs = zip(listed(images, "*10.png"), listed(images, "*11.png"), strict=True)
            self._image_list = [[*pair] for pair in pairs]
        self._check_found(self._image_list)

    def _read_flow(self, file_name: str) -> tuple[np.ndarray, np.ndarray]:
        return read_png_flow(file_name)
