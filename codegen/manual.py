"""schema/README.md: the manual of the schema, its tables made of the words that the checks know."""

from __future__ import annotations

from typing import Any

from codegen import words
from codegen.checks import BUILTINS
from codegen.model import SAVED_ATTRIBUTES

PATH = "schema/README.md"


def context() -> dict[str, Any]:
    """What the manual's template prints."""
    return {"words": words, "builtins": sorted(BUILTINS), "attributes": SAVED_ATTRIBUTES}
