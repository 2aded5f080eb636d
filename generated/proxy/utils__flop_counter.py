# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils.flop_counter, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.utils.flop_counter"
_BECAUSE = "operators are not counted"
register_flop_formula = import_only_function("register_flop_formula", _MODULE, _BECAUSE, NotImplementedError)


class FlopCounterMode(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
