"""`FlopCounterMode`: the floating-point operations of matrix products, convolutions and attention in a block, by operator and module.

They are those that plans count (`flops` of the schema), of the operators whose tags say that they are products; sums of a bias do not
count. What runs in a backward pass is counted for the whole program alone. Operators that PyTorch makes of others stand under those (`matmul` is `mm` or `bmm`), and what PyTorch's counter leaves out is left out: products with a
vector, and attention and LSTM layers on a CPU.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any

from .. import nn, ops
from .._dispatch.backends import backend_of
from .._dispatch.operator import Operator
from .._state import TLS, enter_special, leave_special
from .._tensor import Tensor
from ..nn.modules._hooks import register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_map

__all__ = ["FlopCounterMode", "register_flop_formula"]

flop_registry: dict[Any, Callable[..., Any]] = {}
"""What users have registered: `torch.ops.aten.sin` to a function of the arguments."""

_aten: Any = ops.aten  # pyright: ignore[reportAttributeAccessIssue]
_PRODUCTS = frozenset(("product", "product_of_shapes", "product_on_devices", "convolution"))
_BIAS = "output_mask"  # of gradients that are wanted, of which the last is the bias's


def get_shape(value: Any) -> Any:
    """The shape of a tensor; anything else as it is."""
    return value.shape if isinstance(value, Tensor) else value


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable], Callable]:
    """A decorator: its function says what `torch.ops.*` operators cost, from the shapes of arguments and, as `out_shape`, result.

    With `get_raw` it is called with the tensors, and `out_val`. ValueError for what is no operator, RuntimeError for one that is registered.
    """

    def register(formula: Callable) -> Callable:
        @wraps(formula)
        def of_shapes(*args: Any, out_val: Any = None, **kwargs: Any) -> Any:
            args, kwargs, out = tree_map(get_shape, (args, kwargs, out_val))
            return formula(*args, out_shape=out, **kwargs)

        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if not isinstance(target, ops.OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), got "
                    f"{target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula if get_raw else of_shapes
        return formula

    return register


def _parts(op: Operator, args: tuple) -> Any:
    """The operator of PyTorch that does the work of a call, or None where it counts none."""
    if "convolution" in op.tags:
        return _aten.convolution
    if "product_on_devices" in op.tags and args[0].device.type == "cpu":
        return None
    if "product_of_shapes" not in op.tags:
        return getattr(_aten, op.name, None)
    if len(args) == 3:  # with a bias
        close = args[0].dim() < 3 or (args[0].dim() == 3 and args[0].is_contiguous())
        return _aten.addmm if args[2] is not None and close else _aten.mm
    left, right = args[:2]
    if right.dim() == 1 or (left.dim() == 1 and right.dim() > 2):
        return None
    if left.dim() <= 2 and right.dim() == 2:
        return _aten.mm
    if left.dim() > 2 and right.dim() > 2:
        return _aten.bmm
    # The matrix among matrices: of one product where its gradient is wanted, or the others lie close.
    matrix, others = (right, left) if right.dim() == 2 else (left, right.mT)
    folds = matrix.requires_grad or (left.dim() > 2 and others.is_contiguous())
    return _aten.mm if folds else _aten.bmm


class _Counter:
    """An observer of the dispatcher that counts, and lets everything take its course."""

    def __init__(self, mode: FlopCounterMode, outer: Any) -> None:
        from .._generated.flops import FORMULAS  # pyright: ignore[reportMissingImports]

        self.mode, self.outer, self.formulas = mode, outer, FORMULAS

    def arguments(self, op: Operator, args: tuple) -> tuple:
        """The arguments as they are."""
        return args if self.outer is None else self.outer.arguments(op, args)

    def buffer(self, out: Any) -> Any:
        """The buffer as it is."""
        return out if self.outer is None else self.outer.buffer(out)

    def run(self, op: Operator, spec: Any, args: tuple, where: Any) -> Any:
        """What the backend gives."""
        return (
            backend_of(where).run(op, spec, args, where)
            if self.outer is None
            else self.outer.run(op, spec, args, where)
        )

    def values(self, tensor: Any) -> Any:
        """Nothing is known of meta tensors."""
        return None if self.outer is None else self.outer.values(tensor)

    def ran(self, op: Operator, args: tuple, result: Any, written: Any = None) -> None:
        """Count a call."""
        if self.outer is not None:
            self.outer.ran(op, args, result, written)
        packet = getattr(_aten, op.name, None)
        own = self.mode.custom_mapping.get(packet) or flop_registry.get(packet)
        if own is not None:
            given, named = as_called(op, args)
            count = own(*given, out_val=result, **named)
        elif not _PRODUCTS.isdisjoint(op.tags) and op.full_name in self.formulas:
            names = [param.name for param in op.params]
            if _BIAS in names:
                at = names.index(_BIAS)
                args = (*args[:at], (*args[at][:-1], False), *args[at + 1 :])
            count = int(self.formulas[op.full_name](result, *args))
            packet = _parts(op, args)
            if packet is None:
                return
        else:
            return
        for name in self.mode.places():
            self.mode.flop_counts[name][packet] += count


def as_called(op: Operator, args: tuple) -> tuple[tuple, dict]:
    """Arguments in schema order as a program gives them: without defaults at the end, and some by name."""
    given = [value for param, value in zip(op.params, args) if not param.keyword]
    count = len(given)
    while count and not op.params[count - 1].required and given[count - 1] == op.params[count - 1].default:
        count -= 1
    named = {p.name: v for p, v in zip(op.params, args) if p.keyword and (p.required or v != p.default)}
    return tuple(given[:count]), named


class FlopCounterMode:
    """`with FlopCounterMode() as counter:`. Then `get_total_flops()`, `get_flop_counts()`, `get_table()`; with `display` the table is printed.

    depth: how deep modules are shown. custom_mapping: operators and functions of shapes (with the attribute `_get_raw`, of tensors) that say what they cost.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.custom_mapping = {
            target: formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
            for target, formula in (custom_mapping or {}).items()
        }
        self._stack: list[str] = []
        self._names: dict[int, str] = {}

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._outer, TLS.observer = TLS.observer, _Counter(self, TLS.observer)
        self._hooks = (
            register_module_forward_pre_hook(self._entered),
            register_module_forward_hook(self._left, always_call=True),
        )
        enter_special()
        return self

    def __exit__(self, *exc: object) -> None:
        leave_special()
        for hook in self._hooks:
            hook.remove()
        TLS.observer = self._outer
        if self.display:
            print(self.get_table(self.depth))

    def _entered(self, module: nn.Module, args: Any) -> None:
        if not self._stack:
            root = type(module).__name__
            self._names = {id(one): f"{root}.{name}" if name else root for name, one in module.named_modules()}
        self._stack.append(self._names.get(id(module), type(module).__name__))

    def _left(self, module: nn.Module, args: Any, result: Any) -> None:
        if self._stack:
            self._stack.pop()

    def places(self) -> dict[str, None]:
        """The modules that are running, the whole program among them."""
        return dict.fromkeys(("Global", *self._stack))

    def get_total_flops(self) -> int:
        """What was counted in all."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """What was counted, by module ("Global" for the whole program) and operator."""
        return {place: dict(counts) for place, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A table of modules and operators, as deep as `depth`."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for place in ["Global", *sorted(name for name in self.flop_counts if name != "Global")]:
            level = 0 if place == "Global" else place.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[place]
            lines = [(place, sum(counts.values())), *((f" - {packet}", n) for packet, n in counts.items())]
            rows += [(" " * level + name, _shown(n), f"{100 * n / total:.2f}%" if total else "0%") for name, n in lines]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows)


def _of_shapes(formula: Callable) -> Callable:
    def called(*args: Any, out_val: Any = None, **kwargs: Any) -> Any:
        args, kwargs, out = tree_map(get_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out, **kwargs)

    return called


def _shown(count: int) -> str:
    """A count in thousands, millions and so on."""
    power = min(max((len(str(count)) - 1) // 3, 0), 4)
    return str(count) if not power else f"{count / 1000**power:.3f}{' KMBT'[power]}"
