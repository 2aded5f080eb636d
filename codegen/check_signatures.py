"""Compares the schema with PyTorch's own list of operators (`make check-signatures`; needs torchgen).

    python -m codegen.check_signatures [--native PATH]

Each `func:` line must be PyTorch's, word for word, and each form must exist there. A difference is allowed when the entry says
why (`differs:`). The exit status is 1 when one differs without a reason.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from .model import Op, Signature
from .problems import did_you_mean
from .schema import read_schema
from .signature import parse_signature

ROOT = Path(__file__).resolve().parent.parent
NATIVE = "packaged/ATen/native/native_functions.yaml"


@dataclass(frozen=True)
class Native:
    """An operator of PyTorch: its signature, and the variants and generated forms of its entry."""

    signature: Signature
    variants: frozenset[str]
    generated: frozenset[str]
    """Full names that PyTorch derives from the entry (`autogen`)."""
    delegate: str | None
    """The out overload that a structured operator takes its forms from."""


def read_native(path: Path) -> dict[str, Native]:
    """Every operator of a native_functions.yaml by its full name."""
    found = {}
    for entry in yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        signature = parse_signature(entry["func"])
        variants = frozenset(part.strip() for part in entry.get("variants", "function").split(","))
        generated = frozenset(part.strip() for part in entry.get("autogen", "").split(",") if part.strip())
        found[signature.full_name] = Native(signature, variants, generated, entry.get("structured_delegate"))
    return found


def differences(op: Op, native: Mapping[str, Native]) -> Iterator[str]:
    """What is not as in PyTorch, a sentence each."""
    entry = native.get(op.full_name)
    if entry is None:
        yield f"PyTorch has no such operator{did_you_mean(op.full_name, native)}"
        return
    if str(op.signature) != str(entry.signature):
        yield f"PyTorch's signature is {entry.signature}"
    for variant in ("function", "method"):
        if op.has(variant) and variant not in entry.variants:
            yield f"PyTorch has no variant '{variant}'"
    if op.has("inplace") and not op.is_inplace:
        yield from _inplace_difference(op, entry, native)
    if op.has("out") and not _has_out(op, entry, native):
        yield "PyTorch has no out form"


def _inplace_difference(op: Op, entry: Native, native: Mapping[str, Native]) -> Iterator[str]:
    """The in-place form may have an overload name of its own (`pow_.Tensor` of `pow.Tensor_Tensor`), and puts self first."""
    others = [other.signature for other in native.values() if other.signature.name == f"{op.name}_"]
    if any(name.partition(".")[0] == f"{op.name}_" for name in entry.generated):
        return
    if not others:
        yield f"PyTorch has no '{op.name}_'"
    elif all(_parameters(other) != _parameters(entry.signature) for other in others):
        yield f"the in-place form takes other arguments: {others[0]}"


def _parameters(signature: Signature) -> list[tuple[str, str, str, bool]]:
    return sorted((a.name, str(a.type), str(a.default), a.kwarg_only) for a in signature.arguments)


_OPTIONS = frozenset(("dtype", "layout", "device", "pin_memory"))


def _has_out(op: Op, entry: Native, native: Mapping[str, Native]) -> bool:
    """An overload of the same name that writes keyword-only tensors and otherwise takes the same arguments."""
    if entry.delegate is not None or any(not name.partition(".")[0].endswith("_") for name in entry.generated):
        return True
    # A factory's `out` gives dtype, layout and device, so that its out overload does not ask for them.
    options = _OPTIONS if {a.name for a in entry.signature.arguments} >= _OPTIONS else frozenset()
    wanted = sorted((a.name, str(a.type)) for a in entry.signature.arguments if a.name not in options)
    for other in native.values():
        if other.signature.name != op.name:
            continue
        written = {a.name for a in other.signature.keyword_only if a.is_written}
        # `out` may precede the other keyword-only arguments, so the order is not compared.
        rest = sorted((a.name, str(a.type)) for a in other.signature.arguments if a.name not in written)
        if written and rest == wanted:
            return True
    return False


def check_signatures(root: Path, native: Mapping[str, Native]) -> int:
    """Print every difference; the number of those without a reason."""
    schema, _ = read_schema(root)
    unexplained = explained = 0
    for op in schema.ops:
        found = list(differences(op, native))
        if not found and op.differs is not None:
            print(f"{op.location_of('differs')}: {op.full_name}: does not differ from PyTorch; drop 'differs'")
            unexplained += 1
        for sentence in found:
            print(f"{op.location_of('func')}: {op.full_name}: {sentence}" + (f" ({op.differs})" if op.differs else ""))
        explained += len(found) if op.differs else 0
        unexplained += 0 if op.differs else len(found)
    print(f"{len(schema.ops)} signatures: {explained} differences with a reason, {unexplained} without")
    return unexplained


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen.check_signatures", description=__doc__)
    parser.add_argument("--native", type=Path, help="a native_functions.yaml (default: the one that torchgen has)")
    parser.add_argument("--root", type=Path, default=ROOT, help="the source tree (default: this one)")
    options = parser.parse_args(argv)
    path = options.native
    if path is None:
        # Found, not imported: only its file is wanted.
        spec = importlib.util.find_spec("torchgen")
        if spec is None or spec.origin is None:
            print("check_signatures needs torchgen, which comes with torch; or give --native", file=sys.stderr)
            return 2
        path = Path(spec.origin).parent / NATIVE
    return 1 if check_signatures(options.root, read_native(path)) else 0


if __name__ == "__main__":
    sys.exit(main())
