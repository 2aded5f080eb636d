# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nn.attention.flex_attention, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.nn.attention.flex_attention"
_BECAUSE = "attention with a block mask is not implemented"
_DEFAULT_SPARSE_BLOCK_SIZE = 128
and_masks = import_only_function("and_masks", _MODULE, _BECAUSE, NotImplementedError)
create_block_mask = import_only_function("create_block_mask", _MODULE, _BECAUSE, NotImplementedError)
create_mask = import_only_function("create_mask", _MODULE, _BECAUSE, NotImplementedError)
create_nested_block_mask = import_only_function("create_nested_block_mask", _MODULE, _BECAUSE, NotImplementedError)
flex_attention = import_only_function("flex_attention", _MODULE, _BECAUSE, NotImplementedError)
noop_mask = import_only_function("noop_mask", _MODULE, _BECAUSE, NotImplementedError)
or_masks = import_only_function("or_masks", _MODULE, _BECAUSE, NotImplementedError)


class AuxOutput(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class AuxRequest(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class BlockMask(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FlexKernelOptions(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
