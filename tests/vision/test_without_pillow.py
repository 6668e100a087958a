"""Tensors are transformed where Pillow is not installed; what needs it says so."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["PIL"] = None  # importing it fails
import rushlight as torch
from rushlight.vision import io, utils
from rushlight.vision.transforms import v2, RandomCrop

image = torch.zeros(3, 8, 8, dtype=torch.uint8)
assert v2.Compose([v2.Resize(4), v2.RandomHorizontalFlip(), v2.ToImage()])(image).shape == (3, 4, 4)
assert RandomCrop(4)(image).shape == (3, 4, 4)
assert utils.make_grid([image, image]).ndim == 3
try:
    io.encode_png(image)
except ImportError as error:
    print(error)
"""


def test_only_pictures_need_pillow() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    assert "encode_png: Pillow is not installed" in run.stdout
    assert "pip install pillow" in run.stdout
