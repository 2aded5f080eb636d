"""Names of `torch.export` for what is not there: calls raise NotImplementedError and say why."""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn

from ..utils import _pytree as pytree


def save(ep: Any, f: Any, *, extra_files: Any = None, opset_version: Any = None, pickle_protocol: int = 2) -> NoReturn:
    """Raises NotImplementedError: files of exported programs are not written."""
    raise NotImplementedError("torch.export.save: .pt2 files are not written; save the state dict, and export again")


def load(f: Any, *, extra_files: Any = None, expected_opset_version: Any = None) -> NoReturn:
    """Raises NotImplementedError: files of exported programs are not read."""
    raise NotImplementedError("torch.export.load: .pt2 files are not read")


def draft_export(mod: Any, args: Any, kwargs: Any = None, **options: Any) -> NoReturn:
    """Raises NotImplementedError: `export` says what is wrong with a program."""
    raise NotImplementedError("torch.export.draft_export: use torch.export.export, whose error says what is wrong")


def unflatten(module: Any, flat_args_adapter: Any = None) -> NoReturn:
    """Raises NotImplementedError: graphs are not taken apart by their modules."""
    raise NotImplementedError("torch.export.unflatten: graphs are not taken apart by their modules")


class FlatArgsAdapter:
    """What adapts arguments for `unflatten`."""

    def adapt(self, target_spec: Any, input_spec: Any, input_args: list[Any], *args: Any, **kwargs: Any) -> list[Any]:
        """The arguments that a program wants. Subclasses define it."""
        raise NotImplementedError("FlatArgsAdapter.adapt: a subclass defines it")


class UnflattenedModule:
    """What `unflatten` would give. NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        unflatten(*args, **kwargs)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let dataclasses of a class be arguments and results of programs. AssertionError for other classes."""
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
