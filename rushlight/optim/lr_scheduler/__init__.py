"""Schedulers of the learning rate.

Names only; the base class is in scheduler.py, the schedules in the files beside it.
"""

from rushlight.optim.lr_scheduler.compound import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from rushlight.optim.lr_scheduler.cyclic import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from rushlight.optim.lr_scheduler.scheduler import (
    EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING,
)
from rushlight.optim.lr_scheduler.scheduler import LRScheduler
from rushlight.optim.lr_scheduler.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from rushlight.optim.optimizer import Optimizer as Optimizer

_LRScheduler = LRScheduler  # its name in older programs

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
