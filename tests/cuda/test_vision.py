"""Transforms of images and boxes on CUDA give what they give on the CPU, and stay there."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.vision import tv_tensors as tv
from rushlight.vision.transforms import v2
from rushlight.vision.transforms.v2 import functional as F

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU or shim")

CORNERS = ([[0, 0], [15, 0], [15, 11], [0, 11]], [[1, 1], [14, 2], [13, 10], [2, 9]])
CALLS = {
    "resize": lambda x: F.resize(x, [6, 9]),
    "pad": lambda x: F.pad(F.crop(x, -1, 2, 9, 9), [1, 2], fill=1),
    "rotate": lambda x: F.rotate(x, 20, expand=True),
    "affine": lambda x: F.affine(x, 20, [1, 2], 1.1, [3, 4], "bilinear", fill=2),
    "perspective": lambda x: F.perspective(x, *CORNERS),
    "elastic": lambda x: F.elastic(x, torch.full((1, 12, 16, 2), 0.05)),
    "hue": lambda x: F.adjust_hue(x, 0.2),
    "contrast": lambda x: F.adjust_contrast(x, 1.3),
    "equalize": lambda x: F.equalize(x),
    "sharpness": lambda x: F.adjust_sharpness(F.gaussian_blur(x, 3), 1.5),
    "dtype": lambda x: F.normalize(F.to_dtype(x, torch.float32, scale=True), [0.5] * 3, [0.2] * 3),
}
OF_BOXES = ("resize", "pad", "rotate", "affine", "perspective", "elastic")


@pytest.mark.parametrize("name", CALLS)
def test_images_agree(name: str) -> None:
    image = torch.randint(0, 256, (3, 12, 16), dtype=torch.uint8)
    there = CALLS[name](image.cuda())
    assert there.is_cuda
    assert (there.cpu().float() - CALLS[name](image).float()).abs().max() <= 1.001


@pytest.mark.parametrize("name", OF_BOXES)
@pytest.mark.parametrize("format", ["XYXY", "CXCYWHR"])
def test_boxes_agree(name: str, format: str) -> None:
    data = torch.tensor([[4.0, 5.0, 9.0, 10.0, 30.0][: 4 if format == "XYXY" else 5]])
    known = {"format": format, "canvas_size": (12, 16)}
    there = CALLS[name](tv.BoundingBoxes(data.cuda(), **known))
    assert there.is_cuda
    torch.testing.assert_close(
        there.as_subclass(torch.Tensor).cpu(),
        CALLS[name](tv.BoundingBoxes(data, **known)).as_subclass(torch.Tensor),
        atol=1e-3,
        rtol=1e-4,
    )


def test_batches_are_mixed_where_they_are() -> None:
    images, labels = torch.rand(4, 3, 8, 8).cuda(), torch.tensor([0, 1, 2, 0]).cuda()
    for transform in (v2.MixUp(num_classes=3), v2.CutMix(num_classes=3)):
        mixed, shares = transform(images, labels)
        assert mixed.is_cuda and shares.is_cuda
