"""Models that tell where each pixel of an image went in the next one."""

# ruff: noqa: F403

from rushlight.vision.models.optical_flow.raft import *
