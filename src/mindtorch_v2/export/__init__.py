"""Programs as graphs of operators, with their state: `torch.export`.

A module runs once for example arguments (`_recording`), or several times where sizes may differ (`_dynamic`); `_building` makes the graph, `_program` the module that runs it.
"""

from __future__ import annotations

from . import decomp_utils, dynamic_shapes, exported_program, graph_signature
from ._absent import FlatArgsAdapter, UnflattenedModule, draft_export, load, register_dataclass, save, unflatten
from ._export import export, export_for_training
from .decomp_utils import CustomDecompTable
from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature

__all__ = [
    "AdditionalInputs",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "decomp_utils",
    "default_decompositions",
    "dims",
    "draft_export",
    "dynamic_shapes",
    "export",
    "export_for_training",
    "exported_program",
    "graph_signature",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]
