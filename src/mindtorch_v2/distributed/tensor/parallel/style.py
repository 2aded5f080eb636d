"""How a module's parameters, inputs and outputs lie on the ranks of a mesh's dimension."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from ...device_mesh import DeviceMesh
from ...placements import Placement, Replicate, Shard
from .._api import DTensor, distribute_module, distribute_tensor

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel"]  # fmt: skip

nn = torch.nn
Tensor = torch.Tensor


class ParallelStyle(ABC):
    """What `parallelize_module` does to a module."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any: ...


def _placed(module: Any, name: str, mesh: DeviceMesh, placements: Sequence[Placement], source: int | None) -> None:
    parameter = module._parameters.get(name)
    if parameter is not None and not isinstance(parameter, DTensor):
        made = distribute_tensor(parameter.detach(), mesh, placements, src_data_rank=source)
        module.register_parameter(name, nn.Parameter(made, requires_grad=parameter.requires_grad))


def _to(value: Any, mesh: DeviceMesh, layouts: Any, desired: Any) -> Any:
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, layouts, run_check=False)
    return value.redistribute(placements=desired) if tuple(value.placements) != tuple(desired) else value


class _OneInput(ParallelStyle):
    """A style of modules with one input and one output."""

    input_layouts: tuple[Placement, ...]
    output_layouts: tuple[Placement, ...]
    desired_input_layouts: tuple[Placement, ...]
    use_local_output: bool

    def _input(self, module: Any, inputs: tuple, mesh: DeviceMesh) -> tuple:
        return (_to(inputs[0], mesh, self.input_layouts, self.desired_input_layouts), *inputs[1:])

    def _output(self, module: Any, output: Any, mesh: DeviceMesh) -> Any:
        if tuple(output.placements) != self.output_layouts:
            output = output.redistribute(placements=self.output_layouts)
        return output.to_local() if self.use_local_output else output

    def _partition(self, name: str, module: Any, mesh: DeviceMesh) -> None:
        raise NotImplementedError

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        return distribute_module(module, device_mesh, self._partition, self._input, self._output)


class ColwiseParallel(_OneInput):
    """The outputs' features of a Linear, or the columns of an Embedding, in parts: the output is Shard(-1) unless `output_layouts` says more. The input is whole on each rank
    unless `input_layouts` says otherwise. `use_local_output`: give the rank's piece as a plain tensor.
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output

    def _partition(self, name: str, module: Any, mesh: DeviceMesh) -> None:
        if isinstance(module, nn.Linear):
            for key in list(module._parameters):
                _placed(module, key, mesh, [Shard(0)], self.src_data_rank)
        elif isinstance(module, nn.Embedding):
            _placed(module, "weight", mesh, [Shard(1)], self.src_data_rank)
        else:
            raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")

    def _output(self, module: Any, output: Any, mesh: DeviceMesh) -> Any:
        wanted = tuple(Shard(p.dim % output.dim()) if isinstance(p, Shard) else p for p in self.output_layouts)
        if tuple(output.placements) != wanted:
            output = output.redistribute(placements=wanted)
        return output.to_local() if self.use_local_output else output

    def __repr__(self) -> str:
        return f"ColwiseParallel(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, use_local_output={self.use_local_output})"


class RowwiseParallel(_OneInput):
    """The inputs' features of a Linear, or the rows of an Embedding, in parts: the output is summed over the ranks, whole on each unless `output_layouts` says otherwise. The input is Shard(-1),
    of an Embedding whole, unless `input_layouts` says otherwise.
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output

    def _partition(self, name: str, module: Any, mesh: DeviceMesh) -> None:
        if isinstance(module, nn.Linear):
            _placed(module, "weight", mesh, [Shard(1)], self.src_data_rank)
            _placed(module, "bias", mesh, [Replicate()], self.src_data_rank)
        else:
            _placed(module, "weight", mesh, [Shard(0)], self.src_data_rank)

    def _input(self, module: Any, inputs: tuple, mesh: DeviceMesh) -> tuple:
        given = inputs[0]
        places = tuple(Shard(p.dim % given.dim()) if isinstance(p, Shard) else p for p in self.input_layouts)
        desired = tuple(Shard(p.dim % given.dim()) if isinstance(p, Shard) else p for p in self.desired_input_layouts)
        return (_to(given, mesh, places, desired), *inputs[1:])

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        if isinstance(module, nn.Linear):
            self.desired_input_layouts = (Shard(-1),)
        elif isinstance(module, nn.Embedding):
            self.desired_input_layouts = (Replicate(),)
        else:
            raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")
        return super()._apply(module, device_mesh)

    def __repr__(self) -> str:
        return f"RowwiseParallel(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, use_local_output={self.use_local_output})"


class SequenceParallel(_OneInput):
    """A normalization or dropout whose input [batch, sequence, features] is in parts of the sequence, `sequence_dim`; parameters are whole on each rank."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _partition(self, name: str, module: Any, mesh: DeviceMesh) -> None:
        for key in list(module._parameters):
            _placed(module, key, mesh, [Replicate()], self.src_data_rank)

    def _input(self, module: Any, inputs: tuple, mesh: DeviceMesh) -> tuple:
        given = inputs[0]
        if not isinstance(given, (DTensor, Tensor)):
            raise ValueError(f"expecting input of {module} to be a torch.Tensor or DTensor, but got {given}")
        return (_to(given, mesh, self.sequence_sharding, self.sequence_sharding), *inputs[1:])

    def _output(self, module: Any, output: Any, mesh: DeviceMesh) -> Any:
        return output.to_local() if self.use_local_output else output

    def __repr__(self) -> str:
        return (
            f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"
        )


def _several(layouts: Any) -> tuple:
    return (layouts,) if isinstance(layouts, Placement) else tuple(layouts) if layouts is not None else ()


class PrepareModuleInput(ParallelStyle):
    """What a module gets, as a DTensor: `input_layouts` says how plain tensors lie (None: they stay plain), `desired_input_layouts` how the module gets them; the `kwarg` ones by name.
    `use_local_output`: it gets its rank's pieces.

    Raises:
        AssertionError, ValueError: for layouts without desired ones, or of another number.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = None if input_layouts is None else _several(input_layouts)
        self.desired_input_layouts = None if desired_input_layouts is None else _several(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _one(self, value: Any, mesh: DeviceMesh, layout: Any, desired: Any) -> Any:
        if layout is None:
            return value
        if not isinstance(value, Tensor):
            raise AssertionError(f"expecting input to be a torch.Tensor, but got {value}")
        made = _to(
            value,
            mesh,
            (layout,),
            value.placements if desired is None and isinstance(value, DTensor) else (desired or layout,),
        )
        return made.to_local() if self.use_local_output else made

    def _inputs(self, inputs: Any, mesh: DeviceMesh) -> Any:
        if self.input_layouts is None:
            return inputs
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(given) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        assert self.desired_input_layouts is not None
        return tuple(
            self._one(*row) for row in zip(given, [mesh] * len(given), self.input_layouts, self.desired_input_layouts)
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def before(mod: Any, inputs: tuple, kwargs: dict) -> tuple[Any, dict]:
            named = dict(kwargs)
            for name, layout in self.input_kwarg_layouts.items():
                if kwargs.get(name) is not None:
                    named[name] = self._one(
                        kwargs[name], device_mesh, layout, self.desired_input_kwarg_layouts.get(name)
                    )
            return self._inputs(inputs, device_mesh), named

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """What a module gives, under other placements: `output_layouts` says how plain tensors lie (None: they stay as they are), `desired_output_layouts` how they are to lie.
    `use_local_output`: as plain tensors.

    Raises:
        AssertionError, ValueError: for layouts of another number.
    """

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.output_layouts = _several(output_layouts)
        self.desired_output_layouts = _several(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _outputs(self, outputs: Any, mesh: DeviceMesh) -> Any:
        given = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(given) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = []
        for value, layout, desired in zip(given, self.output_layouts, self.desired_output_layouts):
            if layout is not None:
                value = _to(value, mesh, (layout,), (desired or layout,))
                value = value.to_local() if self.use_local_output else value
            made.append(value)
        return made[0] if len(made) == 1 else tuple(made)

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        module.register_forward_hook(lambda mod, inputs, outputs: self._outputs(outputs, device_mesh))
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput of one module."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        self.prepare_module_input._apply(module, device_mesh)
        self.prepare_module_output._apply(module, device_mesh)
        return module
