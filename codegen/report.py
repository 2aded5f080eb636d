"""`python -m codegen report`: how many operators there are, and what they lack."""

from __future__ import annotations

from .model import DEVICES, VARIANTS, Op, Schema


def report(schema: Schema) -> str:
    """Counts by family, then totals by device, form and derivative, and the use of aclnn."""
    header = ("family", "operators", "rule+kernel", "view", "composite", "missing", *DEVICES, "differentiable")
    rows = [(family, *_counts(ops)) for family, ops in schema.families.items()]
    rows.append(("all", *_counts(schema.ops)))
    widths = [max(len(str(row[i])) for row in (header, *rows)) for i in range(len(header))]
    lines = [
        "  ".join(_cell(value, width) for value, width in zip(row, widths, strict=True)) for row in (header, *rows)
    ]
    forms = [f"{sum(op.has(variant) for op in schema.ops)} {variant}" for variant in VARIANTS]
    differing = sum(op.differs is not None for op in schema.ops)
    lines += [
        "",
        f"functions: {len(schema.functions)} names",
        f"forms: {', '.join(forms)}",
        f"aclnn: {len(schema.aclnn_used)} of {len(schema.aclnn)} prototypes used",
        f"one by one under vmap: {len(schema.one_by_one)} names",
        f"signatures that differ from PyTorch's, with a reason: {differing}",
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _counts(ops: tuple[Op, ...]) -> tuple[int, ...]:
    return (
        len(ops),
        sum(bool(op.kernels) for op in ops),
        sum(op.is_view and not op.is_missing for op in ops),
        sum(op.is_composite for op in ops),
        sum(op.is_missing for op in ops),
        *(sum(op.kernel(device) is not None for op in ops) for device in DEVICES),
        sum(op.is_differentiable for op in ops),
    )


def _cell(value: object, width: int) -> str:
    return f"{value:<{width}}" if isinstance(value, str) else f"{value:>{width}}"
