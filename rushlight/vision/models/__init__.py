"""Models for images and videos, with torchvision's names, state_dicts and published weights.

A family of models is a file: its blocks, its network, its weights and a short builder for each
size. What all builders share stands in _api.py.
"""

# ruff: noqa: F401, F403
from typing import Any

from rushlight import _later
from rushlight.vision.models import detection, optical_flow, segmentation, video
from rushlight.vision.models._api import (
    Weights,
    WeightsEnum,
    get_model,
    get_model_builder,
    get_model_weights,
    get_weight,
    list_models,
)
from rushlight.vision.models.alexnet import *
from rushlight.vision.models.convnext import *
from rushlight.vision.models.densenet import *
from rushlight.vision.models.efficientnet import *
from rushlight.vision.models.googlenet import *
from rushlight.vision.models.inception import *
from rushlight.vision.models.maxvit import *
from rushlight.vision.models.mnasnet import *
from rushlight.vision.models.mobilenet import *
from rushlight.vision.models.regnet import *
from rushlight.vision.models.resnet import *
from rushlight.vision.models.shufflenetv2 import *
from rushlight.vision.models.squeezenet import *
from rushlight.vision.models.swin_transformer import *
from rushlight.vision.models.vgg import *
from rushlight.vision.models.vision_transformer import *

__getattr__ = _later.imports(__name__, ("quantization",))
