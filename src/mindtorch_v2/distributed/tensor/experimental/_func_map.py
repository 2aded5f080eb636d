"""`local_map`: functions of plain tensors, called with DTensors' pieces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mindtorch_v2._tensor import Tensor
from mindtorch_v2.utils._pytree import tree_flatten, tree_unflatten

from ...device_mesh import DeviceMesh
from .. import DTensor

__all__ = ["local_map"]


def local_map(
    func: Callable | None = None,
    out_placements: Any = None,
    in_placements: Sequence[Any] | None = None,
    in_grad_placements: Sequence[Any] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable:
    """The function over DTensors: it is called with this rank's pieces, and its results are pieces of DTensors. Without `func`: a decorator.

    Args:
        out_placements: of each result in turn, a tuple; one for a single result. None for what is no tensor.
        in_placements: of each argument, where the pieces have to lie; any unless given. in_grad_placements: where those of gradients lie.
        device_mesh: of the results; that of the first DTensor unless given.
        redistribute_inputs: move arguments to where they have to lie, in place of the error.

    Raises:
        ValueError: by the function, for an argument that lies elsewhere.
        AssertionError: by the function, for as many placements as there are not arguments or results.
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements, in_grad_placements=in_grad_placements,
            device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip
    function = func

    @functools.wraps(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        given, spec = tree_flatten(args)
        if in_placements is not None and len(in_placements) != len(given):
            raise AssertionError(
                f"in_placements length {len(in_placements)} does not match the number of input args {len(given)}!"
            )
        mesh = device_mesh or next((one.device_mesh for one in given if isinstance(one, DTensor)), None)
        pieces = []
        for i, one in enumerate(given):
            asked, grads = (None if many is None else (many[i],) for many in (in_placements, in_grad_placements))
            pieces.append(_piece(one, asked, grads, redistribute_inputs))
        made = function(*tree_unflatten(pieces, spec), **kwargs)
        if not any(isinstance(one, DTensor) for one in given):
            return made
        results, spec = tree_flatten(made)
        places = out_placements if isinstance(out_placements, tuple) else (out_placements,)
        if len(results) != len(places):
            raise AssertionError(
                f"local_map requires one PlacementType be provided for each output value, received {len(places)} out_placements but {len(results)} is expected!"
            )
        return tree_unflatten([_whole(one, mesh, place) for one, place in zip(results, places)], spec)

    return mapped


def _piece(one: Any, asked: tuple | None, grads: tuple | None, moves: bool) -> Any:
    """This rank's piece of an argument. `asked` and `grads` have its placements and those of its gradient, where any are given."""
    if not isinstance(one, DTensor):
        if asked is not None and asked[0] is not None and not isinstance(one, Tensor):
            raise AssertionError(f"Non-Tensor input {one} expects None placements but received {asked[0]}!")
        return one
    if asked is not None:
        if asked[0] is None:
            raise AssertionError(f"DTensor input {one} expects placements but received {asked[0]}!")
        wanted = tuple(asked[0])
        if one.placements != wanted:
            if not moves:
                raise ValueError(
                    f"arg {one} in local_map has a mismatched placements: arg placements is {one.placements} but the input placements is {wanted}! "
                    "If redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
                )
            one = one.redistribute(placements=wanted)
    if grads is None:
        return one.to_local()
    if grads[0] is None:
        raise AssertionError(f"DTensor input {one} expects in grad placements but received {grads[0]}!")
    return one.to_local(grad_placements=tuple(grads[0]))


def _whole(one: Any, mesh: DeviceMesh | None, places: Any) -> Any:
    """The DTensor of a result's pieces."""
    if isinstance(one, DTensor):
        raise AssertionError(f"torch.Tensor output expected but received {type(one)}: {one}")
    if isinstance(one, Tensor):
        return DTensor.from_local(one, mesh, places, run_check=False)
    if places is not None:
        raise AssertionError(f"Non-tensor output {one} expects None placements but received {places}!")
    return one
