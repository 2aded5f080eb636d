# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._inductor.cpu_vec_isa, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, returning

_MODULE = "torch._inductor.cpu_vec_isa"
_BECAUSE = "there is no compiler"
valid_vec_isa_list = returning("valid_vec_isa_list", _MODULE, [])
pick_vec_isa = import_only_function("pick_vec_isa", _MODULE, _BECAUSE, NotImplementedError)


class VecISA(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
