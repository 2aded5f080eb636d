"""A program as a graph, with the state and the constants that it takes."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .. import nn
from .._tensor import Tensor
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ._printing import readable
from .decomp_utils import CustomDecompTable
from .graph_signature import ExportGraphSignature

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


@dataclasses.dataclass
class ModuleCallSignature:
    """The inputs and outputs of a call of a module."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program, by its name, and the signature of its call where that is kept."""

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclasses.dataclass
class CallSpec:
    """How arguments become the leaves that the graph takes, and its results what the program gives."""

    in_spec: Any
    out_spec: Any


class _Lifted(GraphModule):
    """The module of a graph that takes parameters, buffers and constants as inputs."""

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The source with the geometry of each tensor; also printed."""
        text = readable(self)
        if print_output:
            print(text)
        return text


class ExportedProgram:
    """What `torch.export.export` gives.

    The graph takes parameters, buffers and constants as inputs before the program's own; `graph_signature` says which is which. `module()` gives it back as a module.
    """

    def __init__(
        self,
        root: Any,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        range_constraints: dict[Any, Any],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
        constants: dict[str, Any] | None = None,
        *,
        verifiers: list[type] | None = None,
    ) -> None:
        self._graph_module: GraphModule = _Lifted(root, graph)
        self._graph_signature = graph_signature
        self._state_dict = state_dict
        self._range_constraints = range_constraints
        self._module_call_graph = module_call_graph
        self._example_inputs = example_inputs
        self._constants = constants or {}
        self._guards: list[Any] = []
        self._symbols: list[Any] = []
        self._apart: Callable[..., ExportedProgram] | None = None
        self._dialect = "TRAINING"

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module that takes all inputs."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the inputs and outputs of the graph stand for."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """The parameters and persistent buffers: those of the module that was exported."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """The constant tensors and the buffers that are not persistent."""
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """The same as `constants`."""
        return self._constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """The least and the greatest value of each symbol."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The signature of the whole program, as that of the module without a name."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments that the program was run with."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value: Any) -> None:
        if value is not None and not (
            isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], dict)
        ):
            raise ValueError(
                "Example inputs should be a tuple containing example arguments (as a tuple), and example kwargs (as a dictionary)."
            )
        self._example_inputs = value

    @property
    def call_spec(self) -> CallSpec:
        """How the program is called."""
        signature = self._module_call_graph[0].signature
        if signature is None:
            raise AssertionError("the program has no signature")
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def dialect(self) -> str:
        """`TRAINING`: operators may write to tensors, and are those that the program called; `ATEN` after `run_decompositions`."""
        return self._dialect

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters with their names."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        others = self.graph_signature.non_persistent_buffers
        for name in self.graph_signature.buffers:
            yield name, (self.constants if name in others else self.state_dict)[name]

    def module(self, check_guards: bool = True) -> GraphModule:
        """The program as a module with its parameters and buffers, which are shared, that takes the program's arguments.

        check_guards: refuse arguments of other sizes than the program was exported for.
        """
        from ._program import as_module

        return as_module(self, check_guards)

    def run_decompositions(
        self, decomp_table: dict[Any, Any] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The program with operators that are composed of others taken apart; the same program for an empty table.

        NotImplementedError for a table with entries.
        """
        if self._apart is None:
            raise NotImplementedError("run_decompositions: only what torch.export.export gives is taken apart")
        return self._apart(self, decomp_table)

    def validate(self) -> None:
        """Check the graph. RuntimeError where it is not in order."""
        self.graph.lint()
        names = [node.name for node in self.graph.nodes if node.op == "placeholder"]
        if names != [spec.arg.name for spec in self.graph_signature.input_specs]:
            raise RuntimeError("the inputs of the graph are not those of its signature")

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedProgram:
        made = object.__new__(ExportedProgram)
        memo[id(self)] = made
        made.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return made

    def __str__(self) -> str:
        code = readable(self._graph_module).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"
        )

    __repr__ = object.__repr__


def default_decompositions() -> dict[Any, Any]:
    """An empty table that stands for all composites: what they are made of is in the operators themselves."""
    return CustomDecompTable()
