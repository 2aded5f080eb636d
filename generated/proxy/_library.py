# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._library, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import identity, import_only_function

_MODULE = "torch._library"
_BECAUSE = "there is no compiler"
capture_triton = identity("capture_triton", _MODULE)
wrap_triton = identity("wrap_triton", _MODULE)
register_fake_class = import_only_function("register_fake_class", _MODULE, _BECAUSE, NotImplementedError)
triton_op = import_only_function("triton_op", _MODULE, _BECAUSE, NotImplementedError)
