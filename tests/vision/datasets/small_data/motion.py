"""Pairs of pictures with the motion or the disparity between them."""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from vision.datasets.small_data.writing import Case, builder, flo, pfm, picture, text

_FILTERS = {
    0: lambda left, above, corner: 0,
    1: lambda left, above, corner: left,
    2: lambda left, above, corner: above,
    3: lambda left, above, corner: (left + above) // 2,
    4: lambda left, above, corner: min(
        (left, above, corner), key=lambda value: abs(left + above - corner - value)
    ),
}


def png16(values: np.ndarray) -> bytes:
    """A PNG of (height, width, 3) uint16, whose rows take turns with the five filters."""
    height, width, _ = values.shape
    data = values.astype(">u2").view(np.uint8).reshape(height, width * 6).astype(int)
    rows = []
    for y, row in enumerate(data):
        above = data[y - 1] if y else np.zeros_like(row)
        guess = _FILTERS[y % 5]
        row = [
            (
                int(row[x])
                - guess(
                    int(row[x - 6]) if x >= 6 else 0,
                    int(above[x]),
                    int(above[x - 6]) if x >= 6 else 0,
                )
            )
            % 256
            for x in range(width * 6)
        ]
        rows.append(bytes([y % 5, *row]))

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    packed = zlib.compress(b"".join(rows))
    parts = [chunk(b"IDAT", packed[start : start + 40]) for start in range(0, len(packed), 40)]
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(parts) + chunk(b"IEND", b"")


def motion_png(path: Path, seed: int) -> list[Any]:
    """Writes motion as KITTI does; returns it and its mask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.random.default_rng(seed).integers(0, 2**16, (7, 6, 3), dtype=np.uint16)
    values[..., 2] %= 2
    path.write_bytes(png16(values))
    flow = (values[..., :2].astype(np.float32) - 2**15) / 64
    return [flow.transpose(2, 0, 1).tolist(), (values[..., 2] == 1).tolist()]


def motion(number: float) -> list[Any]:
    return np.full((2, 4, 5), number).tolist()


def upside_down(number: float, channels: int) -> np.ndarray:
    """What a file of writing.pfm holds."""
    values = np.full((channels, 4, 5), number)
    values[:, 3, 0] = -7
    return values


@builder
def sintel(root: Path) -> Iterator[Case]:
    base = root / "Sintel"
    for name in ("clean", "final"):
        for number in range(3):
            picture(base / "training" / name / "alley" / f"{number}.png", number)
            picture(base / "test" / name / "cave" / f"{number}.png", number)
    for number in range(2):
        flo(base / "training" / "flow" / "alley" / f"{number}.flo", number + 5)
    samples = [([0, 1], [motion(5)]), ([1, 2], [motion(6)])]
    yield Case("Sintel", {}, samples)
    yield Case("Sintel", {"pass_name": "both"}, samples * 2)
    yield Case("Sintel", {"split": "test"}, [([0, 1], [None]), ([1, 2], [None])])


@builder
def kitti_flow(root: Path) -> Iterator[Case]:
    expected: list[tuple[Any, Any]] = []
    for number in range(2):
        for part in ("training", "testing"):
            folder = root / "KittiFlow" / part / "image_2"
            picture(folder / f"{number:06d}_10.png", number)
            picture(folder / f"{number:06d}_11.png", number + 7)
        flow = root / "KittiFlow" / "training" / "flow_occ" / f"{number:06d}_10.png"
        expected.append(([number, number + 7], motion_png(flow, number)))
    yield Case("KittiFlow", {}, expected)
    yield Case("KittiFlow", {"split": "test"}, [(pair, [None, None]) for pair, _ in expected])


@builder
def flying_chairs(root: Path) -> Iterator[Case]:
    data = root / "FlyingChairs" / "data"
    for number in range(3):
        picture(data / f"{number:05d}_img1.ppm", number)
        picture(data / f"{number:05d}_img2.ppm", number + 7)
        flo(data / f"{number:05d}_flow.flo", number)
    text(root / "FlyingChairs" / "FlyingChairs_train_val.txt", "1\n2\n1\n")
    yield Case("FlyingChairs", {}, [([0, 7], [motion(0)]), ([2, 9], [motion(2)])])
    yield Case("FlyingChairs", {"split": "val"}, [([1, 8], [motion(1)])])


@builder
def flying_things(root: Path) -> Iterator[Case]:
    base = root / "FlyingThings3D"
    for side in ("left", "right"):
        for number in range(3):
            for name in ("clean", "final"):
                path = base / f"frames_{name}pass" / "TRAIN" / "A" / "0000" / side
                picture(path / f"{number}.png", number)
            for offset, way in ((10, "into_future"), (20, "into_past")):
                path = base / "optical_flow" / "TRAIN" / "A" / "0000" / way / side
                pfm(path / f"{number}.pfm", number + offset)
    flows = {n: [upside_down(n, 2).tolist()] for n in (10, 11, 21, 22)}
    ahead = [([0, 1], flows[10]), ([1, 2], flows[11])]
    back = [([1, 0], flows[21]), ([2, 1], flows[22])]
    yield Case("FlyingThings3D", {}, ahead + back)
    yield Case("FlyingThings3D", {"camera": "both", "pass_name": "both"}, (ahead + back) * 4)


@builder
def hd1k(root: Path) -> Iterator[Case]:
    base = root / "hd1k"
    expected: list[tuple[Any, Any]] = []
    for film in range(2):
        for number in range(2):
            picture(base / "hd1k_input" / "image_2" / f"{film:06d}_{number:04d}.png", number)
            flow = base / "hd1k_flow_gt" / "flow_occ" / f"{film:06d}_{number:04d}.png"
            read = motion_png(flow, 2 * film + number)
            if number == 0:
                expected.append(([0, 1], read))
    picture(base / "hd1k_challenge" / "image_2" / "000001_10.png", 3)
    picture(base / "hd1k_challenge" / "image_2" / "000001_11.png", 4)
    yield Case("HD1K", {}, expected)
    yield Case("HD1K", {"split": "test"}, [([3, 4], [None, None])])


# Two cameras


def gray16(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((4, 5), value, np.uint16)).save(path)


def disparity(value: float) -> list[Any]:
    return np.full((1, 4, 5), value).tolist()


@builder
def carla_stereo(root: Path) -> Iterator[Case]:
    folder = root / "carla-highres" / "trainingF" / "street"
    for side in range(2):
        picture(folder / f"im{side}.png", side + 1)
        pfm(folder / f"disp{side}GT.pfm", 3 + side)
    yield Case("CarlaStereo", {}, [([1, 2], [abs(upside_down(3, 1)).tolist()])])


@builder
def kitti_stereo(root: Path) -> Iterator[Case]:
    for name, folders, maps in (
        ("Kitti2012", ("colored_0", "colored_1"), ("disp_noc",)),
        ("Kitti2015", ("image_2", "image_3"), ("disp_occ_0", "disp_occ_1")),
    ):
        for part in ("training", "testing"):
            for side, folder in enumerate(folders):
                picture(root / name / part / folder / "000000_10.png", side + 1)
        for number, folder in enumerate(maps):
            gray16(root / name / "training" / folder / "000000_10.png", 640 + number)
        yield Case(f"{name}Stereo", {}, [([1, 2], [disparity(2.5), None])])
        yield Case(f"{name}Stereo", {"split": "test"}, [([1, 2], [None, None])])


@builder
def middlebury(root: Path) -> Iterator[Case]:
    for split, scene in (
        ("train", "Piano-perfect"),
        ("train", "Piano-imperfect"),
        ("test", "Hoops"),
    ):
        folder = root / "Middlebury2014" / split / scene
        for side in range(2):
            picture(folder / f"im{side}.png", side + 1)
            if split == "train":
                pfm(folder / f"disp{side}.pfm", float("inf"))
    read = [abs(upside_down(0, 1)).tolist(), (upside_down(0, 1)[0] != 0).tolist()]
    yield Case("Middlebury2014Stereo", {}, [([1, 2], read)])
    yield Case("Middlebury2014Stereo", {"calibration": "both"}, [([1, 2], read)] * 2)
    none = {"calibration": None, "split": "test"}
    yield Case("Middlebury2014Stereo", none, [([1, 2], [None, None])])


@builder
def other_stereo(root: Path) -> Iterator[Case]:
    for kind in ("shapenet", "reflective", "tree", "hole"):
        for side, name in enumerate(("left", "right")):
            picture(root / "CREStereo" / kind / f"0_{name}.jpg", side + 1)
            gray16(root / "CREStereo" / kind / f"0_{name}.disp.png", 80)
    yield Case("CREStereo", {}, [([1, 2], [disparity(2.5), None])] * 4)
    settings = {"camera_settings": [{"intrinsic_settings": {"fx": 700.0}}]}
    for part in ("single/can/kitchen", "mixed/kitchen"):
        folder = root / "FallingThings" / part
        for side, name in enumerate(("left", "right")):
            picture(folder / f"0.{name}.jpg", side + 1)
            gray16(folder / f"0.{name}.depth.png", 1000)
        text(folder / "_camera_settings.json", json.dumps(settings))
    yield Case("FallingThingsStereo", {"variant": "both"}, [([1, 2], [disparity(420)])] * 2)
    for variant, part in (("Monkaa", "a"), ("Driving", "a/b/c"), ("FlyingThings3D", "a/b/c")):
        base = root / "SceneFlow" / variant
        for side, name in enumerate(("left", "right")):
            for way in ("clean", "final"):
                picture(base / f"frames_{way}pass" / part / name / "0.png", side + 1)
            pfm(base / "disparity" / part / name / "0.pfm", 4, channels=1)
        arguments = {"variant": variant, "pass_name": "both"}
        yield Case("SceneFlowStereo", arguments, [([1, 2], [abs(upside_down(4, 1)).tolist()])] * 2)


@builder
def more_stereo(root: Path) -> Iterator[Case]:
    base = root / "Sintel" / "training"
    for kind in ("final_left", "final_right", "clean_left", "clean_right"):
        picture(base / kind / "alley" / "0.png", 1)
    picture(base / "disparities" / "alley" / "0.png", 64)
    for value, kind in enumerate(("occlusions", "outofframe")):
        picture(base / kind / "alley" / "0.png", value, mode="L")
    value = 64 * 4 + 128 / 2**6 + 191 / 2**14
    read = [disparity(value), np.zeros((4, 5), bool).tolist()]
    yield Case("SintelStereo", {"pass_name": "both"}, [([1, 1], read)] * 2)
    for split in ("train", "test"):
        for side, name in enumerate(("left", "right")):
            picture(root / "InStereo2k" / split / "000" / f"{name}.png", side + 1)
            gray16(root / "InStereo2k" / split / "000" / f"{name}_disp.png", 512)
        yield Case("InStereo2k", {"split": split}, [([1, 2], [disparity(0.5)])])
    for split, folder in (("train", "two_view_training"), ("test", "two_view_test")):
        for side in range(2):
            picture(root / "ETH3D" / folder / "hall" / f"im{side}.png", side + 1)
        if split == "train":
            pfm(root / "ETH3D" / f"{folder}_gt" / "hall" / "disp0GT.pfm", 2)
            picture(root / "ETH3D" / f"{folder}_gt" / "hall" / "mask0nocc.png", 255, mode="L")
    read = [abs(upside_down(2, 1)).tolist(), np.ones((4, 5), bool).tolist()]
    yield Case("ETH3DStereo", {}, [([1, 2], read)])
    yield Case("ETH3DStereo", {"split": "test"}, [([1, 2], [None, None])])
