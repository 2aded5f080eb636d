"""``LRScheduler``, the base of schedules, which changes the learning rates of an optimizer's groups."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..._tensor import Tensor
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_ORDER_ADVICE = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def group_values(optimizer: Optimizer, key: str) -> list[Any]:
    """The option ``key`` of all groups; tensors are copied."""
    return [_apart(group[key]) for group in optimizer.param_groups]


def _apart(value: Any) -> Any:
    return value.clone() if value.__class__ is not float and isinstance(value, Tensor) else value


def set_group_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Set an option of a group; one that is a tensor is changed in place."""
    before = group[key]
    if before.__class__ is not float and isinstance(before, Tensor):
        before.fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def one_for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """``value`` as a list with an entry for each group. Raises ValueError for a wrong length."""
    count = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
                f"param_groups has {count}."
            )
    else:
        value = [value] * count
    return [_apart(entry) for entry in value]


def check_optimizer(optimizer: Any) -> None:
    """Raise TypeError for what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _track_steps(optimizer: Any) -> None:
    """Let the optimizer remember that its step was called, so that a wrong order can be told."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    # Weak, so that optimizer and wrapper do not keep each other alive.
    owner = ref(optimizer)
    function = optimizer.step.__func__

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        self: Any = owner()
        self._opt_called = True
        return function.__get__(self, type(self))(*args, **kwargs)

    step: Any = wrapper
    step._wrapped_by_lr_sched = True
    optimizer.step = step


class LRScheduler:
    """Base of schedules: subclasses define :meth:`get_lr`.

    ``last_epoch`` is -1 for a new schedule, which takes the present rates as ``initial_lr`` of the groups; otherwise they
    must be there already (KeyError).
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    if TYPE_CHECKING:
        _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                rate = group["lr"]
                group.setdefault("initial_lr", rate.clone() if isinstance(rate, Tensor) else rate)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{position}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer "
                    "state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs: list[Any] = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _track_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """The step that sets the first rates."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the attributes of a state dict."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that were set last, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates of the present epoch, one for each group."""
        raise NotImplementedError

    def _warn_unless_stepping(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or, by the former way, to ``epoch``) and set its rates."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. " + _ORDER_ADVICE,
                    UserWarning,
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
                    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
                    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
                    "schedule. " + _ORDER_ADVICE,
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        if epoch is None:
            self.last_epoch += 1
            self._update_rates(self.get_lr)
        else:
            self.last_epoch = epoch
            self._update_rates(getattr(self, "_get_closed_form_lr", self.get_lr))

    def _update_rates(self, get: Callable[[], list[Any]]) -> None:
        self._get_lr_called_within_step = True
        try:
            rates = get()
        finally:
            self._get_lr_called_within_step = False
        self._set_rates(rates)

    def _set_rates(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_group_value(group, "lr", rate)
        self._last_lr = group_values(self.optimizer, "lr")

    def _present(self) -> list[Any]:
        """The rates as they are."""
        return group_values(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        """The present rates times ``factor``."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]
