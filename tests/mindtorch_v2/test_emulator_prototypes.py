"""The emulator's C functions against CANN's prototypes: an error that wrapper and emulator share would not show otherwise.

Operators are compared with `schema/aclnn.yaml` (those that kernels bind) and `data/aclnn_prototypes.json`, functions of the runtime with
`data/acl_prototypes.json`; the two tables are facts of CANN's headers, [C type, name] for each parameter. Constness may differ, and nothing else.
"""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml
from _emulator import HERE, PROTOTYPES, SOURCES, built

_SCHEMA: dict[str, list] = yaml.load(
    (HERE.parents[1] / "schema" / "aclnn.yaml").read_text(encoding="utf-8"),
    getattr(yaml, "CSafeLoader", yaml.SafeLoader),
)
_TABLE: dict[str, list] = json.loads((HERE / "data" / "aclnn_prototypes.json").read_text())
OPERATORS: dict[str, list[str]] = {name: [row[0] for row in rows] for name, rows in {**_TABLE, **_SCHEMA}.items()}
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIRECTIVES = re.compile(r"^\s*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
_OPERATOR = re.compile(r"^EM_OP\((\w+),([^()]*)\)\s*\{", re.MULTILINE)
_FUNCTION = re.compile(r"^EM_API ([\w \*]+?[ \*])(acl\w+|Acl\w+)\(([^()]*)\)\s*\{", re.MULTILINE)


def sources() -> dict[str, str]:
    """The C files, without comments and preprocessor directives."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.c"))}
    return {name: _DIRECTIVES.sub("", _COMMENTS.sub(" ", text)) for name, text in texts.items()}


def plain(kind: str) -> str:
    """A C type without constness and in one spelling: `aclTensor*`."""
    return re.sub(r"\s+", " ", re.sub(r"\bconst\b", " ", kind)).replace(" *", "*").replace("* *", "**").strip()


def parameters(text: str) -> list[str]:
    """The types of a parameter list."""
    if text.strip() in ("", "void"):
        return []
    kinds = []
    for parameter in text.split(","):
        found = re.fullmatch(r"\s*(.*?[\s*])(\w+)\s*", parameter, re.DOTALL)
        assert found, f"a parameter without a name: {parameter!r}"
        kinds.append(plain(found[1]))
    return kinds


def defined() -> dict[str, tuple[str, list[str]]]:
    """The operators that are spelled out: name to (file, types)."""
    return {
        name: (file, parameters(rest)) for file, text in sources().items() for name, rest in _OPERATOR.findall(text)
    }


def expanded() -> dict[str, list[str]]:
    """All operators, those that macros define too, as the preprocessor leaves them."""
    found: dict[str, list[str]] = {}
    pattern = re.compile(r"\b(aclnn\w+?)Body\(([^()]*)\)\s*\{")
    for path in sorted(SOURCES.glob("ops_*.c")):
        text = subprocess.run(
            ["cc", "-E", "-P", "-std=c11", "-D_GNU_SOURCE", str(path)], capture_output=True, text=True, check=True
        )
        for name, rest in pattern.findall(text.stdout):
            found[name] = parameters(rest.replace("_Bool", "bool"))
    return found


def test_the_tables_agree():
    differing = [
        name
        for name in _SCHEMA.keys() & _TABLE.keys()
        if [plain(row[0]) for row in _SCHEMA[name]] != [plain(row[0]) for row in _TABLE[name]]
    ]
    assert not differing


def test_what_is_spelled_out():
    wrong = []
    for name, (file, kinds) in defined().items():
        if name.startswith("em"):
            continue  # test operators
        if name not in OPERATORS:
            wrong.append(f"{file}: {name} has no prototype")
            continue
        expected = [plain(kind) for kind in OPERATORS[name]]
        if kinds != expected:
            wrong.append(f"{file}: {name}({', '.join(kinds)}), but CANN has ({', '.join(expected)})")
    assert not wrong, "\n".join(wrong)


def test_every_operator_after_the_preprocessor():
    if built()[0] is None:
        pytest.skip("there is no C compiler")
    found = expanded()
    assert len(found) > 50
    wrong = []
    for name, kinds in found.items():
        if name not in OPERATORS:
            wrong.append(f"{name} has no prototype")
            continue
        expected = [plain(kind) for kind in OPERATORS[name]] + ["uint64_t*", "aclOpExecutor**"]
        if kinds != expected:
            wrong.append(f"{name}({', '.join(kinds)}), but CANN has ({', '.join(expected)})")
    assert not wrong, "\n".join(wrong)


def test_functions_of_the_runtime():
    found = {}
    for file, text in sources().items():
        for result, name, rest in _FUNCTION.findall(text):
            found[name] = (plain(result), parameters(rest), file)
    expected = {name: (plain(result), [plain(kind) for kind, _ in rows]) for name, (result, rows) in PROTOTYPES.items()}
    wrong = [f"{name} is missing" for name in expected if name not in found]
    wrong += [
        f"{file}: {result} {name}({', '.join(kinds)}), but CANN has {expected.get(name)}"
        for name, (result, kinds, file) in found.items()
        if expected.get(name) != (result, kinds)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_parser_sees_differences():
    assert parameters("const aclTensor *self, const int64_t dim,\n bool keepdim, aclTensor **out") == [
        "aclTensor*",
        "int64_t",
        "bool",
        "aclTensor**",
    ]
    assert parameters("void") == []
    assert plain("const aclTensor * const *") == "aclTensor**"
