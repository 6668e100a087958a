"""MobileNet v2 and v3 under one name."""

# ruff: noqa: F403

from rushlight.vision.models import mobilenetv2, mobilenetv3
from rushlight.vision.models.mobilenetv2 import *
from rushlight.vision.models.mobilenetv3 import *

__all__ = [*mobilenetv2.__all__, *mobilenetv3.__all__]  # pyright: ignore[reportUnsupportedDunderAll]
