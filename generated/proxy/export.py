# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.export, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.export import (
    Dim,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, lazy_children

_MODULE = "torch.export"
_BECAUSE = "there is no symbolic tracing"
default_decompositions = import_only_function("default_decompositions", _MODULE, _BECAUSE, NotImplementedError)
dims = import_only_function("dims", _MODULE, _BECAUSE, NotImplementedError)
draft_export = import_only_function("draft_export", _MODULE, _BECAUSE, NotImplementedError)
export = import_only_function("export", _MODULE, _BECAUSE, NotImplementedError)
export_for_training = import_only_function("export_for_training", _MODULE, _BECAUSE, NotImplementedError)
load = import_only_function("load", _MODULE, _BECAUSE, NotImplementedError)
register_dataclass = import_only_function("register_dataclass", _MODULE, _BECAUSE, NotImplementedError)
save = import_only_function("save", _MODULE, _BECAUSE, NotImplementedError)
unflatten = import_only_function("unflatten", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class AdditionalInputs(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class CustomDecompTable(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ExportBackwardSignature(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ExportedProgram(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ExportGraphSignature(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FlatArgsAdapter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ModuleCallEntry(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ModuleCallSignature(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ShapesCollection(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class UnflattenedModule(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
