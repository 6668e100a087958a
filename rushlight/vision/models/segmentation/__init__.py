"""Models that give each pixel a class."""

# ruff: noqa: F403

from rushlight.vision.models.segmentation.deeplabv3 import *
from rushlight.vision.models.segmentation.fcn import *
from rushlight.vision.models.segmentation.lraspp import *
