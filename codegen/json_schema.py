"""The JSON Schema of a family file: what editors complete and underline from, made of the words and nothing else."""

from __future__ import annotations

import json
from typing import Any

from . import words
from .model import DEVICES, LAYOUTS, VALUES
from .words import Word

_LISTS = {
    "variants": words.VARIANTS,
    "operators": words.DUNDERS,
    "tags": words.TAGS,
    "out": words.OUT,
}
_TEXT: dict[str, Any] = {"type": ["string", "number", "boolean"]}
_TEXTS: dict[str, Any] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_WIDTH = 120


def json_schema() -> str:
    """The text of `generated/schema.json`."""
    entry = {
        "type": "object",
        "required": ["func"],
        "additionalProperties": False,
        "properties": {field.name: {"description": field.meaning, **_value(field.name)} for field in words.FIELDS},
    }
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A family of operators",
        "type": "array",
        "items": entry,
        "$defs": {field: _one_of(table) for field, table in _LISTS.items()},
    }
    return _written(whole, "") + "\n"


def _written(value: Any, margin: str) -> str:
    """JSON in which what fits into a line stands on one."""
    short = json.dumps(value)
    if not isinstance(value, (dict, list)) or len(margin) + len(short) < _WIDTH:
        return short
    inner = margin + " "
    if isinstance(value, list):
        rows = [_written(item, inner) for item in value]
    else:
        rows = [f"{json.dumps(key)}: {_written(item, inner)}" for key, item in value.items()]
    first, last = "[]" if isinstance(value, list) else "{}"
    return f",\n{inner}".join([f"{first}\n{inner}{rows[0]}", *rows[1:]]) + f"\n{margin}{last}"


def _value(field: str) -> dict[str, Any]:
    if field in _LISTS:
        one = {"$ref": f"#/$defs/{field}"}
        return {"anyOf": [one, {"type": "array", "items": one, "uniqueItems": True}]}
    if field == "namespace":
        return _one_of(words.NAMESPACES)
    if field == "fallback":
        return _one_of(words.FALLBACKS)
    if field == "kernels":
        return {"type": "object", "additionalProperties": False, "properties": dict.fromkeys(DEVICES, _TEXTS)}
    if field == "sparse":
        layouts = {"type": "object", "additionalProperties": False, "properties": dict.fromkeys(LAYOUTS, _TEXT)}
        return {"anyOf": [{"const": VALUES}, layouts]}
    if field == "sample":
        return {"type": "object"}
    if field == "grad":
        return {"anyOf": [{"const": "none"}, {"type": "object", "additionalProperties": _TEXT}]}
    if field == "block":
        blocks = {"anyOf": [_TEXT, {"type": "object"}]}
        return {"anyOf": [blocks, {"type": "array", "items": blocks}]}
    return _TEXTS if field in ("aliases", "mutates") else _TEXT


def _one_of(table: tuple[Word, ...]) -> dict[str, Any]:
    return {"oneOf": [{"const": word.name, "description": word.meaning} for word in table]}
