"""The words of the schema: each once, each in the manual, in the JSON Schema, and used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen import words
from codegen.schema import read_schema

ROOT = Path(__file__).resolve().parents[2]
TABLES = {
    name: table
    for name, table in vars(words).items()
    if isinstance(table, tuple) and table and isinstance(table[0], words.Word)
}
MANUAL = (ROOT / "schema/README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_a_word_stands_once(name: str) -> None:
    listed = words.names(TABLES[name])
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("name", TABLES)
def test_the_manual_says_every_word(name: str) -> None:
    lacking = [word.name for word in TABLES[name] if f"`{word.name}`" not in MANUAL]
    assert lacking == []


def test_every_tag_and_word_of_out_is_used() -> None:
    """A word that no entry has is dead."""
    schema, _ = read_schema(ROOT)
    assert {tag for op in schema.ops for tag in op.tags} == set(words.names(words.TAGS))
    assert {word for op in schema.ops for word in op.out} == set(words.names(words.OUT))


def test_editors_get_the_same_words() -> None:
    whole = json.loads((ROOT / "generated/schema.json").read_text(encoding="utf-8"))
    entry = whole["items"]
    assert set(entry["properties"]) == set(words.names(words.FIELDS))
    assert entry["additionalProperties"] is False
    for field, table in (("tags", words.TAGS), ("out", words.OUT), ("operators", words.DUNDERS)):
        one, several = entry["properties"][field]["anyOf"]
        assert one == {"$ref": f"#/$defs/{field}"}
        assert [word["const"] for word in whole["$defs"][field]["oneOf"]] == list(words.names(table))
        assert several["items"] == one
