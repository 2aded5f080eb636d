"""Recording an operator: its node, with the edges, saved tensors and constants that the generated layout says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch import native
from .._dispatch.operator import Operator
from .._state import TLS
from .._tensor import Tensor
from .again import LARGE, SMALL, Recomputed, put_away
from .keeping import keep, keep_output
from .node import attach, attach_many, edge
from .saved import Layout


def recorder(
    op: Operator, cls: type, params: int, inputs: tuple, saved: tuple, consts: tuple, outputs: int = 0
) -> Callable:
    """What makes the node of one call: a function of the result and the arguments, which gives the result.

    inputs: numbers of the parameters that get edges, each of a list one. saved: (parameter, or -1, -2, ... for the results; the inputs of which one
    must have an edge, none for always). consts: (parameter or result; attribute, of each of a list, or None, or 0 for the length). outputs: 0 one,
    1 several, 2 several of which the first alone has a history.
    """
    single = outputs == 0
    cls.layout = Layout(op, saved, consts)
    cls.is_cheap = "recomputed" in op.tags
    differentiable = (0,) if outputs == 2 else None

    def record(out: Any, *args: Any) -> Any:
        if not TLS.grad_enabled:
            return out
        edges: list[Any] = []
        present = []
        for index in inputs:
            value = args[index]
            kind = value.__class__
            if kind is Tensor and value._base is None:  # most are
                before = value._node
                one = None if before is None else (before, 0 if len(before.outputs) < 2 else value._nr)
            elif kind is list or kind is tuple:
                found = [edge(item) for item in value]
                edges += found
                present.append(any(found))
                continue
            else:
                one = edge(value)
            edges.append(one)
            present.append(one is not None)
        if True not in present:
            return out
        node = cls()
        node.edges = tuple(edges)
        node.saved = None
        if saved:
            node.saved = kept = []
            for source, needs in saved:
                if needs and not any([present[i] for i in needs]):
                    kept.append(None)
                elif source >= 0:
                    kept.append(keep(args[source]))
                else:
                    kept.append(keep_output(out) if single else keep_output(out[-1 - source], -1 - source))
        node.consts = None
        if consts:
            found = []
            for source, attribute in consts:
                value = args[source] if source >= 0 else out if single else out[-1 - source]
                found.append(value if attribute is None else _constant(value, attribute))
            node.consts = tuple(found)
        return attach(out, node) if single else attach_many(out, node, differentiable)

    name = op.full_name.replace(".", "_")
    record.__name__ = record.__qualname__ = f"_record_{name}"
    # A gradient of sparse layout has views of the one that arrives for values.
    sparse = any(param.name in ("sparse", "sparse_grad") for param in op.params)
    return native.recorder(record, name, cls, params, inputs, saved, consts, outputs, not sparse)


def _constant(value: Any, attribute: Any) -> Any:
    if attribute == 0:
        return len(value)
    if value.__class__ is list:
        return [getattr(item, attribute) for item in value]
    return getattr(value, attribute, None)


if native.extension is not None:
    native.extension.connect_again(put_away, Recomputed, LARGE, SMALL)
