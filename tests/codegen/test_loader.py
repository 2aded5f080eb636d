"""Places of keys, values and characters inside of values."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.loader import Mapping, Node, Scalar, Sequence, load


def read(tmp_path: Path, text: str) -> tuple[Node | None, list[str]]:
    path = tmp_path / "f.yaml"
    path.write_text(text)
    tree, problems = load(path, "f.yaml")
    return tree, [str(problem) for problem in problems]


def test_keys_and_values_have_places(tmp_path: Path) -> None:
    tree, problems = read(tmp_path, "- a: 1\n  bc: {d: [x, y]}\n- null\n")
    assert problems == []
    assert isinstance(tree, Sequence)
    first, second = tree.items
    assert isinstance(first, Mapping) and isinstance(second, Scalar)
    assert [(key.text, str(key.location)) for key, _ in first] == [("a", "f.yaml:1:3"), ("bc", "f.yaml:2:3")]
    inner = first.get("bc")
    assert isinstance(inner, Mapping) and str(inner.location) == "f.yaml:2:7"
    items = inner.get("d")
    assert isinstance(items, Sequence)
    assert [str(item.location) for item in items] == ["f.yaml:2:12", "f.yaml:2:15"]
    assert (second.value, second.text, str(second.location)) == (None, "null", "f.yaml:3:3")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("k: ab wrong", "1:7"),
        ("k: 'ab wrong'", "1:8"),
        ('k: "ab wrong"', "1:8"),
        ("k: ab\n   wrong", "2:4"),
        ("k: >\n  ab\n  wrong\n", "3:3"),
        ("k: |\n  ab wrong\n", "2:6"),
    ],
)
def test_the_place_of_a_character_inside_a_value(tmp_path: Path, text: str, place: str) -> None:
    tree, _ = read(tmp_path, text)
    assert isinstance(tree, Mapping)
    value = tree.get("k")
    assert isinstance(value, Scalar)
    assert str(value.at(value.text.index("wrong"))) == f"f.yaml:{place}"


def test_a_duplicate_key_is_reported_where_it_stands(tmp_path: Path) -> None:
    _, problems = read(tmp_path, "- func: f() -> ()\n  grad: none\n\n  grad: none\n")
    assert problems == ["f.yaml:4:3: duplicate key 'grad'; the first is on line 2"]


def test_the_first_of_two_keys_counts(tmp_path: Path) -> None:
    tree, _ = read(tmp_path, "a: 1\na: 2\n")
    assert isinstance(tree, Mapping)
    assert [value.value for _, value in tree if isinstance(value, Scalar)] == [1]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- a: [1, 2\n- b: 3\n", "f.yaml:2:4: not valid YAML: expected ',' or ']', but got ':'"),
        ("- a: b: c\n", "f.yaml:1:7: not valid YAML: mapping values are not allowed here"),
        ("a: 1\n\tb: 2\n", "f.yaml:2:1: not valid YAML: found character '\\t' that cannot start any token"),
        ("a: \x07\n", "f.yaml:1:4: not valid YAML: special characters are not allowed"),
        ("? [a]\n: 1\n", "f.yaml:1:3: a key must be a plain name"),
    ],
)
def test_no_yaml_is_a_problem_like_any_other(tmp_path: Path, text: str, line: str) -> None:
    assert read(tmp_path, text)[1] == [line]


def test_an_empty_file_has_no_tree(tmp_path: Path) -> None:
    assert read(tmp_path, "# nothing yet\n") == (None, [])
