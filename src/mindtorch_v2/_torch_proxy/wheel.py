"""The distribution `torch` that is this library: `python -m mindtorch_v2 torch-wheel [DIR]`.

Packages that ask for torch are content with it, and `import torch` is mindtorch_v2 in every process of the environment. A wheel is a zip file
with a list of what it has, so it is written here, without a network and without a build tool.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import sys
import zipfile

from mindtorch_v2.version import __version__

from . import installed

BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "beside")
PACKAGES = ("functorch", "torch")
CONSTRAINTS = "constraints.txt"
# What PyTorch's own packages of later versions ask for is a later torch, so they are held at those that go with this one.
COMPANIONS = {"torchvision": "0.28.0"}

# What PyTorch brings along, and libraries use without asking for it: peft writes its cards by jinja2, for one.
BROUGHT = ("filelock", "fsspec", "jinja2", "typing-extensions>=4.10")

METADATA = f"""\
Metadata-Version: 2.1
Name: torch
Version: {__version__}
Summary: torch, served by mindtorch_v2
License: Apache-2.0
Requires-Python: >=3.10
Requires-Dist: mindtorch_v2
{"".join(f"Requires-Dist: {name}" + chr(10) for name in BROUGHT)}Description-Content-Type: text/plain

The package torch of this distribution is mindtorch_v2, not PyTorch. `pip uninstall torch` takes it away; `python -m mindtorch_v2 doctor`
says which torch an environment has.
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: mindtorch_v2 torch-wheel
Root-Is-Purelib: true
Tag: py3-none-any
"""
COMMANDS = """\
[console_scripts]
torchrun = torch.distributed.run:main
"""


def _files() -> dict[str, bytes]:
    """What the wheel has, by name, without its list."""
    information = f"torch-{__version__}.dist-info"
    found = {}
    for package in PACKAGES:
        with open(os.path.join(BESIDE, package, "__init__.py"), "rb") as file:
            found[f"{package}/__init__.py"] = file.read()
    found[f"{information}/METADATA"] = METADATA.encode()
    found[f"{information}/WHEEL"] = WHEEL.encode()
    found[f"{information}/entry_points.txt"] = COMMANDS.encode()
    found[f"{information}/top_level.txt"] = "".join(f"{package}\n" for package in PACKAGES).encode()
    return found


def _recorded(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_wheel(folder: str) -> str:
    """Write the wheel into a folder, which is made if it is not there, and give its path. The same version gives the same bytes."""
    files = _files()
    record = f"torch-{__version__}.dist-info/RECORD"
    files[record] = ("".join(_recorded(*item) for item in files.items()) + f"{record},,\n").encode()
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"torch-{__version__}-py3-none-any.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def constraints() -> str:
    """The text of a file for `pip install -c` and `uv pip install --override` that keeps PyTorch out."""
    pins = {"torch": str(__version__), **COMPANIONS}
    return "".join(f"{name}=={version}\n" for name, version in pins.items())


def write_constraints(folder: str) -> str:
    """Write the constraints into a folder, and give the file's path."""
    path = os.path.join(folder, CONSTRAINTS)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(constraints())
    return path


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        "python -m mindtorch_v2 torch-wheel",
        description="Write a wheel of the distribution torch whose package torch is mindtorch_v2, and constraints that keep PyTorch out.",
    )
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where to write (the current folder)")
    folder = parser.parse_args(arguments).folder
    path = write_wheel(folder)
    limits = write_constraints(folder)
    print(f"{path}\n{limits}\n")
    print(f"pip install {path}")
    print(f"pip install -c {limits} PACKAGE ...       # packages that ask for torch")
    print(f"uv pip install --override {limits} PACKAGE ...")
    print("pip uninstall torch                      # the way back")
    for found in installed.torches():
        if not found.ours:
            print(
                f"\nwarning: PyTorch {found.version} is installed in {found.place}. To install this wheel there replaces it; "
                f"`pip install torch=={found.version.partition('+')[0]}` brings it back.",
                file=sys.stderr,
            )
    return 0
