"""Models that classify videos (N, 3, T, H, W)."""

# ruff: noqa: F403

from rushlight.vision.models.video.mvit import *
from rushlight.vision.models.video.resnet import *
from rushlight.vision.models.video.s3d import *
from rushlight.vision.models.video.swin_transformer import *
