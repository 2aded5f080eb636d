"""Steps of optimizers on the arrays of one parameter, all in one pass.

numpy has no way to do that, so without the C extension each of these declines by returning False, and the optimizer computes with tensors.
"""

from __future__ import annotations

from numpy import ndarray

from ...._dispatch import native


@native.kernel
def adam_step(
    param: ndarray,
    grad: ndarray,
    mean: ndarray,
    square: ndarray,
    beta1: float,
    beta2: float,
    eps: float,
    step_size: float,
    root: float,
    shrink: float,
    decay: float,
) -> bool:
    """Adam in place: whether it was done.

    decay: how much of the parameter is added to the gradient. shrink: by what the parameter is multiplied. root: of the second bias
    correction.
    """
    return False


@native.kernel
def sgd_step(
    param: ndarray,
    grad: ndarray,
    buffer: ndarray | None,
    lr: float,
    momentum: float,
    fresh: float,
    decay: float,
    nesterov: bool,
) -> bool:
    """Gradient descent in place: whether it was done. fresh: the share of the gradient in the buffer."""
    return False
