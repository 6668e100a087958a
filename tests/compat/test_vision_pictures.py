"""Decoded and encoded pictures, drawings and grids equal torchvision's."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from compat.vision_values import OURS, PIL, THEIRS, Library

# What torchvision says of all its decoders and encoders since 0.29.
pytestmark = pytest.mark.filterwarnings("ignore:The image decoding and encoding:DeprecationWarning")
RNG = np.random.default_rng(0)
SLOPE = np.add.outer(np.arange(37) * 3, np.arange(41) * 2)[..., None]
PIXELS = (SLOPE + RNG.integers(0, 30, (37, 41, 3))).astype(np.uint8)
PICTURE = PIL.fromarray(PIXELS)
TURNED = PIL.Exif()
TURNED[0x0112] = 6


def encoded(image: Any, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format=format, **options)
    return file.getvalue()


FILES = {
    "png": encoded(PICTURE, "PNG"),
    "png gray": encoded(PICTURE.convert("L"), "PNG"),
    "png alpha": encoded(PICTURE.convert("RGBA"), "PNG"),
    "png gray alpha": encoded(PICTURE.convert("LA"), "PNG"),
    "png palette": encoded(PICTURE.convert("P"), "PNG"),
    "png bits": encoded(PICTURE.convert("1"), "PNG"),
    "png deep": encoded(PIL.fromarray(PIXELS[..., 0].astype(np.uint16) * 257), "PNG"),
    "png turned": encoded(PICTURE, "PNG", exif=TURNED),
    "jpeg": encoded(PICTURE, "JPEG"),
    "jpeg gray": encoded(PICTURE.convert("L"), "JPEG"),
    "jpeg turned": encoded(PICTURE, "JPEG", exif=TURNED),
    "webp": encoded(PICTURE, "WEBP"),
    "webp alpha": encoded(PICTURE.convert("RGBA"), "WEBP"),
    "gif": encoded(PICTURE, "GIF"),
    "gif frames": encoded(PICTURE, "GIF", save_all=True, append_images=[PICTURE.rotate(90)]),
}
# torchvision leaves the colors of WebP, the alpha of JPEG and of palettes and bits aside.
GRAY_OF_WEBP = {("webp", "GRAY"), ("webp alpha", "GRAY")}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mode", ["UNCHANGED", "GRAY", "RGB"])
@pytest.mark.parametrize("turn", [False, True])
def test_decoded_pictures_agree(name: str, mode: str, turn: bool) -> None:
    if (name, mode) in GRAY_OF_WEBP:
        pytest.skip("torchvision has no gray of WebP")
    results = []
    for library in (OURS, THEIRS):
        data = library.torch.frombuffer(bytearray(FILES[name]), dtype=library.torch.uint8)
        decode = library.module("io").decode_image
        results.append(decode(data, mode, apply_exif_orientation=turn).numpy())
    assert results[0].dtype == results[1].dtype
    np.testing.assert_allclose(results[0].astype(int), results[1].astype(int), atol=1)


@pytest.mark.parametrize("quality", [1, 75, 100])
def test_encoded_jpegs_agree(quality: int) -> None:
    results = []
    for library in (OURS, THEIRS):
        vio = library.module("io")
        image = library.torch.from_numpy(PIXELS.transpose(2, 0, 1).copy())
        results.append(vio.decode_jpeg(vio.encode_jpeg(image, quality)).numpy())
    np.testing.assert_array_equal(results[0], results[1])


def image_of(library: Library, float_: bool = False) -> Any:
    image = library.torch.from_numpy(PIXELS.transpose(2, 0, 1).copy())
    return image.float() / 255 if float_ else image


DRAWINGS = {
    "boxes": lambda torch, utils, image: utils.draw_bounding_boxes(
        image, torch.tensor([[2, 3, 20, 15], [10, 10, 30, 30]]), ["cat", "dog"], width=2
    ),
    "filled": lambda torch, utils, image: utils.draw_bounding_boxes(
        image, torch.tensor([[2, 3, 20, 15]]), ["cat"], "red", fill=True, fill_labels=True
    ),
    "rotated": lambda torch, utils, image: utils.draw_bounding_boxes(
        image, torch.tensor([[20, 5, 35, 20, 20, 35, 5, 20]]), colors=[(1, 2, 3)]
    ),
    "gray": lambda torch, utils, image: utils.draw_bounding_boxes(
        image[:1], torch.tensor([[2, 3, 20, 15]])
    ),
    "masks": lambda torch, utils, image: utils.draw_segmentation_masks(
        image, torch.stack([image[0] > image[1], image[1] > image[2]]), alpha=0.7
    ),
    "keypoints": lambda torch, utils, image: utils.draw_keypoints(
        image, torch.tensor([[[3.0, 4.0], [20.0, 30.0]]]), [(0, 1)], "blue", radius=3
    ),
    "grid": lambda torch, utils, image: utils.make_grid(
        [image / 255, image / 300, image / 200], nrow=2, normalize=True, scale_each=True
    ),
    "flow": lambda torch, utils, image: utils.flow_to_image(image[:2] / 100 - 1.0),
}


@pytest.mark.parametrize("name", DRAWINGS)
@pytest.mark.parametrize("float_", [False, True])
def test_drawings_agree(name: str, float_: bool) -> None:
    results = [
        DRAWINGS[name](library.torch, library.module("utils"), image_of(library, float_))
        for library in (OURS, THEIRS)
    ]
    ours, theirs = (result.numpy() for result in results)
    assert ours.dtype == theirs.dtype
    close = np.isclose(ours.astype(float), theirs.astype(float), atol=1 if name == "flow" else 1e-5)
    # Dashes end on other pixels where their length is rounded.
    assert close.mean() > (0.99 if name == "rotated" else 0.9999)
