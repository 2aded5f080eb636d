"""Linear maps whose weights are bytes, and turning the ones of a module into them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ._tensor import Tensor
from .nn import functional as F
from .nn.modules.linear import Linear
from .nn.modules.module import Module
from .nn.parameter import Parameter

__all__ = ["Int8Linear", "quantize_weights"]

_LARGEST = 127


class Int8Linear(Module):
    """A linear map whose weight is a matrix of bytes, each row of which has a scale: ``y = x @ (weight * scale[:, None]).T + bias``.

    Buffers: `weight`, int8 (out_features, in_features); `scale` (out_features,) in the dtype in which the module computes. Inputs have
    that dtype. Products with up to 32 rows read each byte once; larger ones make float32 of some rows of the weight at a time. The weight cannot be trained;
    inputs and `bias` have gradients.
    """

    in_features: int
    out_features: int
    weight: Tensor
    scale: Tensor

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.register_buffer("weight", torch.zeros((out_features, in_features), device=device, dtype=torch.int8))
        self.register_buffer("scale", torch.ones(out_features, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.zeros(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None) -> Int8Linear:
        """That of a float weight (out_features, in_features) and a bias: each row is divided by its largest magnitude over 127, and rounded."""
        rows, columns = weight.shape
        made = cls(columns, rows, bias=False, device="meta", dtype=weight.dtype)
        with torch.no_grad():
            made.weight, made.scale = _quantized(weight.detach())
        made.bias = None if bias is None else bias if isinstance(bias, Parameter) else Parameter(bias)
        return made

    def dequantized(self) -> Tensor:
        """The weight that the bytes stand for."""
        return self.weight.to(self.scale.dtype) * self.scale[:, None]

    def forward(self, input: Tensor) -> Tensor:
        """Map ``input`` (*, in_features) to (*, out_features)."""
        if torch.is_grad_enabled() and input.requires_grad:
            return F.linear(input, self.dequantized(), self.bias)
        rows = input if input.dim() == 2 else input.reshape(-1, input.shape[-1])
        made = torch._weight_int8pack_mm(rows.contiguous(), self.weight, self.scale)
        if self.bias is not None:
            made = made + self.bias
        return made if input.dim() == 2 else made.reshape(*input.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _quantized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(bytes, scales) of the rows of a matrix. The scales have the weight's dtype, and the bytes are those for the scales as they are rounded to it."""
    if not weight.shape[1]:
        return torch.zeros(weight.shape, dtype=torch.int8), torch.ones(weight.shape[0], dtype=weight.dtype)
    if weight.device.type == "meta":
        return torch.empty_like(weight, dtype=torch.int8), torch.empty(
            weight.shape[0], dtype=weight.dtype, device="meta"
        )
    scales = (weight.abs().amax(1).float() / _LARGEST).to(weight.dtype)
    scales = torch.where(scales > 0, scales, torch.ones_like(scales))
    made = torch.empty(weight.shape, dtype=torch.int8, device=weight.device)
    step = max(1, (1 << 20) // weight.shape[1])
    for first in range(0, weight.shape[0], step):  # so that it takes little memory beside the weight
        part = weight[first : first + step].float() / scales[first : first + step, None].float()
        made[first : first + step] = part.round().clamp(-_LARGEST, _LARGEST).to(torch.int8)
    return made, scales


def quantize_weights(
    module: Module, skip: Callable[[str, Module], bool] | tuple[str, ...] = (), least: int = 0
) -> Module:
    """Turn the `Linear` modules of a module, and transformers' `Conv1D`, into `Int8Linear` ones, in place; returns the module, or what
    stands for it when it is such a one itself. The weights take a quarter of the memory of float32, and so do products that wait for memory, as each token of a language model does.

    skip: names (`lm_head`, or as `named_modules` has them), or a function of name and module, of those that stay; least: the number of weights from which one is
    turned. A module that stands in several places stays one. Of weights that others share (an embedding's), they keep theirs.

    RuntimeError for weights that are not float32, float16 or bfloat16.
    """
    stays = skip if callable(skip) else lambda name, _: name in skip or name.rpartition(".")[2] in skip
    turned: dict[int, Module] = {}

    def turn(name: str, one: Module) -> Module:
        if id(one) in turned:
            return turned[id(one)]
        if not _is_linear(one) or stays(name, one) or one.weight.numel() < least:  # type: ignore[operator, union-attr]
            turned[id(one)] = one
            for key, child in list(one._modules.items()):
                if child is not None:
                    one._modules[key] = turn(f"{name}.{key}" if name else key, child)
            return one
        weight: Any = one.weight
        if weight.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise RuntimeError(f"quantize_weights(): {name or type(one).__name__} has weights of {weight.dtype}")
        made = Int8Linear.of(weight if isinstance(one, Linear) else weight.t(), one.bias)  # type: ignore[arg-type]
        made.train(one.training)
        turned[id(one)] = made
        return made

    return turn("", module)


def _is_linear(module: Module) -> bool:
    """Whether a module is a Linear as it stands, or a linear map with its weight the other way round."""
    kind = type(module)
    return kind is Linear or (
        kind.__name__ == "Conv1D" and kind.__module__.startswith("transformers.") and hasattr(module, "nf")
    )
