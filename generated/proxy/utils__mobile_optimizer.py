# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils.mobile_optimizer, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.utils.mobile_optimizer"
_BECAUSE = "there is no TorchScript compiler"
optimize_for_mobile = import_only_function("optimize_for_mobile", _MODULE, _BECAUSE, NotImplementedError)
