"""`parallelize_module`: a plan of styles, by the names of submodules."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from ...device_mesh import DeviceMesh, _mesh_resources
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """Apply a style to a module, or by the names of submodules (with `*` and `?` in each part) several.

    Args:
        device_mesh: of one dimension.
        src_data_rank: whose parameters are taken; None: each rank's own.

    Raises:
        ValueError: for a mesh of several dimensions, or an empty name.
        TypeError: for a plan that is neither a style nor a dict.
    """
    mesh = device_mesh if device_mesh is not None else _mesh_resources.get_current_mesh()
    if mesh.ndim > 1:
        raise ValueError(
            f"Tensor Parallel only accepts a 1D DeviceMesh, but found {mesh.ndim}D!"
            'If you have a 2-D or N-D device_mesh, consider passing in device_mesh["tp"]'
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {type(parallelize_plan)} found!")  # fmt: skip
    for path, style in parallelize_plan.items():
        if not path:
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        atom, _, rest = path.partition(".")
        found = [child for name, child in module.named_children() if fnmatch(name, atom)]
        if not atom:
            raise ValueError(f"Expect module path to be non-empty, but got empty string in '{path}'")
        if not found:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{atom}' in module {module}, skipping this plan entry.",
                stacklevel=2,
            )
        for child in found:
            parallelize_module(child, mesh, {rest: style} if rest else style, src_data_rank=src_data_rank)
    return module
