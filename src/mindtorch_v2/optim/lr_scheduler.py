"""Schedules of learning rates. What ``torch.optim.lr_scheduler`` has."""

from __future__ import annotations

from ._schedules.base import EPOCH_DEPRECATION_WARNING, LRScheduler
from ._schedules.compound import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from ._schedules.cyclic import CyclicLR, OneCycleLR
from ._schedules.simple import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "EPOCH_DEPRECATION_WARNING",
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

# The former name of the base; programs import it, and Optimizer, from here.
_LRScheduler = LRScheduler
_COMPATIBLE = (Optimizer,)
