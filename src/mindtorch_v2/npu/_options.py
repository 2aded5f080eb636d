"""Options of torch_npu: precision of products, formats, compilation, deterministic levels, time limits.

Operators are functions of aclnn, which are compiled already and take tensors in the formats of PyTorch. So options that choose between ways which CANN's
graphs have (compilation when an operator is first called, private formats) take the value that is true here, and a warning says so of any other one.
"""

from __future__ import annotations

import enum
import functools
import warnings
from collections.abc import Mapping
from typing import Any

from .._backends.npu import precision, runtime as _runtime
from .._determinism import SETTINGS as _DETERMINISM
from .._state import forget_rules
from .._warnings import warn_once

_MODES = ("allow_fp32_to_fp16", "must_keep_origin_dtype")
_VALUES: dict[str, tuple[str, ...] | None] = {
    "ACL_PRECISION_MODE": _MODES,
    "ACL_OP_SELECT_IMPL_MODE": ("high_performance", "high_precision"),
    "ACL_AICORE_NUM": tuple(str(number) for number in range(1, 33)),
    "ACL_OPTYPELIST_FOR_IMPLMODE": None,
    "ACL_OP_DEBUG_LEVEL": ("0", "1", "2", "3", "4"),
    "ACL_DEBUG_DIR": None,
    "ACL_OP_COMPILER_CACHE_MODE": ("disable", "enable", "force"),
    "ACL_OP_COMPILER_CACHE_DIR": None,
    "MM_BMM_ND_ENABLE": ("enable", "disable"),
    "ALLOW_INTERNAL_FORMAT": ("enable", "disable"),
    "ALLOW_CONV_HF32": ("enable", "disable"),
    "ALLOW_MATMUL_HF32": ("enable", "disable"),
    "jitCompile": ("enable", "disable"),
}
"""Which values an option takes; None for any."""

_options: dict[str, str] = {}
_compatible = False


class CubeMathType(enum.IntEnum):
    """How products on the cube unit compute, as aclnn's functions take it."""

    KEEP_DTYPE = 0
    ALLOW_FP32_DOWN_PRECISION = 1
    USE_FP16 = 2
    USE_HF32 = 3


def set_option(option: Mapping[str, Any]) -> None:
    """Set options by their names: `set_option({"ALLOW_MATMUL_HF32": "enable"})`.

    TypeError for another thing than a dict, ValueError for an option that torch_npu does not know, and for a value out of its list. Options of the compiler
    of operators are kept and have no effect: functions of aclnn are compiled already.
    """
    if not isinstance(option, Mapping):
        raise TypeError("npu option must be a dict.")
    for name, value in option.items():
        if name not in _VALUES:
            raise ValueError(f"unknown option {name!r}; known are {', '.join(_VALUES)}")
        values = _VALUES[name]
        if values is not None and str(value) not in values:
            raise ValueError(f"value of {name} should be in {list(values)} but got {value}")
    for name, value in option.items():
        text = _options[name] = str(value)
        if name == "ALLOW_MATMUL_HF32":
            matmul.allow_hf32 = text == "enable"
        elif name == "ALLOW_CONV_HF32":
            conv.allow_hf32 = text == "enable"
        elif name == "ALLOW_INTERNAL_FORMAT":
            config.allow_internal_format = text == "enable"
        elif name == "jitCompile":
            set_compile_mode(text == "enable")
        elif name == "MM_BMM_ND_ENABLE":
            set_mm_bmm_format_nd(text == "enable")


def set_compile_mode(jit_compile: bool = False) -> None:
    """Choose binaries of operators (False), which is all there is: a warning says so of True."""
    if jit_compile:
        warn_once(
            "torch.npu.set_compile_mode(jit_compile=True) has no effect: operators are functions of aclnn, which are not compiled when they are called"
        )


def is_jit_compile_false() -> bool:
    """True: operators are not compiled when they are called."""
    return True


def set_mm_bmm_format_nd(is_nd: bool = True) -> None:
    """Choose the format of products' operands: ND (True), which is all there is; a warning says so of False."""
    if not is_nd:
        warn_once("torch.npu.set_mm_bmm_format_nd(False) has no effect: tensors have no private formats")


def get_mm_bmm_format_nd() -> bool:
    """True: products take tensors as they are."""
    return True


class _Config:
    """`torch.npu.config`."""

    @property
    def allow_internal_format(self) -> bool:
        """False: tensors have no private formats. Setting True warns and changes nothing."""
        return False

    @allow_internal_format.setter
    def allow_internal_format(self, value: bool) -> None:
        if value:
            warn_once("torch.npu.config.allow_internal_format = True has no effect: tensors have no private formats")


class _Precision:
    """`torch.npu.matmul` and `torch.npu.conv`."""

    def __init__(self, which: str) -> None:
        self._which = which

    @property
    def allow_hf32(self) -> bool:
        """Whether float32 products may be computed in HF32, where the chip has it."""
        return precision.ALLOW_HF32[self._which]

    @allow_hf32.setter
    def allow_hf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"allow_hf32 must be a bool, not {type(value).__name__}")
        precision.ALLOW_HF32[self._which] = value
        forget_rules()  # and plans of launches


config = _Config()
matmul = _Precision("matmul")
conv = _Precision("conv")


def use_compatible_impl(is_enable: bool) -> None:
    """Ask for operators that behave as PyTorch's where torch_npu's do not; they always do here."""
    global _compatible
    _compatible = bool(is_enable)


def are_compatible_impl_enabled() -> bool:
    """What `use_compatible_impl` was told; False before."""
    return _compatible


def set_op_timeout_ms(timeout: int) -> None:
    """Let CANN end operators that run longer, of a launch made after this; whole seconds, rounded up. RuntimeError without an NPU."""
    if isinstance(timeout, bool) or not isinstance(timeout, int) or timeout < 0:
        raise ValueError(f"the timeout must be a number of milliseconds that is not negative, got {timeout!r}")
    runtime = _runtime.get_runtime()
    runtime.current_device()
    runtime.call("aclrtSetOpExecuteTimeOut", -(-timeout // 1000), detail=f"{timeout} ms")


# --------------------------------------------------------------------------------------------------------------- deterministic


def set_deterministic_level(level: int) -> None:
    """0: any algorithms; 1 and above: deterministic ones, as `torch.use_deterministic_algorithms(True)`. ValueError for a negative level."""
    from .._api.functions.settings import use_deterministic_algorithms

    if isinstance(level, bool) or not isinstance(level, int) or level < 0:
        raise ValueError(f"the level must be a whole number that is not negative, got {level!r}")
    if _DETERMINISM.wanted != (level > 0):
        warnings.warn(
            f"torch.npu.set_deterministic_level({level}) calls torch.use_deterministic_algorithms({level > 0})",
            stacklevel=2,
        )
        use_deterministic_algorithms(level > 0)


def enable_deterministic_with_backward(tensor: Any) -> Any:
    """The tensor, with deterministic algorithms from here on, and in the backward pass until it comes to here."""
    return _switch(tensor, True)


def disable_deterministic_with_backward(tensor: Any) -> Any:
    """The tensor, without deterministic algorithms from here on, and in the backward pass with them when it comes to here."""
    return _switch(tensor, False)


def _switch(tensor: Any, mode: bool) -> Any:
    return _switches()[mode].apply(tensor)


@functools.cache
def _switches() -> tuple[Any, Any]:
    """The functions that switch deterministic algorithms off and on, and back again on the way back."""
    from .._api.functions.settings import use_deterministic_algorithms
    from ..autograd import Function

    def made(mode: bool) -> type:
        class Switch(Function):
            @staticmethod
            def forward(ctx: Any, tensor: Any) -> Any:
                use_deterministic_algorithms(mode)
                return tensor.view_as(tensor)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                use_deterministic_algorithms(not mode)
                return grads[0]

        return Switch

    return made(False), made(True)
