"""Mutated entries of the schema: `entries.py SEED COUNT|FIRST:END` reads so many, each a real entry with a slip, and prints what came of them as JSON.

An entry that means the same as before is accepted; a slip is refused, and the first problem stands in the entry, at its line. What is neither a traceback nor a hang is not enough: words
that nobody knows, values of another type, and things that stand twice have to be refused. Where a slip says something else that an author may have meant (another argument, a shorter list),
it may be accepted, and the generator makes files of it that Python can read.
"""

from __future__ import annotations

import ast
import faulthandler
import functools
import json
import random
import re
import string
import sys
import tempfile
import time
from collections import Counter
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from codegen import emit  # noqa: E402
from codegen.model import Location, Schema  # noqa: E402
from codegen.problems import arranged  # noqa: E402
from codegen.schema import ACLNN, OPS, read, read_schema  # noqa: E402
from codegen.sources import Sources  # noqa: E402

SECONDS = 5.0
TEXTS = ("missing", "differs", "fallback")
"""Fields whose value is said to a reader: any word will do (of `fallback`, what is no known reason)."""


class Around(Sources):
    """The sources of the tree, where all operators of the schema are known though one file is read."""

    names: frozenset[str] = frozenset()

    def known_operators(self) -> frozenset[str]:
        return self.names


def entries(path: Path) -> list[str]:
    """The texts of a family's entries, comments between them apart."""
    found: list[list[str]] = []
    for line in path.read_text().splitlines():
        if line.startswith("- "):
            found.append([line])
        elif found and (line.startswith("  ") or not line.strip()):
            found[-1].append(line)
    return ["\n".join(lines).rstrip() + "\n" for lines in found]


# --------------------------------------------------------------------------------------------------------------- mutations


class Slip:
    """A mutated entry. must: whether it has to be refused, unless it means what it meant; anywhere: whether its cause may be told at the entry that follows, or the end of the file."""

    def __init__(self, kind: str, text: str | bytes, must: bool = False, anywhere: bool = False) -> None:
        self.kind, self.text, self.must, self.anywhere = kind, text, must, anywhere


def keys(text: str) -> list[tuple[int, str, str]]:
    """The fields of an entry: line, name, rest of the line."""
    found = []
    for number, line in enumerate(text.splitlines()):
        match = re.match(r"(?:- |  )([a-z_]+):(.*)$", line)
        if match:
            found.append((number, match[1], match[2].strip()))
    return found


def field_lines(text: str) -> list[list[str]]:
    """The lines of an entry by field."""
    groups: list[list[str]] = []
    for line in text.splitlines():
        if re.match(r"(?:- |  )[a-z_]+:", line) or not groups:
            groups.append([line])
        else:
            groups[-1].append(line)
    return groups


def joined(groups: list[list[str]]) -> str:
    lines = [line for group in groups for line in group]
    lines = [
        ("- " if n == 0 else "  ") + line[2:] if re.match(r"(?:- |  )[a-z_]+:", line) else line
        for n, line in enumerate(lines)
    ]
    return "\n".join(lines) + "\n"


def misspelt(pick: random.Random, word: str) -> str:
    at = pick.randrange(len(word))
    kind = pick.randrange(4)
    if kind == 0 and len(word) > 2:
        return word[:at] + word[at + 1 :]
    if kind == 1 and at + 1 < len(word) and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if kind == 2:
        return word[:at] + word[at] + word[at:]
    return word[:at] + pick.choice(string.ascii_lowercase.replace(word[at].lower(), "")) + word[at + 1 :]


def misspell(pick: random.Random, text: str) -> Slip:
    """A word, anywhere but in sentences and in names that the entry itself makes up."""
    places = [
        match
        for match in re.finditer(r"[A-Za-z_]\w{2,}", text)
        if not any(name in TEXTS for name in [field_at(text, match.start())])
    ]
    match = pick.choice(places)
    word = misspelt(pick, match[0])
    # A signature makes up names: of the operator, its overload and arguments. A text in quotes may be any.
    own = field_at(text, match.start()) in ("func", "foreach", "aliases", "flops", "sample") or text[
        match.start() - 1 : match.start()
    ] in ("'", '"', ".")
    return Slip("a word misspelt", text[: match.start()] + word + text[match.end() :], must=not own)


def field_at(text: str, offset: int) -> str:
    """The field in which a character stands; empty in a field's name."""
    line = text.count("\n", 0, offset)
    start = text.rfind("\n", 0, offset) + 1
    name = ""
    for number, key, _ in keys(text):
        if number <= line:
            name = key
    here = re.match(r"(?:- |  )([a-z_]+):", text[start:])
    if here and offset < start + here.end():
        return ""
    return name


VALUES = ["5", "-1", "2.5", "true", "null", "~", "[]", "{}", "''", "[self]", "[[self]]", "{self: grad}", "{a: {b: {c: d}}}", "2026-13-40", "0x7f", ".nan", "[1, [2, [3]]]",
          "!!binary aGk=", "!!set {a, b}", "!!timestamp x", "!!int x", "!!python/object:os.system x", "&x [*x]", "*nowhere", "'\\x00'", '"\\ud800"', "|\n    a\n    b", "'unclosed",
          "[unclosed", "{unclosed", "@x", "`x`", "%x", "? a", "- a", "a: b: c", "x" * 5000, "(" * 300, "self" + ".a" * 300, "f(" * 100 + ")" * 100, "-" * 2000 + "1", "1e999", "9" * 5000,
          "lambda: 0", "(yield)", "(await self)", "self := 1", "self; grad", "*self", "**self", "f(*self)", "f(**self)", "[x for x in self]", "f'{self}'", "__import__('os')", "self if",
          "grad\\u200b", "grаd", "...", "self[", "not", "self.__class__", "'" * 3, "~self", "self @ grad", "1 if self else", "b'x'", "1j", "None", "True", "''", "\t", "#", "a #b"]  # fmt: skip


def other_value(pick: random.Random, text: str) -> Slip:
    """A field, or one of its items, with a value of another type, or with text that is no sentence of its language."""
    number, name, _ = pick.choice(keys(text))
    value = pick.choice(VALUES)
    groups = field_lines(text)
    at = next(n for n, group in enumerate(groups) if re.match(rf"(?:- |  ){name}:", group[0]))
    first = "- " if groups[at][0].startswith("- ") else "  "
    inner = [
        (n, m)
        for n, line in enumerate(groups[at])
        for m in re.finditer(r"(?<=: )[^,{}\[\]]+(?=[,}])|(?<=[\[ ])[\w.]+(?=[,\]])", line)
    ]
    if inner and pick.random() < 0.5:
        n, match = pick.choice(inner)
        line = groups[at][n]
        groups[at][n] = line[: match.start()] + value.replace("\n", " ") + line[match.end() :]
    else:
        groups[at] = [f"{first}{name}: {value}"]
    return Slip("another value", joined(groups), anywhere=True)


def drop(pick: random.Random, text: str) -> Slip:
    """A field, an item of a list, a line, or a character that is not there."""
    kind = pick.randrange(4)
    groups = field_lines(text)
    if kind == 0 and len(groups) > 1:
        del groups[pick.randrange(len(groups))]
        return Slip("a field dropped", joined(groups))
    if kind == 1:
        items = list(re.finditer(r"[\w.]+, |, [\w.]+(?=[\])])", text))
        if items:
            match = pick.choice(items)
            return Slip("an item dropped", text[: match.start()] + text[match.end() :])
    if kind == 2:
        lines = text.splitlines()
        del lines[pick.randrange(len(lines))]
        return Slip("a line dropped", "\n".join(lines) + "\n", anywhere=True)
    at = pick.randrange(len(text))
    return Slip("a character dropped", text[:at] + text[at + 1 :], anywhere=True)


def double(pick: random.Random, text: str) -> Slip:
    """A field, an item, or the entry itself twice."""
    kind = pick.randrange(4)
    groups = field_lines(text)
    if kind == 0:
        return Slip("the entry twice", text + text, must=True)
    if kind == 1:
        items = list(
            re.finditer(
                r"(?<=[\[ ])\w+(?=[,\]])",
                "\n".join(
                    line
                    for group in groups
                    for line in group
                    if re.match(r"  (variants|operators|tags|out|aliases|mutates):", line)
                ),
            )
        )
        if items:
            word = pick.choice(items)[0]
            return Slip(
                "an item twice", re.sub(rf"(?<=[\[ ]){word}(?=[,\]])", f"{word}, {word}", text, count=1), must=True
            )
    if kind == 2:
        inner = list(re.finditer(r"(?<=\{)(\w+): [^,{}]+(?=[,}])", text))
        if inner:
            match = pick.choice(inner)
            return Slip("a key twice", text[: match.end()] + ", " + match[0] + text[match.end() :], must=True)
    at = pick.randrange(len(groups))
    groups.insert(pick.randrange(len(groups) + 1), groups[at])
    return Slip("a field twice", joined(groups), must=True)


def swap(pick: random.Random, text: str) -> Slip:
    """Two values, two words, or two lines in each other's place."""
    kind = pick.randrange(3)
    groups = field_lines(text)
    if kind == 0 and len(groups) > 1:
        a, b = pick.sample(range(len(groups)), 2)
        one, other = re.match(r"(?:- |  )([a-z_]+):", groups[a][0]), re.match(r"(?:- |  )([a-z_]+):", groups[b][0])
        if one and other:
            groups[a][0] = groups[a][0].replace(one[1], other[1], 1)
            groups[b][0] = groups[b][0].replace(other[1], one[1], 1)
            return Slip("two fields' names swapped", joined(groups), anywhere=True)
    if kind == 1:
        lines = text.splitlines()
        if len(lines) > 1:
            a, b = pick.sample(range(len(lines)), 2)
            lines[a], lines[b] = lines[b], lines[a]
            return Slip("two lines swapped", "\n".join(lines) + "\n", anywhere=True)
    words = list(re.finditer(r"\w+", text))
    a, b = sorted(pick.sample(range(len(words)), 2))
    one, other = words[a], words[b]
    swapped = text[: one.start()] + other[0] + text[one.end() : other.start()] + one[0] + text[other.end() :]
    return Slip("two words swapped", swapped, anywhere=True)


def break_file(pick: random.Random, text: str) -> Slip:
    """What no editor of YAML writes: other bytes, tabs, indentation, anchors, documents, depth."""
    deep = pick.choice((50, 500, 5000))
    laughs = "a0: &a0 [x, x]\n" + "".join(
        f"  b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, pick.choice((3, 12)))
    )
    at = pick.randrange(len(text))
    return Slip("bytes, depth, anchors", pick.choice([
        lambda: text[:at] + "\t" + text[at:],
        lambda: text[:at] + pick.choice("\0\x07\x85\u2028\ufeff\x1b") + text[at:],
        lambda: text[:at].encode() + pick.choice((b"\xff", b"\xc3", b"\xed\xa0\x80")) + text[at:].encode(),
        lambda: text.replace("\n  ", "\n   ", 1),
        lambda: text.replace("\n  ", "\n ", 1),
        lambda: text + "---\n" + text,
        lambda: "%YAML 9.9\n---\n" + text,
        lambda: text + "  tags: " + "[" * deep + "]" * deep + "\n",
        lambda: text + "  tags: " + "{a: " * deep + "b" + "}" * deep + "\n",
        lambda: text + "  meta: " + "f(" * deep + ")" * deep + "\n",
        lambda: text + "  grad: {self: '" + "(" * deep + "grad" + ")" * deep + "'}\n",
        lambda: text + "  grad: {self: grad" + " + grad" * deep + "}\n",
        lambda: text + "  block: " + "-" * deep + "self\n",
        lambda: text + "  " + laughs,
        lambda: text + "  tags: &t [*t]\n",
        lambda: text + "  <<: {func: 'x(Tensor self) -> Tensor'}\n",
        lambda: text + "  ? [a, b]\n  : c\n",
        lambda: text + "  5: 6\n",
        lambda: "x: 1\n" + text,
        lambda: "- " + text,
        lambda: "- [" + text.strip() + "]\n",
        lambda: "- 5\n" + text,
        lambda: text.replace("->", pick.choice(("-", "=>", "-> (", "->->")), 1),
        lambda: text.replace("(", "((" , 1),
        lambda: re.sub(r"func: (.*)", lambda m: "func: " + m[1][: pick.randrange(1, len(m[1]))], text, count=1),
        lambda: re.sub(r"func: \w+", "func: " + pick.choice(("class", "None", "a" * 3000, "é", "__init__", "a.b.c.d", "5", "-", "")), text, count=1),
    ])(), anywhere=True)  # fmt: skip


SLIPS = (misspell, misspell, misspell, other_value, other_value, drop, double, swap, break_file)


# ----------------------------------------------------------------------------------------------------------------- reading


def bare(value: Any) -> Any:
    """What a record says, without its places."""
    if isinstance(value, Location):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [
            (f.name, bare(getattr(value, f.name)))
            for f in fields(value)
            if f.name not in ("locations", "location", "start", "end", "at")
        ]
    if isinstance(value, (tuple, list)):
        return [bare(item) for item in value]
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items()}
    return repr(value)


class Reader:
    """Reads one entry at a time, as if it stood in its family's file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / OPS).mkdir(parents=True)
        for name in ("src", "generated", "native"):
            (folder / name).symlink_to(ROOT / name)
        for file in (ROOT / "schema").iterdir():
            if file.name != "ops":
                (folder / "schema" / file.name).symlink_to(file)
        schema, problems = read_schema(ROOT)
        assert not problems, problems
        self.known = frozenset(op.name for op in schema.ops)
        self.sources = Around(ROOT)
        self.sources.names = self.known

    @functools.cache  # noqa: B019 (one reader a process)
    def sound(self, family: str, text: str) -> Any:
        """What an entry says as it is; None where its neighbours are missed."""
        schema, problems = self.read(family, text)
        return None if problems else bare(schema.ops)

    def read(self, family: str, text: str | bytes) -> tuple[Schema, list[Any]]:
        path = self.folder / OPS / f"{family}.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        own = re.match(r"- func: ([\w]+)", text if isinstance(text, str) else text.decode(errors="replace"))
        self.sources.names = self.known - {own[1]} if own else self.known
        try:
            schema, problems = read(self.folder, self.folder / OPS, ROOT / ACLNN, self.sources)
        finally:
            path.unlink()
        return schema, arranged(problems)


def judge(reader: Reader, family: str, original: str, slip: Slip) -> tuple[str, str]:
    """What came of a slip, and what is wrong with that."""
    before = reader.sound(family, original)
    if before is None:
        return "an entry that needs its neighbours", ""
    schema, problems = reader.read(family, slip.text)
    if problems:
        first = problems[0]
        lines = slip.text.count(b"\n" if isinstance(slip.text, bytes) else "\n") + 1  # type: ignore[arg-type]
        if not first.location.file.endswith(f"{family}.yaml"):
            return "refused", f"at another file: {first}"
        if not 1 <= first.location.line <= lines:
            return "refused", f"at no line of the entry: {first}"
        if len(str(first)) > 2000:
            return "refused", f"a sentence of {len(str(first))} characters"
        return "refused", ""
    if before == bare(schema.ops):
        return "accepted with the same meaning", ""
    if slip.must:
        return "accepted", "accepted with another meaning"
    products = emit.render_package(replace(schema, ops=schema.ops), "hostile", "a slip")
    for path, text in products.items():
        try:
            ast.parse(text)
        except SyntaxError as error:
            return "accepted", f"{path} is no Python: {error}"
    return "accepted with a meaning of its own", ""


def main(seed: str, numbers: range) -> None:
    outcomes: Counter[str] = Counter()
    problems: list[str] = []
    families = {path.stem: entries(path) for path in sorted((ROOT / OPS).glob("*.yaml"))}
    table = [(family, text) for family, texts in families.items() for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(Path(folder))
        for number in numbers:
            pick = random.Random(f"{seed} {number}")
            family, text = pick.choice(table)
            slip = pick.choice(SLIPS)(pick, text)
            if slip.text == text:
                continue
            faulthandler.dump_traceback_later(12 * SECONDS, exit=True)
            begun = time.process_time()
            try:
                outcome, problem = judge(reader, family, text, slip)
            except Exception as error:  # noqa: BLE001 (told)
                outcome, problem = "a traceback", f"{type(error).__name__}: {error!s:.200}"
            if time.process_time() - begun > SECONDS:
                problem = f"{time.process_time() - begun:.1f} s"
            outcomes[f"{slip.kind}: {outcome}"] += 1
            if problem:
                changed = [line for line in str(slip.text).splitlines() if line not in text.splitlines()]
                problems.append(f"{seed} {number} ({slip.kind}): {problem}: {' / '.join(changed)[:240]}")
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"outcomes": outcomes, "problems": problems}))


if __name__ == "__main__":
    main(sys.argv[1], range(*map(int, sys.argv[2].split(":"))))
