# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.package, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, returning

_MODULE = "torch.package"
_BECAUSE = "packaging of models is not implemented"
is_from_package = returning("is_from_package", _MODULE, False)


class PackageExporter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PackageImporter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
