"""Operators that TorchScript has for tensors and `torch.ops` has not: `torch.tensor`, conversions, and what asks for a tensor's properties.

SPECIAL has those of `torch.NAME(...)`, PRIM those of `ops.prim.NAME(...)`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import nn
from .._api.functions.construct import as_tensor, tensor as make_tensor
from .._autograd.api import backward, grad as gradients
from .._autograd.modes import no_grad
from .._device import device
from .._generated.functions import full, linspace, logspace
from .._tensor import Tensor
from .errors import Raised
from .numbers import code_of, named_by
from .objects import Member
from .plain import PLAIN


def _to(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """`to` in all its forms: a device, a dtype as an int, a tensor; then non_blocking, copy and a memory format."""
    wanted: dict[str, Any] = {}
    rest: list[Any] = []
    for value in args:
        if isinstance(value, device) and not rest:
            wanted["device"] = value
        elif type(value) is int and not rest:
            wanted["dtype"] = value
        elif isinstance(value, Tensor) and not rest:
            wanted["device"], wanted["dtype"] = value.device, value.dtype
        elif type(value) is bool:
            rest.append(value)
        elif type(value) is int:
            wanted["memory_format"] = value
    wanted.update(zip(("non_blocking", "copy"), rest))
    wanted.update((name, value) for name, value in named.items() if name not in ("layout", "pin_memory", "other"))
    if isinstance(named.get("other"), Tensor):
        wanted["device"], wanted["dtype"] = named["other"].device, named["other"].dtype
    if type(wanted.get("dtype")) is int:
        wanted["dtype"] = named_by("ScalarType", wanted["dtype"])
    if wanted.get("memory_format") is not None:
        wanted["memory_format"] = named_by("MemoryFormat", wanted["memory_format"])
    return self.to(**{name: value for name, value in wanted.items() if value is not None})


def _tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    if isinstance(data, Tensor):
        data = data.detach().clone()
        made = data.to(device=device or data.device, dtype=named_by("ScalarType", dtype) or data.dtype)
        return made.requires_grad_(requires_grad) if requires_grad else made
    return make_tensor(data, dtype=named_by("ScalarType", dtype), device=device, requires_grad=requires_grad)


def _as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return as_tensor(data, dtype=named_by("ScalarType", dtype), device=device)


def _number(kind: type) -> Callable[[Tensor], Any]:
    def number(self: Tensor, *base: Any) -> Any:
        return kind(self.item())

    return number


def _length(self: Tensor) -> int:
    if self.dim() == 0:
        raise RuntimeError("len() of a 0-d tensor")
    return self.shape[0]


def _cast(code: int) -> Callable[..., Tensor]:
    return lambda self, non_blocking=False: self.to(named_by("ScalarType", code))


def _without_grad(name: str) -> Callable[..., Tensor]:
    def run(self: Tensor, *args: Any, **named: Any) -> Tensor:
        with no_grad():
            return getattr(self, name)(*args, **named)

    return run


def _drawn_without_grad(name: str) -> Callable[..., Tensor]:
    def run(tensor: Tensor, first: float, second: float, generator: Any = None) -> Tensor:
        with no_grad():
            return getattr(tensor, name)(first, second, generator=generator)

    return run


def _index_put(self: Tensor, indices: list, values: Tensor, accumulate: bool = False, unsafe: bool = False) -> Tensor:
    return self.index_put_(tuple(indices), values, accumulate)


def _batch_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    return nn.functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _grad(
    outputs: list,
    inputs: list,
    grad_outputs: Any = None,
    retain_graph: Any = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> list:
    return list(gradients(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused=allow_unused))


def _backward(of: Any, gradients: Any = None, retain_graph: Any = None, create_graph: bool = False) -> None:
    backward(of, gradients, retain_graph, create_graph)


def _convolution_mode(
    input: Tensor, weight: Tensor, bias: Any, stride: list, padding: str, dilation: list, groups: int
) -> Tensor:
    conv = (nn.functional.conv1d, nn.functional.conv2d, nn.functional.conv3d)[weight.dim() - 3]
    return conv(input, weight, bias, stride, padding, dilation, groups)


def _pad_sequence(
    sequences: list, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    return nn.utils.rnn.pad_sequence(sequences, batch_first, padding_value, padding_side)


def _pack(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple:
    packed = nn.utils.rnn.pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _unpack(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: int) -> tuple:
    packed = nn.utils.rnn.PackedSequence(data, batch_sizes, None, None)
    return nn.utils.rnn.pad_packed_sequence(
        packed, batch_first, padding_value, None if total_length < 0 else total_length
    )


def _quantized_lstm(*values: Any, **named: Any) -> Any:
    raise NotImplementedError("quantised tensors are not supported")


SPECIAL: dict[str, Callable[..., Any]] = {
    "to": _to,
    "tensor": _tensor,
    "as_tensor": _as_tensor,
    "len": _length,
    "int": _number(int),
    "Int": _number(int),
    "IntImplicit": _number(int),
    "float": _number(float),
    "Float": _number(float),
    "FloatImplicit": _number(float),
    "bool": _number(bool),
    "Bool": _number(bool),
    "Complex": _number(complex),
    "ComplexImplicit": _number(complex),
    "ScalarImplicit": lambda self: self.item(),
    "str": PLAIN["str"],
    "print": PLAIN["print"],
    "list": lambda self: list(self.unbind(0)),
    "wait": lambda self: self,
    "cpu": lambda self: self.cpu(),
    "cuda": lambda self: self.cuda(),
    "element_size": lambda self: self.element_size(),
    "__contains__": lambda self, value: bool((self == value).any()),
    "__is__": lambda self, other: self is other,
    "__isnot__": lambda self, other: self is not other,
    "__getitem__": lambda self, index: self[index],
    "_unwrap_optional": lambda self: self,
    "hash": hash,
    "backward": _backward,
    "grad": _grad,
    "requires_grad_": lambda self, requires_grad=True: self.requires_grad_(requires_grad),
    "batch_norm": _batch_norm,
    "_convolution_mode": _convolution_mode,
    "pad_sequence": _pad_sequence,
    "lift_fresh_copy": lambda self: self.clone(),
    "_reshape_alias": lambda self, size, stride: self.as_strided(size, stride),
    "__interpolate": nn.functional.interpolate,
    "__upsample": nn.functional.interpolate,
    "__upsample_bilinear": functools.partial(nn.functional.interpolate, mode="bilinear", align_corners=True),
    "__upsample_nearest": functools.partial(nn.functional.interpolate, mode="nearest"),
    "_index_put_impl_": _index_put,
    "_pack_padded_sequence": _pack,
    "_pad_packed_sequence": _unpack,
    "_autocast_to_reduced_precision": lambda self, *rest: self,
    "_autocast_to_full_precision": lambda self, *rest: self,
    "quantized_lstm": _quantized_lstm,
    "quantized_gru": _quantized_lstm,
    "_no_grad_uniform_": _drawn_without_grad("uniform_"),
    "_no_grad_normal_": _drawn_without_grad("normal_"),
    "_no_grad_fill_": _without_grad("fill_"),
    "_no_grad_zero_": _without_grad("zero_"),
    **{f"_cast_{name}": _cast(code) for code, name in enumerate("Byte Char Short Int Long Half Float Double".split())},
}


ANYWAY = frozenset(("tensor", "as_tensor", "pad_sequence", "grad", "backward", "full", "linspace", "logspace"))
"""Those of SPECIAL and FORMER whose first argument need not be a tensor."""


def _former_div(name: str) -> Callable[..., Tensor]:
    def div(self: Tensor, other: Any) -> Tensor:
        whole = not (self.is_floating_point() or self.is_complex())
        whole = whole and not (
            isinstance(other, (float, complex)) or (isinstance(other, Tensor) and other.is_floating_point())
        )
        return getattr(self, name)(other, rounding_mode="trunc" if whole else None)

    return div


def _former_full(size: list, fill_value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    kind = named_by("ScalarType", dtype)
    return full(size, float(fill_value) if dtype is None else fill_value, dtype=kind, device=options.get("device"))


def _former_steps(name: str) -> Callable[..., Tensor]:
    def steps(start: Any, end: Any, count: int | None = None, *rest: Any, dtype: Any = None, **options: Any) -> Tensor:
        function = {"linspace": linspace, "logspace": logspace}[name]
        count = 100 if count is None else count
        return function(start, end, count, *rest, dtype=named_by("ScalarType", dtype), device=options.get("device"))

    return steps


FORMER: dict[str, tuple[int, Callable[..., Any]]] = {
    "div": (3, _former_div("div")),
    "div_": (3, _former_div("div_")),
    "full": (4, _former_full),
    "linspace": (7, _former_steps("linspace")),
    "logspace": (8, _former_steps("logspace")),
}
"""Operators that meant something else in files up to a version: integers were divided to integers, `full` gave floats, 100 steps were a default."""


def _raise(text: str = "", kind: str | None = None) -> None:
    raise Raised(text, kind or "")


def _nested(value: Tensor, dim: int = 0, kind: int = 0) -> Any:
    return value.tolist()


def _read(name: str) -> Callable[[Tensor], Any]:
    return lambda self: getattr(self, name)


def _member_value(member: Any) -> Any:
    if not isinstance(member, Member):
        raise TypeError("only members of enums have a value")
    return member.value


def _device_part(name: str) -> Callable[[Any], Any]:
    def part(of: Any) -> Any:
        if not isinstance(of, device):
            raise TypeError(f"a {type(of).__name__} is no device")
        return getattr(of, name)

    return part


PRIM: dict[str, Callable[..., Any]] = {
    "NumToTensor": lambda value: make_tensor(value, dtype=named_by("ScalarType", 7) if type(value) is float else None),
    "dtype": lambda self: code_of(self.dtype),
    "layout": lambda self: code_of(self.layout),
    "device": lambda self: self.device,
    "data": lambda self: self.data,
    "grad": lambda self: self.grad,
    "requires_grad": _read("requires_grad"),
    "itemsize": _read("itemsize"),
    "nbytes": _read("nbytes"),
    "shape": lambda self: list(self.shape),
    "name": lambda self: None,
    **{
        name: _read(name)
        for name in "is_cuda is_sparse is_quantized is_meta is_nested is_sparse_csr is_cpu is_mkldnn".split()
    },
    **dict.fromkeys("is_xla is_xpu is_ipu is_mps is_vulkan is_maia is_mtia".split(), lambda self: False),
    "unchecked_unwrap_optional": PLAIN["unchecked_unwrap_optional"],
    "unchecked_cast": PLAIN["unchecked_cast"],
    "RaiseException": _raise,
    "EnumName": lambda member: member.name,
    "EnumValue": _member_value,
    "tolist": _nested,
    "rangelist": lambda count: list(range(count)),
    "type": _device_part("type"),
    "index": _device_part("index"),
    "Print": PLAIN["print"],
    "StringIndex": lambda text, index: text[index],
    "TupleIndex": lambda held, index: held[index],
    "AutogradZero": lambda: make_tensor(0.0),
}
"""`ops.prim.NAME(...)`, and with `min`, `max` and `abs` of `plain` all that is supported."""
