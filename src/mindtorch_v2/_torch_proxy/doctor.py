"""What a machine has in place of PyTorch, and how to mend it: `python -m mindtorch_v2 doctor`."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import re
import sys

from mindtorch_v2.version import __version__

from . import installed, names

_WHEEL = "python -m mindtorch_v2 torch-wheel . && pip install ./torch-*.whl"
_EXTRAS = {
    "ml_dtypes": "bfloat16 and float8",
    "scipy": "special functions, some factorizations and Sobol points, and faster normal numbers",
    "safetensors": "files of safetensors",
    "cffi": "NPUs",
}


class _Page:
    """Lines of text, and what should be done."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.advice: list[str] = []

    def section(self, title: str) -> None:
        self.lines += ["", title, "-" * len(title)] if self.lines else [title, "-" * len(title)]

    def say(self, name: str, value: object) -> None:
        self.lines.append(f"{name}: {value}")


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _library(page: _Page) -> None:
    page.section("mindtorch_v2")
    spec = importlib.util.find_spec("mindtorch_v2")
    where = os.path.dirname(spec.origin) if spec is not None and spec.origin is not None else "an unknown place"
    page.say("version", f"{_version('mindtorch_v2') or 'a source tree'}, for programs of torch {__version__}")
    page.say("place", where)
    page.say("Python", f"{sys.version.split()[0]}, {sys.executable}")
    native = importlib.util.find_spec("mindtorch_v2._native")
    if os.environ.get("MINDTORCH_V2_NATIVE") == "0":
        page.say("C extension", "left out by MINDTORCH_V2_NATIVE=0")
    else:
        page.say("C extension", "built" if native is not None else "not built: plain Python and numpy")
    for name, use in _EXTRAS.items():
        if not _version(name):
            page.say("not installed", f"{name}, for {use}")


def _torch(page: _Page) -> None:
    """Which torch there is, and whether it is this library."""
    page.section("torch")
    torches, imported = installed.torches(), installed.imported_torch()
    for found in torches:
        page.say(
            "distribution torch", f"{found.version} in {found.place}" + ("" if found.ours else ", which is PyTorch")
        )
    if not torches:
        page.say("distribution torch", "none")
    if imported is None:
        page.say("import torch", "finds nothing; `python -m mindtorch_v2 program.py` serves it")
    else:
        page.say("import torch", f"{'mindtorch_v2' if imported[1] else 'not mindtorch_v2'}, by {imported[0]}")
    foreign = [found for found in torches if not found.ours]
    if foreign:
        page.advice.append(
            f"PyTorch {foreign[0].version} is installed: `import torch` is PyTorch, and mindtorch_v2 serves only what `python -m mindtorch_v2` "
            f"runs. To have mindtorch_v2 in its place: pip uninstall torch, then {_WHEEL}. To stay with PyTorch there is nothing to do."
        )
    elif not torches:
        page.advice.append(
            "No distribution is called torch, so `pip install` of a package that asks for torch brings PyTorch. "
            f"To keep it out: {_WHEEL}."
        )
    elif torches[0].version != str(__version__):
        page.advice.append(f"The wheel of torch is of another version than mindtorch_v2. To write it anew: {_WHEEL}.")
    if torches and not foreign and imported is not None and not imported[1]:
        page.advice.append(f"{imported[0]} stands before the installed torch on the path. Rename or remove it.")
    if torches and not foreign and imported is None:
        page.advice.append(
            f"The files of the installed torch are gone. To install it anew: pip install --force-reinstall, after {_WHEEL}."
        )


def _release(text: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", text.partition("+")[0])]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _excludes(requirement: str) -> bool:
    """Whether a requirement asks for a torch of another version; what it cannot read it lets pass."""
    here = _release(str(__version__))
    for clause in filter(None, map(str.strip, requirement.split(","))):
        asked = re.fullmatch(r"(==|~=|!=|<=|>=|<|>)\s*v?([\d.]+)(\.\*)?", clause)
        if asked is None:
            continue
        word, version = asked[1], _release(asked[2])
        if word == "==" and (here[: len(version)] if asked[3] else here) != version:
            return True
        if (word == "<" and here >= version) or (word == "<=" and here > version):
            return True
        if (word in (">=", "~=") and here < version) or (word == ">" and here <= version):
            return True
    return False


def _libraries(page: _Page) -> None:
    """The distributions that ask for torch."""
    found = installed.dependents()
    page.section("packages that ask for torch")
    if not found:
        page.lines.append("none")
    for one in found:
        excluded = _excludes(one.requirement)
        note = f", which torch {__version__} is not" if excluded else ""
        page.lines.append(f"{one.name} {one.version}: torch{' ' if one.requirement else ''}{one.requirement}{note}")
        if excluded:
            page.advice.append(
                f"{one.name} {one.version} asks for torch {one.requirement}: pip would bring PyTorch. Install a version of it that goes with "
                f"torch {__version__.split('+')[0]}, with `pip install -c constraints.txt`, which torch-wheel writes."
            )


def _names(page: _Page, wanted: list[str]) -> None:
    """What some libraries write of torch: what is real, what can only be imported, and what is not there."""
    for name in wanted:
        page.section(f"names that {name} takes from torch")
        found = installed.packages_of(name)
        if found is None:
            page.lines.append("it is not installed")
            continue
        counts = names.of_packages(*found)
        page.say("real", len(counts.real))
        page.say(
            "can be imported, and say so when they are called",
            f"{len(counts.import_only)} {' '.join(sorted(counts.import_only))}",
        )
        page.say("not there", f"{len(counts.missing)} {' '.join(sorted(counts.missing))}")


def main(arguments: list[str]) -> int:
    """The command; its exit status is 1 when there is something to mend."""
    parser = argparse.ArgumentParser(
        "python -m mindtorch_v2 doctor",
        description="Which torch this environment has, and what to do where it is not mindtorch_v2.",
    )
    parser.add_argument(
        "--names", nargs="+", default=[], metavar="PACKAGE", help="say what packages write of torch that is not there"
    )
    options = parser.parse_args(arguments)
    page = _Page()
    _library(page)
    _torch(page)
    _libraries(page)
    _names(page, options.names)
    page.section("to do")
    page.lines += [f"* {advice}" for advice in page.advice] or ["nothing"]
    print("\n".join(page.lines))
    return 1 if page.advice else 0
