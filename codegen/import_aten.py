"""Writes schema/aten.tsv from an installed PyTorch: what its overloads are called, their arguments and their tags.

    python -m codegen.import_aten

Overloads that no CPU has a kernel for, and those of vendors' libraries and of PyTorch's own tests, are left out.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGET = Path("schema/aten.tsv")
COMMON = "pt2_compliant_tag"  # nearly all have it: a minus stands where it is absent
KEYS = (
    "CPU",
    "SparseCPU",
    "SparseCsrCPU",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
ELSEWHERE = re.compile(
    r"_?(cudnn|miopen|mkldnn|nnpack|mps|xla|cufft|use_cudnn)|_?(fbgemm|fused_moving|fake_quantize)|.*(quantize|qparams)|_?(test|foobar|triton|nested|wrapped)_?|_lstm_mps"
)
HEADER = """\
# The overloads of PyTorch's operators: signature, and tags behind a tab. A minus is one that lacks the tag which all others have, pt2_compliant_tag.
# Facts of PyTorch {version}, written by `python -m codegen.import_aten`.
"""


def overloads(torch: Any) -> Iterator[tuple[str, str]]:
    """(signature, tags) of every overload that a CPU could run, by name."""
    known = set(torch._C._dispatch_get_all_op_names())
    # What says how a tensor is (`size`) has an overload that the dispatcher does not know.
    bases = {name.partition(".")[0] for name in known}
    names = known | {name for name in bases if hasattr(torch.Tensor, name.removeprefix("aten::").removeprefix("sym_"))}
    for name in sorted(names):
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if namespace != "aten" or ELSEWHERE.match(base):
            continue
        found = getattr(getattr(torch.ops.aten, base), overload or "default", None)
        if found is None or (name not in known and "(Tensor self)" not in str(found._schema)):
            continue
        tags = {str(tag).rpartition(".")[2] for tag in found.tags}
        is_member = "core" in tags or hasattr(torch.Tensor, base.removeprefix("sym_"))
        if not is_member and not any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in KEYS):
            continue
        words = sorted(tags - {COMMON}) + ([] if COMMON in tags else ["-"])
        yield str(found._schema).removeprefix("aten::"), " ".join(words)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen.import_aten", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="project root")
    options = parser.parse_args(argv)
    torch = importlib.import_module("torch")  # PyTorch itself, which the other commands do without

    rows = [f"{signature}\t{tags}".rstrip("\t") for signature, tags in overloads(torch)]
    text = HEADER.format(version=torch.__version__.partition("+")[0]) + "\n".join(rows) + "\n"
    (options.root / TARGET).write_text(text, encoding="utf-8")
    print(f"{len(rows)} overloads")
    return 0


if __name__ == "__main__":
    sys.exit(main())
