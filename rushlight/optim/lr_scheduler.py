"""Schedulers of the learning rate.

Names only; the base class is in _scheduler.py, the schedules in the files beside it.
"""

from rushlight.optim._compound_schedules import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from rushlight.optim._cyclic_schedules import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from rushlight.optim._scheduler import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from rushlight.optim._scheduler import LRScheduler
from rushlight.optim._schedules import (
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
