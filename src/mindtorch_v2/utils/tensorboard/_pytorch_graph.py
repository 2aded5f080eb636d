"""The graph of a module: its operators in the scopes of the modules that call them, recorded while it runs."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ... import nn
from ..._planning.recorder import Recorder
from ..._state import TLS
from ..._tensor import Tensor
from ...nn.modules._hooks import register_module_forward_hook, register_module_forward_pre_hook
from .summary import _shape

__all__ = ["graph"]


class _Observer(Recorder):
    """Watches a real run, and makes a node of each operator and of each tensor that comes from outside."""

    def __init__(self, root: nn.Module) -> None:
        super().__init__(on_meta=False)
        self.nodes: list[Any] = []
        self.names: dict[int, str] = {}  # of nodes, by the tensor that they make
        self.kept: list[Tensor] = []  # so that numbers of tensors stay theirs
        self.root = type(root).__name__
        self.paths = {
            id(module): "/".join(filter(None, (self.root, *name.split(".")))) for name, module in root.named_modules()
        }
        self.counts: dict[str, int] = {}

    def add(self, name: str, kind: str, tensor: Tensor, inputs: list[str]) -> None:
        """A node that makes a tensor."""
        self.counts[name] = number = self.counts.get(name, -1) + 1
        name = f"{name}_{number}" if number else name
        shape = AttrValue(list=AttrValue.ListValue(shape=[_shape(tensor.shape)]))
        self.nodes.append(NodeDef(name=name, op=kind, input=inputs, attr={"_output_shapes": shape}))
        self.names[id(tensor)] = name
        self.kept.append(tensor)

    def ran(self, op: Any, args: tuple, result: Any, written: Any = None) -> None:
        given = [
            item
            for i in op.tensors
            for item in (args[i] if args[i].__class__ is list else (args[i],))
            if isinstance(item, Tensor)
        ]
        inputs = []
        for tensor in given:
            if id(tensor) not in self.names:
                self.add(f"{self.modules[-1] or self.root}/constant", "prim::Constant", tensor, [])
            inputs.append(self.names[id(tensor)])
        for made in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(made, Tensor):
                self.add(f"{self.modules[-1] or self.root}/{op.name}", f"aten::{op.name}", made, inputs)


def graph(model: nn.Module, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> Any:
    """The graph of `model(*args)`, which runs, without a gradient."""
    args = args if isinstance(args, (tuple, list)) else (args,)
    observer = _Observer(model)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        observer.add("/".join((observer.root, *name.split("."))), "prim::GetAttr", tensor, [])
    for tensor in args:
        if isinstance(tensor, Tensor):
            observer.add("input", "IO Node", tensor, [])
    hooks = (
        register_module_forward_pre_hook(
            lambda module, _: observer.modules.append(observer.paths.get(id(module), type(module).__name__))
        ),
        register_module_forward_hook(lambda module, _, __: observer.modules.pop() and None, always_call=True),
    )
    before, TLS.grad_enabled = TLS.grad_enabled, False
    try:
        with observer:
            result = model(*args)
    finally:
        TLS.grad_enabled = before
        for hook in hooks:
            hook.remove()
    for tensor in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(tensor, Tensor):
            observer.add(
                "output", "IO Node", tensor, [observer.names[id(tensor)]] if id(tensor) in observer.names else []
            )
    if verbose:
        print("\n".join(f"{node.name} = {node.op}({', '.join(node.input)})" for node in observer.nodes))
    return GraphDef(node=observer.nodes, versions=VersionDef(producer=22))
