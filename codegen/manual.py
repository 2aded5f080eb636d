"""schema/README.md, the manual of the schema, its tables made of the words that the checks know; and docs/rules.md, the list of the rules."""

from __future__ import annotations

from typing import Any

from . import words
from .checking import BUILTINS
from .model import SAVED_ATTRIBUTES, Schema

PATH = "schema/README.md"
RULES = "docs/rules.md"


def context() -> dict[str, Any]:
    """What the manual's template prints."""
    return {"words": words, "builtins": sorted(BUILTINS), "attributes": SAVED_ATTRIBUTES}


def rules(schema: Schema) -> dict[str, Any]:
    """What the list of rules prints: by module, each rule with the first entry that names it."""
    examples: dict[str, str] = {}
    for op in schema.ops:
        if op.meta is not None:
            examples.setdefault(op.meta.function, str(op.meta))
    modules: dict[str, list[tuple[Any, str]]] = {}
    for name, rule in schema.rules.items():
        modules.setdefault(rule.module, []).append((rule, examples.get(name, "")))
    return {"modules": modules}
