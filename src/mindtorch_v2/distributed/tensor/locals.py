"""What runs on pieces in place of the operator, where the piece's own result is not a part or a term of the whole's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from ..placements import Partial

if TYPE_CHECKING:
    from ._strategy import Here


classes = threading.local()
"""`on` is True inside `loss_parallel`."""


def by_shape(here: Here, args: tuple) -> Any:
    """A view that keeps the elements' order: the piece in the shape of the result's."""
    return args[0].reshape(here.shape)


def embedding(here: Here, args: tuple) -> Any:
    """Rows of a table of which this rank has some: zeros for the rows of others, whose terms have them."""
    weight, indices, *_ = args
    start = here.offsets(0)[0]
    rows = weight.shape[0]
    if not rows:
        return weight.new_zeros((*indices.shape, weight.shape[1]))
    own = indices - start
    foreign = (own < 0) | (own >= rows)
    found = torch.nn.functional.embedding(own.masked_fill(foreign, 0), weight)
    return found.masked_fill(foreign.unsqueeze(-1), 0)


def mean_likelihood(here: Here, args: tuple) -> Any:
    """The mean over examples of which this rank has some: their sum over the weight of all ranks' examples."""
    total, weight = here.run((*args[:3], 2, *args[4:]))
    weight = here.summed(weight)
    return total / weight, weight


def log_softmax(here: Here, args: tuple) -> Any:
    """Logarithms of the parts of exponentials among all classes, of which this rank has some."""
    x, dim, *_ = args
    most = here.reduced(
        x.amax(dim, keepdim=True) if x.shape[dim] else x.new_full(_one(x, dim), float("-inf")), Partial("max")
    )
    shifted = x - most
    return shifted - here.reduced(shifted.exp().sum(dim, keepdim=True), Partial()).log()


def log_softmax_backward(here: Here, args: tuple) -> Any:
    """The gradient of this rank's classes."""
    grad, output, dim, *_ = args
    return grad - output.exp() * here.reduced(grad.sum(dim, keepdim=True), Partial())


def _one(x: Any, dim: int) -> list[int]:
    return [1 if number == dim % x.dim() else size for number, size in enumerate(x.shape)]


def _own_targets(here: Here, target: Any, count: int, start: int, ignore_index: int) -> tuple[Any, Any]:
    """(mask of the targets that this rank has, their places in its part)."""
    own = (target >= start) & (target < start + count) & (target != ignore_index)
    return own, (target - start).masked_fill(~own, 0)


def class_likelihood(here: Here, args: tuple) -> Any:
    """Losses of the targets that this rank has: terms."""
    x, target, weight, reduction, ignore_index = args
    count = x.shape[1]
    own, place = _own_targets(here, target, count, here.offsets(0)[1], ignore_index)
    counted = target != ignore_index
    if weight is None:
        factors = counted.to(x.dtype)
    else:
        factors = weight[target.masked_fill(~counted, 0)] * counted
    picked = x.gather(1, place.unsqueeze(1)).squeeze(1) if count else x.new_zeros(target.shape)
    losses = (-picked * factors).masked_fill(~own, 0)
    total = factors.sum()
    if reduction == 0:
        return losses, x.new_zeros(())
    return (losses.sum() / total if reduction == 1 else losses.sum()), total


def class_likelihood_backward(here: Here, args: tuple) -> Any:
    """The gradient of this rank's classes."""
    grad, x, target, weight, reduction, ignore_index, total = args
    count = x.shape[1]
    own, place = _own_targets(here, target, count, here.offsets(1)[1], ignore_index)
    factors = own.to(x.dtype) if weight is None else weight[target.masked_fill(~own, 0)] * own
    given = -(grad / total if reduction == 1 else grad) * factors
    made = x.new_zeros(x.shape)
    return made.scatter(1, place.unsqueeze(1), given.expand(target.shape).unsqueeze(1)) if count else made
