# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils._config_module, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.utils._config_module"
_BECAUSE = "settings of the compiler are plain modules"
install_config_module = import_only_function("install_config_module", _MODULE, _BECAUSE, NotImplementedError)
