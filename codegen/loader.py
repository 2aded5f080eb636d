"""YAML with a place for everything: file, line and column of every key and value.

The tree is made of three kinds of node, each with a `location`. `Scalar.at` finds the place of a character inside a value,
also when the value is quoted or runs over several lines, so that an error points at the wrong word and not at its entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from .model import Location
from .problems import Problem


@dataclass(frozen=True)
class Scalar:
    """A scalar: `text` as YAML reads it as a string, `value` as YAML resolves it (number, bool, None or str)."""

    location: Location
    text: str
    value: object
    raw: str
    """The characters of the file, with quotes, line breaks and indentation."""

    def at(self, offset: int) -> Location:
        """The place of the character `offset` of `text`."""
        position = 0  # in text
        index = self._first_character()
        line, column = self.location.line, self.location.column
        for character in self.raw[:index]:
            line, column = (line + 1, 1) if character == "\n" else (line, column + 1)
        while index < len(self.raw) and position < offset:
            # A line break with its indentation is one character of the text.
            if self.raw[index] == "\n" or (self.raw[index] == " " and self.raw[index:].lstrip(" ").startswith("\n")):
                while index < len(self.raw) and self.raw[index].isspace():
                    line, column = (line + 1, 1) if self.raw[index] == "\n" else (line, column + 1)
                    index += 1
            else:
                index, column = index + 1, column + 1
            position += 1
        return Location(self.location.file, line, column)

    def _first_character(self) -> int:
        if self.raw[:1] in ("'", '"'):
            return 1
        if self.raw[:1] in ("|", ">"):
            header = self.raw.find("\n") + 1
            return header + len(self.raw[header:]) - len(self.raw[header:].lstrip())
        return 0


@dataclass(frozen=True)
class Sequence:
    location: Location
    items: tuple[Node, ...]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)


@dataclass(frozen=True)
class Mapping:
    location: Location
    entries: tuple[tuple[Scalar, Node], ...]

    def __iter__(self) -> Iterator[tuple[Scalar, Node]]:
        return iter(self.entries)

    def get(self, key: str) -> Node | None:
        """The value of the first key of that name."""
        return next((value for name, value in self.entries if name.text == key), None)

    def key(self, key: str) -> Scalar | None:
        return next((name for name, _ in self.entries if name.text == key), None)


Node = Scalar | Sequence | Mapping


class _Loader(yaml.SafeLoader):
    """SafeLoader that makes located nodes, and reports a key that stands twice in one mapping."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text)
        self.text = text
        self.file = file
        self.problems: list[Problem] = []

    def location(self, node: yaml.Node) -> Location:
        return Location(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def located(self, node: yaml.Node) -> Node:
        location = self.location(node)
        if isinstance(node, yaml.MappingNode):
            return self.located_mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            return Sequence(location, tuple(self.located(item) for item in node.value))
        raw = self.text[node.start_mark.index : node.end_mark.index]
        try:
            value = self.construct_object(node)
        except ValueError:  # a date that is none (2026-13-40) is only text here
            value = node.value
        return Scalar(location, node.value, value, raw)

    def located_mapping(self, node: yaml.MappingNode, location: Location) -> Mapping:
        entries: list[tuple[Scalar, Node]] = []
        seen: dict[str, Location] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem(self.location(key_node), "", "a key must be a plain name"))
                continue
            key = self.located(key_node)
            assert isinstance(key, Scalar)
            if key.text in seen:
                first = seen[key.text]
                message = f"duplicate key '{key.text}'; the first is on line {first.line}"
                self.problems.append(Problem(key.location, "", message))
                continue
            seen[key.text] = key.location
            entries.append((key, self.located(value_node)))
        return Mapping(location, tuple(entries))


DEPTH = 12
"""How deep lists and mappings may be in each other."""


def _unread(text: str, file: str) -> Problem | None:
    """The first thing in the text that YAML has and a schema has not: aliases, tags, a second document, and depth."""
    for loader in (getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader):
        depth = documents = 0
        try:
            for event in yaml.parse(text, Loader=loader):
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                documents += isinstance(event, yaml.DocumentStartEvent)
                what = ""
                if getattr(event, "anchor", None) is not None:
                    what = "anchors and aliases are not read; write the value where it belongs"
                elif getattr(event, "tag", None) is not None:
                    what = f"YAML's tag '{event.tag}' is not read"
                elif depth > DEPTH:
                    what = f"lists and mappings are in each other more than {DEPTH} deep"
                elif documents > 1:
                    what = "a second document; a file has one"
                if what:
                    return Problem(Location(file, event.start_mark.line + 1, event.start_mark.column + 1), "", what)
            return None
        except yaml.YAMLError:  # libyaml gives up at some depth; what is no YAML is said by `_compose`
            continue
    return None


def _compose(text: str, loader: _Loader) -> yaml.Node | None:
    """The node tree, by libyaml where PyYAML has it; what that refuses is read again for the message of the plain parser."""
    fast = getattr(yaml, "CSafeLoader", None)
    if fast is not None:
        try:
            return yaml.compose(text, Loader=fast)
        except yaml.YAMLError:
            pass
    return loader.get_single_node()


def load(path: Path, file: str) -> tuple[Node | None, list[Problem]]:
    """Read one YAML file. `file` is the name that locations carry. The tree is None when the file is empty or no YAML."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        place = Location(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        return None, [Problem(place, "", f"not UTF-8 text: {error.reason}")]
    unread = _unread(text, file)
    if unread is not None:
        return None, [unread]
    try:
        loader = _Loader(text, file)
        try:
            node = _compose(text, loader)
            tree = None if node is None else loader.located(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(file, 1, 1) if mark is None else Location(file, mark.line + 1, mark.column + 1)
        return None, [Problem(place, "", f"not valid YAML: {error.problem or error.context}")]
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Location(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        return None, [Problem(place, "", f"not valid YAML: {error.reason}")]
    return tree, loader.problems
