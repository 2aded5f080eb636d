"""What the site has beside the files of this folder: pages that stand elsewhere, and tables that are made of files."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "adding.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "operators.md": "generated/OPS.md",
    "schema.md": "schema/README.md",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that stand elsewhere."""
    for name, source in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, "examples.md", content=examples()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put tables in their places, and leave out what is for tests."""
    if page.file.src_uri == "dropin.md":
        markdown = markdown.replace("<!-- libraries -->", libraries())
    return re.sub(r"^<!-- not run: .*? -->\n", "", markdown, flags=re.MULTILINE)


def libraries() -> str:
    """The libraries of tests/ecosystem/requirements.txt as a table."""
    rows = ["| library | version |", "|---|---|"]
    for line in (ROOT / "tests" / "ecosystem" / "requirements.txt").read_text(encoding="utf-8").splitlines():
        name, equals, version = line.partition("#")[0].strip().partition("==")
        if equals:
            rows.append(f"| [{name}](https://pypi.org/project/{name}/) | {version} |")
    return "\n".join(rows)


def examples() -> str:
    """The scripts of examples/, with what their docstrings say."""
    parts = [
        "# Examples",
        "Short programs for torch, which tests run. Each is started by `python -m mindtorch_v2 examples/NAME.py`.",
        "",
    ]
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        said = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
        code = text.split('"""', 2)[2].strip()
        parts.append(f"## {path.name}\n\n{said}\n\n```python\n{code}\n```\n")
    return "\n".join(parts)
