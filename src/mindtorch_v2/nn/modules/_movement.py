"""Changing the device, dtype or gradient flags of everything in a module."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from ..._device import placed
from ..._tensor import Tensor
from ..parameter import Parameter

if TYPE_CHECKING:
    from typing_extensions import Self

    from .module import Module


def _can_keep_identity(old: Tensor, new: Tensor) -> bool:
    """Whether ``old`` may take over the memory of ``new``: not between the meta device and a real one."""
    if torch.__future__.get_overwrite_module_params_on_conversion():
        return False
    return type(new) in (Tensor, type(old)) and (old.device.type == "meta") == (new.device.type == "meta")


def swaps() -> bool:
    """Whether new parameters take the place of the old ones by swapping."""
    return torch.__future__.get_swap_module_params_on_conversion()


class MovementMethods:
    """The part of :class:`Module` that applies functions to all its tensors."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    if TYPE_CHECKING:  # of TreeMethods

        def children(self) -> Iterator[Module]: ...

        def parameters(self, recurse: bool = True) -> Iterator[Parameter]: ...

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every parameter, gradient and buffer by ``fn`` of it; parameters keep their identity where they can."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            # Not with autograd: the result is to be a leaf as well.
            with torch.no_grad():
                applied = fn(param)
            if not isinstance(applied, Tensor):
                raise TypeError(
                    f"_has_compatible_shallow_copy_type(): argument 'from' (position 2) must be Tensor, not {type(applied).__name__}"
                )
            grad = param.grad
            if swaps():
                self._swap(name, param, applied, fn)
                continue
            keeps = _can_keep_identity(param, applied)
            if keeps:
                param.data = applied
                target = param
            else:
                target = Parameter(applied, param.requires_grad)
                self._parameters[name] = target
            if grad is not None:
                with torch.no_grad():
                    grad_applied = fn(grad)
                if keeps and _can_keep_identity(grad, grad_applied):
                    grad.data = grad_applied
                    target.grad = grad
                else:
                    target.grad = grad_applied.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _swap(self, name: str, param: Tensor, applied: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
        """Let a parameter and its gradient become what `fn` made of them. RuntimeError when they are held elsewhere."""
        grad = param.grad
        try:
            torch.utils.swap_tensors(param, Parameter(applied, param.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}") from error
        if grad is None:
            return
        with torch.no_grad():
            grad_applied = fn(grad).requires_grad_(grad.requires_grad)
        try:
            torch.utils.swap_tensors(grad, grad_applied)
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}.grad") from error
        param.grad = grad

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call ``fn`` on every submodule, children first, then on the module itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def cuda(self, device: Any = None) -> Self:
        """Move to the CUDA device (the call of a tensor decides whether there is one)."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def npu(self, device: Any = None) -> Self:
        """Move to the NPU."""
        return self._apply(lambda tensor: tensor.npu(device))

    def ipu(self, device: Any = None) -> Self:
        """Move to the IPU."""
        return self._apply(lambda tensor: tensor.ipu(device))

    def xpu(self, device: Any = None) -> Self:
        """Move to the XPU."""
        return self._apply(lambda tensor: tensor.xpu(device))

    def mtia(self, device: Any = None) -> Self:
        """Move to the MTIA device."""
        return self._apply(lambda tensor: tensor.mtia(device))

    def cpu(self) -> Self:
        """Move to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def type(self, dst_type: Any) -> Self:
        """Cast everything to ``dst_type``."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Cast floating-point parameters and buffers to float32."""
        return self._apply(lambda tensor: tensor.float() if tensor.is_floating_point() else tensor)

    def double(self) -> Self:
        """Cast floating-point parameters and buffers to float64."""
        return self._apply(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)

    def half(self) -> Self:
        """Cast floating-point parameters and buffers to float16."""
        return self._apply(lambda tensor: tensor.half() if tensor.is_floating_point() else tensor)

    def bfloat16(self) -> Self:
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda tensor: tensor.bfloat16() if tensor.is_floating_point() else tensor)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to ``device`` without copying values."""
        return self._apply(lambda tensor: torch.empty_like(tensor, device=device), recurse=recurse)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move or cast: ``to(device, dtype, non_blocking)``, ``to(dtype)``, ``to(tensor)``, ``to(memory_format=...)``.

        The dtype applies to floating-point and complex tensors only. Raises TypeError for an integer dtype.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, and some "
                    "modules might not work as expected when using complex tensors as parameters or buffers.",
                    stacklevel=2,
                )

        def convert(tensor: Tensor) -> Tensor:
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            try:
                if memory_format is not None and tensor.dim() in (4, 5):
                    return tensor.to(device, wanted, non_blocking, memory_format=memory_format)
                return tensor.to(device, wanted, non_blocking)
            except NotImplementedError as error:
                if str(error).startswith("Cannot copy out of meta tensor; no data!"):
                    raise NotImplementedError(
                        f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                        "module from meta to a different device."
                    ) from None
                raise

        return self._apply(convert)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of all parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        if self.__dict__.get("_is_replica"):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The parameters are "
                "copied (in a differentiable manner) from the original module. This means they are not leaf nodes in "
                "autograd and so don't accumulate gradients. If you need gradients in your forward method, consider "
                "using autograd.grad instead.",
                stacklevel=2,
            )
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if param.grad.grad_fn is not None:
                    param.grad.detach_()
                else:
                    param.grad.requires_grad_(False)
                param.grad.zero_()

    def share_memory(self) -> Self:
        """Move the tensors into shared memory."""
        return self._apply(lambda tensor: tensor.share_memory_())


_TO_NAMES = ("device", "dtype", "non_blocking", "copy", "memory_format", "tensor", "other")
_TO_FORMS = (
    " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
    " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
    " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
)


def _wrong_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    given = [type(arg).__name__ for arg in args]
    named = "".join(f"{name}={type(value).__name__}, " for name, value in kwargs.items())
    return TypeError(
        "to() received an invalid combination of arguments - got "
        f"({', '.join(given)}{', ' if given and named else ''}{named}), but expected one of:\n{_TO_FORMS}"
    )


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, non_blocking and memory format of a call of ``to`` in any of its forms."""
    if any(name not in _TO_NAMES for name in kwargs):
        raise _wrong_to(args, kwargs)
    rest = list(args)
    memory_format = kwargs.get("memory_format")
    other = kwargs.get("tensor", kwargs.get("other"))
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    if other is not None:
        device, dtype = other.device, other.dtype
    else:
        device, dtype = kwargs.get("device"), kwargs.get("dtype")
        if rest and isinstance(rest[0], torch.dtype):
            dtype = rest.pop(0)
        elif rest:
            device = rest.pop(0)
            if rest:
                dtype = rest.pop(0)
    non_blocking = rest.pop(0) if rest else kwargs.get("non_blocking", False)
    if (rest.pop(0) if rest else kwargs.get("copy", False)) or rest:
        raise RuntimeError(".to() does not accept copy argument")
    if not (dtype is None or isinstance(dtype, torch.dtype)) or not isinstance(non_blocking, (bool, type(None))):
        raise _wrong_to(args, kwargs)
    return None if device is None else placed(device), dtype, bool(non_blocking), memory_format
