"""Steps of optimizers as functions, with the state in lists. What ``torch.optim._functional`` has."""

from __future__ import annotations

from .._tensor import Tensor
from ._single import run
from .adadelta import adadelta as adadelta
from .adagrad import adagrad as adagrad
from .adam import adam as adam
from .adamax import adamax as adamax
from .adamw import adamw as adamw
from .asgd import asgd as asgd
from .nadam import nadam as nadam
from .radam import radam as radam
from .rmsprop import rmsprop as rmsprop
from .rprop import rprop as rprop
from .sgd import sgd as sgd
from .sparse_adam import SparseAdam


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """Update the parameters once, as `SparseAdam` does, by sparse gradients; ``state_steps`` count this step already."""
    group = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "maximize": maximize}
    lists = {"step": [step - 1 for step in state_steps], "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    run(SparseAdam, group, params, grads, lists)
