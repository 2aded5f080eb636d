"""`torch.__future__`: how modules change their parameters, where an older way is the default."""

from __future__ import annotations

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions of a module (`module.double()`) assign new parameters instead of changing the old ones' data."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` has set."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and `load_state_dict` of a module swap parameters with new ones by `torch.utils.swap_tensors`."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` has set."""
    return _swap
