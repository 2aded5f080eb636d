# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.experimental.symbolic_shapes, functional stub: every shape is concrete, so every question about symbols has a plain answer."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.symbols import (
    guard_bool, guard_or_false, guard_or_true, guard_size_oblivious, is_concrete_bool, is_concrete_float,
    is_concrete_int, statically_known_false, statically_known_true, sym_and, sym_eq, sym_or,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, identity, returning

_MODULE = "torch.fx.experimental.symbolic_shapes"
_BECAUSE = "there are no symbolic shapes"
free_symbols = returning("free_symbols", _MODULE, [])
free_unbacked_symbols = returning("free_unbacked_symbols", _MODULE, [])
has_free_symbols = returning("has_free_symbols", _MODULE, False)
has_free_unbacked_symbols = returning("has_free_unbacked_symbols", _MODULE, False)
has_symbolic_sizes_strides = returning("has_symbolic_sizes_strides", _MODULE, False)
is_nested_int = returning("is_nested_int", _MODULE, False)
is_symbolic = returning("is_symbolic", _MODULE, False)
guard_float = identity("guard_float", _MODULE)
guard_int = identity("guard_int", _MODULE)
guard_scalar = identity("guard_scalar", _MODULE)
optimization_hint = identity("optimization_hint", _MODULE)


class ConstraintViolationError(RuntimeError):
    """An error of torch.fx.experimental.symbolic_shapes, which mindtorch_v2 never raises."""


class GuardOnDataDependentSymNode(RuntimeError):
    """An error of torch.fx.experimental.symbolic_shapes, which mindtorch_v2 never raises."""


class DimDynamic(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ShapeEnv(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class StatefulSymbolicContext(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class StatelessSymbolicContext(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class SubclassSymbolicContext(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class SymbolicContext(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
