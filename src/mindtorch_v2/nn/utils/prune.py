"""Pruning: parameters become `name_orig` times a mask, which a hook multiplies before every forward pass."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor


class BasePruningMethod(ABC):
    """A way to choose what is pruned; also the hook that puts the pruned tensor into its module."""

    _tensor_name: str
    PRUNING_TYPE: str  # "unstructured", "structured" or "global": what of an earlier mask a further method looks at

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of `t`, where `default_mask` is what has been pruned already."""

    def apply_mask(self, module: Any) -> Tensor:
        """The module's original parameter times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter of a module, on top of what has been pruned of it before."""
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        before = _pop_method(module, name)
        if before is not None:
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            method = container
        parameter = getattr(module, name)
        if importance_scores is None:
            importance_scores = parameter
        elif importance_scores.shape != parameter.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {importance_scores.shape} vs "
                f"{parameter.shape}"
            )
        if before is None:
            module.register_parameter(name + "_orig", parameter)
            del module._parameters[name]
            default_mask = torch.ones_like(parameter)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone(memory_format=torch.contiguous_format)
        try:
            module.register_buffer(name + "_mask", method.compute_mask(importance_scores, default_mask=default_mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:  # whatever the method's own code raises: the module is left as it was, and the error goes on
            if before is None:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """`t` with zeros where this method prunes it; no module is needed."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        mask = torch.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor the parameter; the hook stays."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = pruned.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _pop_method(module: Any, name: str) -> BasePruningMethod | None:
    """Take away the hook that prunes a parameter."""
    found = [
        (k, h)
        for k, h in module._forward_pre_hooks.items()
        if isinstance(h, BasePruningMethod) and h._tensor_name == name
    ]
    if len(found) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    for key, _ in found:
        del module._forward_pre_hooks[key]
    return found[0][1] if found else None


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other, on one parameter."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple = ()
        if len(args) == 1 and not isinstance(args[0], Iterable):
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
            return
        for method in args[0] if len(args) == 1 else args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add one more. TypeError for what is no method, ValueError for one of another parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. Found "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The earlier mask with what the last method prunes of the rest."""
        method = self._pruning_methods[-1]
        rest = _unpruned(method, t, default_mask)
        mask = default_mask.clone()
        mask[rest] = method.compute_mask(t[rest], default_mask=default_mask[rest]).to(mask.dtype)
        return mask


def _unpruned(method: Any, t: Tensor, mask: Tensor) -> Any:
    """The index of what a further method may look at."""
    whole: list[Any] = [slice(None)] * t.dim()
    kind = method.PRUNING_TYPE
    if kind == "unstructured":
        return mask == 1
    if kind == "global":
        return tuple(whole)
    if kind != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
    if not hasattr(method, "dim"):
        raise AttributeError(
            f'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined. Found {method}'
        )
    dim = method.dim % t.dim()
    whole[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return tuple(whole)


class Identity(BasePruningMethod):
    """Prunes nothing: gives the module its mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask as it was."""
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:
        """Give a parameter of a module a mask of ones."""
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random; `amount` is a share (float) or a number (int)."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask without `amount` elements."""
        return _without(default_mask, lambda: torch.rand_like(t), self.amount, largest=True)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prunes the elements of the smallest magnitude."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask without the `amount` smallest elements."""
        return _without(default_mask, lambda: torch.abs(t), self.amount, largest=False)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _without(mask: Tensor, rank: Any, amount: Any, largest: bool) -> Tensor:
    count = mask.nelement()
    pruned = _compute_nparams_toprune(amount, count)
    _validate_pruning_amount(pruned, count)
    mask = mask.clone(memory_format=torch.contiguous_format)
    if pruned:
        mask.view(-1)[torch.topk(rank().reshape(-1), k=pruned, largest=largest).indices] = 0
    return mask


class RandomStructured(BasePruningMethod):
    """Prunes whole slices along `dim` at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask without `amount` slices."""
        pruned = _slices_toprune(t, self.dim, self.amount)
        if not pruned:
            return default_mask
        chance = torch.rand(t.shape[self.dim])
        return _slices(t, self.dim, chance > torch.kthvalue(chance, k=pruned).values) * default_mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prunes the slices along `dim` of the smallest n-norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask without the `amount` smallest slices."""
        pruned = _slices_toprune(t, self.dim, self.amount)
        if not pruned:
            return default_mask
        kept = torch.topk(_compute_norm(t, self.n, self.dim), k=t.shape[self.dim] - pruned, largest=True).indices
        return _slices(t, self.dim, kept) * default_mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


def _slices_toprune(t: Tensor, dim: int, amount: Any) -> int:
    _validate_structured_pruning(t)
    _validate_pruning_dim(t, dim)
    count = t.shape[dim]
    pruned = _compute_nparams_toprune(amount, count)
    _validate_pruning_amount(pruned, count)
    return pruned


def _slices(t: Tensor, dim: int, kept: Tensor) -> Tensor:
    """Ones in the kept slices along `dim`, zeros elsewhere."""
    mask = torch.zeros_like(t)
    index: list[Any] = [slice(None)] * t.dim()
    index[dim] = kept
    mask[tuple(index)] = 1
    return mask


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The given mask on top of the earlier one."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError("default_mask and mask must have the same shape")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Tensor) -> Any:
        """Prune a parameter of a module."""
        return super().apply(module, name, mask=mask)


def identity(module: Any, name: str) -> Any:
    """Give a parameter of a module a mask of ones; the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune elements at random; the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the elements of the smallest magnitude (or score); the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune slices along `dim` at random; the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prune the slices along `dim` of the smallest n-norm; the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune what a mask says; the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune elements of several parameters, [(module, name), ...], as if they were one tensor."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = importance_scores if importance_scores is not None else {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = [(module, name) for module, name in parameters]
    ranked = [scores.get((module, name), getattr(module, name)).reshape(-1) for module, name in parameters]
    masks = [
        getattr(module, name + "_mask", torch.ones_like(getattr(module, name))).reshape(-1)
        for module, name in parameters
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    mask = PruningContainer(method).compute_mask(torch.cat(ranked), torch.cat(masks))
    start = 0
    for module, name in parameters:
        parameter = getattr(module, name)
        custom_from_mask(module, name, mask[start : start + parameter.numel()].view_as(parameter))
        start += parameter.numel()


def remove(module: Any, name: str) -> Any:
    """Make what is left of a pruned parameter the parameter again; the module. ValueError when it is not pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a parameter of the module, or of a module in it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for one in module.modules() for hook in one._forward_pre_hooks.values()
    )


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """The n-norm of each slice along `dim`."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    return torch.norm(t, p=n, dim=others)
