# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils.data.datapipes, import-only stub: data pipes."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.utils.data.datapipes"
__getattr__ = lazy_children(_MODULE)
