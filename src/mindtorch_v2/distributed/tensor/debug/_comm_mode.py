"""Counting collectives by module, forward and backward."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

import mindtorch_v2 as torch

from ....nn.modules.module import Module, register_module_forward_pre_hook
from ....ops import OpOverload
from ....utils._python_dispatch import TorchDispatchMode
from ....utils._pytree import tree_leaves
from ....utils.module_tracker import ModuleTracker
from ..._watching import WATCHERS
from .._api import DTensor

_WHOLE = "Global"


def _is_trivial(function: OpOverload) -> bool:
    """Whether an operator gives what it is given, in another shape or as another type."""
    return function.is_view or any("conversion" in op.tags for op in function._overloadpacket._operators)


class CommDebugMode(TorchDispatchMode):
    """Inside the context, collectives and operators are counted, by module. Entering it again begins anew."""

    def __init__(self) -> None:
        super().__init__()
        self._reset()

    def _reset(self) -> None:
        self.comm_counts: dict[Any, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[Any, int]]] = {}
        self.comm_module_operation_counts: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.advanced_module_tracker = ModuleTracker()
        self._modules: dict[str, Module] = {}  # in the order in which they run
        self._forward: list[str] = []  # those whose forward pass runs, with all their hooks
        self._handles: list[Any] = []

    def __enter__(self) -> CommDebugMode:
        self._reset()
        self.advanced_module_tracker.__enter__()
        self._handles = [register_module_forward_pre_hook(self._see)]
        WATCHERS.append(self._count)
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        WATCHERS.remove(self._count)
        for handle in self._handles:
            handle.remove()
        self.advanced_module_tracker.__exit__(*exc)

    def _see(self, module: Module, args: Any) -> None:
        name = self.advanced_module_tracker._name(module)
        if name not in self._modules:
            self._modules[name] = module
            self._handles.append(module.register_forward_hook(self._leave, always_call=True))
        self._forward.append(name)

    def _leave(self, module: Module, args: Any, output: Any) -> None:
        self._forward.pop()

    def _where(self) -> tuple[str, list[str]]:
        tracker = self.advanced_module_tracker
        if tracker.is_bw and not self._forward:
            return "backward", list(tracker.parents)
        return "forward", [_WHOLE, *dict.fromkeys(self._forward)]

    def _count(self, namespace: str, name: str) -> None:
        function = getattr(getattr(torch.ops, namespace), name)
        self.comm_counts[function] += 1
        phase, parents = self._where()
        for parent in parents:
            counts = self.comm_module_counts.setdefault(
                parent, {"forward": defaultdict(int), "backward": defaultdict(int)}
            )
            counts[phase][function] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        phase, parents = self._where()
        innermost = max(parents, key=lambda one: -1 if one == _WHOLE else one.count(".") + 1)
        lists = self.comm_module_operation_counts.setdefault(innermost, {"forward": [], "backward": []})
        pieces = [one for one in tree_leaves((args, kwargs or {})) if isinstance(one, DTensor)]
        lists[phase].append(
            {
                "name": func,
                "input_shape": [one.shape for one in pieces],
                "input_sharding": [one.placements for one in pieces],
                "device_mesh": str(pieces[0].device_mesh) if pieces else "",
            }
        )
        return func(*args, **(kwargs or {}))

    def get_total_counts(self) -> int:
        """How many collectives have run."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[Any, int]:
        """How many collectives of each kind have run, by their operators (`torch.ops.c10d_functional.all_reduce`)."""
        return self.comm_counts

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """The parameters of each module that has run and has some of its own."""
        found = {name: dict(module.named_parameters(recurse=False)) for name, module in self._modules.items()}
        return {name: own for name, own in found.items() if own}

    def get_sharding_info(self) -> dict[str, Any]:
        """The placements of each parameter in pieces of the modules that have run."""
        return {
            f"{name}.{key}": value.placements
            for name, own in self.get_parameter_info().items()
            for key, value in own.items()
            if isinstance(value, DTensor)
        }

    def _operations(self, name: str, phase: str, noise_level: int) -> list[dict[str, Any]]:
        if noise_level < 1:
            return []
        made = self.comm_module_operation_counts.get(name, {}).get(phase, [])
        if noise_level == 1:
            made = [one for one in made if one["input_sharding"]]
        if noise_level < 3:
            made = [one for one in made if not _is_trivial(one["name"])]
        return made

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """A text with the collectives of each module, forward and backward.

        noise_level: 0 collectives alone; 1 modules' classes, parameters and operators of tensors in pieces too; 2 all operators but trivial ones; 3 all.
        """
        lines: list[str] = []
        for name in (_WHOLE, *self._modules):
            depth = 0 if name == _WHOLE else 2 * (name.count(".") + 1)
            indent = "  " * depth
            lines.append(indent + name)
            module = self._modules.get(name)
            if noise_level > 0 and module is not None:
                lines.append(f"{indent}*module type: {str(type(module))[1:-1]}")
                own = {
                    key: value for key, value in module.named_parameters(recurse=False) if isinstance(value, DTensor)
                }
                if own:
                    lines.append(f"{indent}*Parameter List")
                lines += [f"{indent} *{key}: {value.placements}" for key, value in own.items()]
            for phase, title in (("forward", "FORWARD PASS"), ("backward", "BACKWARD PASS")):
                counts = self.comm_module_counts.get(name, {}).get(phase, {})
                operations = self._operations(name, phase, noise_level)
                if not counts and not operations:
                    continue
                lines.append(f"{indent}  {title}")
                lines += [f"\033[1;33m{indent}    *{function}: {count}\033[0m" for function, count in counts.items()]
                for one in operations:
                    lines.append(f"\033[1;33m{indent}    **{one['name']}\033[0m")
                    if one["input_sharding"]:
                        lines.append(f"\033[1;31m{indent}      shape: {one['input_shape']}\033[0m")
                        lines.append(f"\033[1;31m{indent}      sharding: {one['input_sharding']}\033[0m")
                        lines.append(f"\033[1;31m{indent}      device mesh: {one['device_mesh']}\033[0m")
        return "\n".join(lines) + "\n"

    def log_comm_debug_tracing_table_to_file(self, file_name: str = "comm_mode_log.txt", noise_level: int = 3) -> None:
        """Append the table to a file."""
        table = re.sub(r"\x1b\[[0-9;]*m", "", self.generate_comm_debug_tracing_table(noise_level))
        with open(file_name, "a") as file:
            file.write(table)

    def generate_json_dump(self, file_name: str = "comm_mode_log.json", noise_level: int = 3) -> None:
        """Write what the table has as JSON, one object in another as the modules are."""
        made: dict[str, Any] = {}
        for name in (_WHOLE, *self._modules):
            module = self._modules.get(name)
            made[name] = {
                "fqn": name,
                "module_type": "" if module is None else str(type(module)),
                "parameters": [] if module is None else [key for key, _ in module.named_parameters(recurse=False)],
                "children": [],
            }
            for phase in ("forward", "backward"):
                counts = self.comm_module_counts.get(name, {}).get(phase, {})
                made[name][f"collectives_{phase}"] = [f"{function}: {count}" for function, count in counts.items()]
                made[name][f"operations_{phase}"] = [
                    {key: str(value) for key, value in one.items()}
                    for one in self._operations(name, phase, noise_level)
                ]
            if name != _WHOLE:
                above = name.rpartition(".")[0]
                made.get(above, made[_WHOLE])["children"].append(made[name])
        with open(file_name, "w") as file:
            json.dump(made[_WHOLE], file, indent=4)

    def print_paramater_info(self) -> None:
        """Print the modules' parameters."""
        print(self.get_parameter_info())

    def print_sharding_info(self) -> None:
        """Print the placements of parameters."""
        for name, placements in self.get_sharding_info().items():
            print(f"{name}: {placements}")

    def __repr__(self) -> str:
        return f"CommDebugMode(get_total_counts()={self.get_total_counts()})"
