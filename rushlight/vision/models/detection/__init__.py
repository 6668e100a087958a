"""Models that find things in images, with masks or keypoints of them."""

# ruff: noqa: F403

from rushlight.vision.models.detection.faster_rcnn import *
from rushlight.vision.models.detection.fcos import *
from rushlight.vision.models.detection.keypoint_rcnn import *
from rushlight.vision.models.detection.mask_rcnn import *
from rushlight.vision.models.detection.retinanet import *
from rushlight.vision.models.detection.ssd import *
from rushlight.vision.models.detection.ssdlite import *
