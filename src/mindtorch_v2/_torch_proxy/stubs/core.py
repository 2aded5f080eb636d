"""Names of `torch._C` that are questions about the tape, modes and tensors, which mindtorch_v2 can answer."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from mindtorch_v2._autograd.engine import Walk
from mindtorch_v2._autograd.modes import is_grad_enabled
from mindtorch_v2._autograd.node import Node
from mindtorch_v2._autograd.saved import SavedTensor
from mindtorch_v2._state import TLS
from mindtorch_v2._tensor import Tensor, counter

__all__ = ["SavedTensor", "is_grad_enabled"]


class _WeakTensorRef:
    """A weak reference to a tensor that says whether the tensor is gone."""

    def __init__(self, tensor: Tensor) -> None:
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._reference() is None


def _will_engine_execute_node(node: Node) -> bool:
    """Whether the backward pass that is running runs a node. RuntimeError when none is running."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    if not Walk.running():
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    found = Walk.executes(node)
    if found is None:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is currently not supported."
        )
    return found


def _current_graph_task_id() -> int:
    """What tells the backward pass that is running from others, -1 outside of one."""
    running = Walk.running()
    return hash(running[0]) if running else -1


def _current_graph_task_execution_order() -> list:
    """The nodes that the backward pass that is running still runs, in order."""
    if not Walk.running():
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    return Walk.remaining()


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether saved-tensor hooks may be entered."""
    return TLS.hooks_refusal is None


def _saved_tensors_hooks_disable(error_message: str, fail_if_non_empty: bool = True) -> None:
    """Refuse saved-tensor hooks from now on."""
    TLS.hooks_refusal = error_message


def _saved_tensors_hooks_enable() -> None:
    """Let saved-tensor hooks be entered again."""
    TLS.hooks_refusal = None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """Why saved-tensor hooks are refused, or None."""
    return TLS.hooks_refusal


def _unsafe_set_version_counter(tensors: Any, versions: Any) -> None:
    """Set how often tensors were changed in place."""
    for tensor, version in zip(
        *(((tensors,), (versions,)) if isinstance(tensors, Tensor) else (tensors, versions)), strict=True
    ):
        counter(tensor)._v = version


_sequence = itertools.count()


def _get_sequence_nr() -> int:
    """A number that grows."""
    return next(_sequence)


def _push_saved_tensors_default_hooks(pack_hook: Any, unpack_hook: Any) -> None:
    """Enter saved-tensor hooks."""
    from mindtorch_v2.autograd.graph import saved_tensors_hooks

    saved_tensors_hooks(pack_hook, unpack_hook).__enter__()


def _pop_saved_tensors_default_hooks() -> None:
    """Leave the innermost saved-tensor hooks."""
    from mindtorch_v2.autograd.graph import saved_tensors_hooks

    saved_tensors_hooks.__exit__(saved_tensors_hooks(lambda t: t, lambda t: t))


def gather_traceback(python: bool = True, script: bool = False, cpp: bool = False) -> list:
    """Where the caller is, for `symbolize_tracebacks`."""
    import traceback

    return traceback.extract_stack()[:-1]


def symbolize_tracebacks(tracebacks: list) -> list:
    """Tracebacks as lists of dictionaries with `filename`, `line` and `name`, the innermost frame first."""
    return [
        [{"filename": f.filename, "line": f.lineno, "name": f.name} for f in reversed(trace)] for trace in tracebacks
    ]
