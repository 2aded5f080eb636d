"""What the inputs and outputs of an exported graph stand for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

__all__ = [
    "ArgumentSpec",
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "TokenArgument",
]


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token that orders effects. No graph of this library has one."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """An integer that follows from the sizes of inputs, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A float that follows from the sizes of inputs, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A truth value that follows from the sizes of inputs, by the name of its node."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class of TorchScript. No graph of this library has one."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A number, string, None or the like, with its value."""

    name: str
    value: Any


ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)


def _value_or_name(argument: ArgumentSpec) -> Any:
    return argument.value if isinstance(argument, ConstantArgument) else argument.name


class InputKind(Enum):
    """What an input of a graph is."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """An input: its kind, its node, and the name in the module where it is of the module. AssertionError for a buffer that does not say whether it is persistent."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


class OutputKind(Enum):
    """What an output of a graph is."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclasses.dataclass
class OutputSpec:
    """An output: its kind, its node, and what is written to by it."""

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs are gradients, and of what."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """What every input and output of a graph stands for, in the graph's order."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, kind: InputKind) -> dict[str, str]:
        """What inputs of a kind stand for, by the names of their nodes."""
        return {
            spec.arg.name: spec.target for spec in self.input_specs if spec.kind is kind and spec.target is not None
        }

    def _outputs(self, kind: OutputKind) -> dict[str, str]:
        """What outputs of a kind are written to, by the names of their nodes."""
        return {spec.arg.name: spec.target for spec in self.output_specs if spec.kind is kind and spec.target}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters in the module."""
        return tuple(self._inputs(InputKind.PARAMETER).values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers in the module."""
        return tuple(self._inputs(InputKind.BUFFER).values())

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of the buffers that are not in the state dict."""
        return tuple(str(spec.target) for spec in self.input_specs if spec.persistent is False)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of the tensors that are constants of the program."""
        return tuple(self._inputs(InputKind.CONSTANT_TENSOR).values())

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """The names of objects of TorchScript's classes."""
        return tuple(self._inputs(InputKind.CUSTOM_OBJ).values())

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The arguments of the program: names of nodes, and the values of constants."""
        return tuple(_value_or_name(spec.arg) for spec in self.input_specs if spec.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The results of the program: names of nodes, and the values of constants."""
        return tuple(
            _value_or_name(spec.arg)
            for spec in self.output_specs
            if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        )

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """The parameters by the names of their nodes."""
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """The buffers by the names of their nodes."""
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """The constants by the names of their nodes."""
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """The objects of TorchScript's classes by the names of their nodes."""
        return self._inputs(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """The buffers that outputs are written to, by the names of these outputs."""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """The parameters that outputs are written to, by the names of these outputs."""
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """The arguments that outputs are written to, by the names of these outputs."""
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Which outputs are gradients; None where there is no loss among them."""
        loss = [spec.arg.name for spec in self.output_specs if spec.kind is OutputKind.LOSS_OUTPUT]
        if not loss:
            return None
        return ExportBackwardSignature(
            self._outputs(OutputKind.GRADIENT_TO_PARAMETER), self._outputs(OutputKind.GRADIENT_TO_USER_INPUT), loss[0]
        )

    @property
    def assertion_dep_token(self) -> Mapping[int, str] | None:
        """None: no graph of this library has one."""
        return None

    @property
    def input_tokens(self) -> tuple[str, ...]:
        """The names of the tokens among the inputs."""
        return tuple(spec.arg.name for spec in self.input_specs if spec.kind is InputKind.TOKEN)

    @property
    def output_tokens(self) -> tuple[str, ...]:
        """The names of the tokens among the outputs."""
        return tuple(spec.arg.name for spec in self.output_specs if spec.kind is OutputKind.TOKEN)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Let `new` be the name wherever `old` was."""
        for spec in (*self.input_specs, *self.output_specs):
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    def __str__(self) -> str:
        inputs = "".join(f"{spec}\n" for spec in self.input_specs)
        outputs = "".join(f"{spec}\n" for spec in self.output_specs)
        return f"\n# inputs\n{inputs}\n# outputs\n{outputs}"
