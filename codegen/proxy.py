"""The table of the torch proxy's stub modules, rendered from `schema/torch_proxy.yaml`.

The schema file explains its own keys. This module reads it, refuses what is wrong in it, and hands the template one row a module.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import yaml

SCHEMA = "torch_proxy.yaml"
STUBS = "mindtorch_v2._torch_proxy.stubs"
NAME_KEYS = ("constants", "returns", "identity", "contexts", "enums", "exceptions", "classes", "functions")
KEYS = frozenset(("module", "beside", "operators", "tier", "because", "error", "doc", "from", "late", *NAME_KEYS))
# libyaml's parser, where PyYAML was built with it; both refuse everything but plain data.
FastLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ERRORS = ("NotImplementedError", "RuntimeError", "AssertionError")


class ProxySchemaError(ValueError):
    """Everything that is wrong in the proxy's schema, one line each."""


@dataclass(frozen=True)
class Source:
    """`from module import names`; late: when one of the names is first asked for."""

    module: str
    names: tuple[str, ...]
    late: bool = False


@dataclass(frozen=True)
class Stub:
    """One stub module; the attributes are those of the schema."""

    module: str
    tier: int
    line: int
    because: str
    error: str
    doc: str
    sources: tuple[Source, ...]
    beside: bool = False
    operators: str = ""
    constants: dict[str, Any] = field(default_factory=dict)
    returns: dict[str, Any] = field(default_factory=dict)
    identity: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    exceptions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    @property
    def torch_name(self) -> str:
        """The full name, with `torch`."""
        if self.beside:
            return self.module
        return f"torch.{self.module}" if self.module else "torch"

    def row(self) -> dict[str, Any]:
        """What the table has of it; lists of names are texts with blanks between."""
        row: dict[str, Any] = {"tier": self.tier}
        row |= {key: getattr(self, key) for key in ("doc", "because", "operators") if getattr(self, key)}
        if self.error != ERRORS[0]:
            row["error"] = self.error
        for key, late in (("from", False), ("late", True)):
            found = {source.module: " ".join(source.names) for source in self.sources if source.late is late}
            row |= {key: found} if found else {}
        row |= {key: getattr(self, key) for key in ("constants", "returns") if getattr(self, key)}
        row |= {"enums": {name: " ".join(members) for name, members in self.enums.items()}} if self.enums else {}
        lists = ("identity", "contexts", "exceptions", "classes", "functions")
        return row | {key: " ".join(getattr(self, key)) for key in lists if getattr(self, key)}

    def names(self) -> Iterator[str]:
        """Every name that the module has."""
        for key in NAME_KEYS:
            yield from getattr(self, key)
        for source in self.sources:
            yield from source.names


@dataclass(frozen=True)
class ProxySchema:
    """The whole file."""

    trees: tuple[str, ...]
    aliases: dict[str, str]
    homes: dict[str, str]
    beside: dict[str, str]
    stubs: tuple[Stub, ...]

    @cached_property
    def packages(self) -> list[str]:
        """Stubs that have modules below them."""
        served = [stub.module for stub in self.stubs] + list(self.aliases)
        above = {name[:end] for name in served for end, letter in enumerate(name) if letter == "."}
        return sorted({stub.module for stub in self.stubs} & above)

    @property
    def real_parents(self) -> list[str]:
        """Real packages that have stubs directly below them."""
        stubs = {stub.module for stub in self.stubs if not stub.beside}
        parents = {name.rpartition(".")[0] for name in (*stubs, *self.aliases) if name}
        return sorted(parent for parent in parents if parent == "" or parent not in stubs)


def _source_module(key: str) -> str:
    if key.startswith("."):
        return f"{STUBS}{key}"
    if key.startswith("~"):
        return f"torch.{key[1:]}"
    return f"mindtorch_v2.{key}" if key else "mindtorch_v2"


def _lines(text: str) -> list[int]:
    """The line of every entry of `stubs`."""
    root = yaml.compose(text, Loader=FastLoader)
    for key, value in root.value:
        if key.value == "stubs":
            return [node.start_mark.line + 1 for node in value.value]
    return []


def _read_stub(entry: dict[str, Any], line: int, problems: list[str]) -> Stub | None:
    where = f"schema/{SCHEMA}:{line}: {entry.get('module', '?') or 'torch'}:"
    unknown = sorted(set(entry) - KEYS)
    if unknown:
        problems.append(f"{where} unknown key {', '.join(unknown)}")
        return None
    if "module" not in entry or entry.get("tier") not in (2, 3):
        problems.append(f"{where} an entry needs `module` and a `tier` of 2 or 3")
        return None
    stub = Stub(
        module=entry["module"],
        tier=entry["tier"],
        line=line,
        because=entry.get("because", ""),
        error=entry.get("error", "NotImplementedError"),
        doc=entry.get("doc", ""),
        sources=tuple(
            Source(_source_module(key), tuple(names), kind == "late")
            for kind in ("from", "late")
            for key, names in entry.get(kind, {}).items()
        ),
        beside=entry.get("beside", False),
        operators=entry.get("operators", ""),
        constants=entry.get("constants", {}),
        returns=entry.get("returns", {}),
        identity=tuple(entry.get("identity", ())),
        contexts=tuple(entry.get("contexts", ())),
        enums={name: tuple(members) for name, members in entry.get("enums", {}).items()},
        exceptions=tuple(entry.get("exceptions", ())),
        classes=tuple(entry.get("classes", ())),
        functions=tuple(entry.get("functions", ())),
    )
    names = list(stub.names())
    problems.extend(f"{where} {name} is listed twice" for name in sorted({n for n in names if names.count(n) > 1}))
    problems.extend(f"{where} {name!r} is not a name" for name in names if not _is_name(name))
    if (stub.classes or stub.functions) and not stub.because:
        problems.append(f"{where} import-only names need `because`")
    if stub.error not in ERRORS:
        problems.append(f"{where} error must be one of {', '.join(ERRORS)}")
    return stub


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)


def load(schema_dir: Path) -> ProxySchema:
    """Read and check the schema.

    Raises:
        ProxySchemaError: with every problem, one line each.
    """
    text = (schema_dir / SCHEMA).read_text(encoding="utf-8")
    data = yaml.load(text, Loader=FastLoader)
    problems: list[str] = []
    stubs = [
        stub
        for entry, line in zip(data["stubs"], _lines(text), strict=True)
        if (stub := _read_stub(entry, line, problems)) is not None
    ]
    by_name: dict[str, Stub] = {}
    for stub in stubs:
        if stub.module in by_name:
            problems.append(f"schema/{SCHEMA}:{stub.line}: {stub.module}: is there twice")
        by_name[stub.module] = stub
    trees = tuple(data["real"]["trees"])
    for stub in stubs:
        where = f"schema/{SCHEMA}:{stub.line}: {stub.module or 'torch'}:"
        parent = stub.module.rpartition(".")[0]
        if parent and parent not in by_name and parent.partition(".")[0] not in trees:
            problems.append(f"{where} there is no module torch.{parent}")
        for source in stub.sources:
            if source.module.startswith("torch."):
                other = by_name.get(source.module.removeprefix("torch."))
                known = set(other.names()) if other is not None else set()
                problems.extend(f"{where} {source.module} has no {name}" for name in source.names if name not in known)
    if problems:
        raise ProxySchemaError("\n".join(problems))
    real = data["real"]
    homes, beside = dict(real.get("homes", {})), dict(real.get("beside", {}))
    return ProxySchema(trees, dict(real["aliases"]), homes, beside, tuple(stubs))


def _literal(value: object) -> str:
    """A constant as Python source, strings in double quotes."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def render_proxy(schema_dir: Path) -> dict[str, str]:
    """Render the table of stub modules and its index: path below generated/ to text.

    Raises:
        ProxySchemaError: if the schema is wrong.
    """
    schema = load(schema_dir)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates/library"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(py=_literal)
    return {
        f"proxy/{name}.py": environment.get_template(f"proxy_{name.strip('_')}.py.j2").render(schema=schema)
        for name in ("__init__", "index", "table")
    }
