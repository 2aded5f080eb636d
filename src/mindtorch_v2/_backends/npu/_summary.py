"""The allocator's statistics as a table for people, 75 columns wide, with the rows of PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

_WIDTH = 75


def _scaled(step: int, bound: int, units: tuple[str, ...], width: int) -> Callable[[int, int], str]:
    """A formatter of numbers that picks the unit by a reference number, so that a row and its parts have the same."""

    def text(number: int, reference: int) -> str:
        at = 0
        scale = 1
        while at + 1 < len(units) and reference >= bound * scale:
            at, scale = at + 1, scale * step
        return f"{number // scale:{width}d} {units[at]}"

    return text


_size = _scaled(1024, 768 * 1024, ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB"), 6)
_count = _scaled(1000, 750 * 1000, ("  ", "K ", "M "), 7)

_ROWS = (
    ("allocated_bytes", "Allocated memory", _size),
    ("active_bytes", "Active memory", _size),
    ("requested_bytes", "Requested memory", _size),
    ("reserved_bytes", "Reserved memory", _size),
    ("inactive_split_bytes", "Non-releasable memory", _size),
    ("allocation", "Allocations", _count),
    ("active", "Active allocs", _count),
    ("segment", "Reserved segments", _count),
    ("inactive_split", "Non-releasable allocs", _count),
)
_OVERSIZE = (("oversize_allocations", "Oversize allocations"), ("oversize_segments", "Oversize segments"))
_METRICS = ("current", "peak", "allocated", "freed")


def summary(stats: Mapping[str, int], device: int, abbreviated: bool) -> str:
    """The table. Statistics that are missing count as 0."""

    def row(prefix: str, name: str, text: Callable[[int, int], str], reference: str) -> str:
        cells = (text(stats.get(f"{prefix}.{m}", 0), stats.get(f"{reference}.{m}", 0)) for m in _METRICS)
        return f" {name:<21} | {' | '.join(cells)} "

    thin, thick = "-" * _WIDTH, "=" * _WIDTH
    lines = [
        thick,
        f"{'NPU memory summary, device ID ' + str(device):^{_WIDTH}}",
        thin,
        f"{'':11} NPU OOMs: {stats.get('num_ooms', 0):<13d} |  malloc retries: {stats.get('num_alloc_retries', 0):<18d} ",
        thick,
        "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ",
    ]
    for kind, name, text in _ROWS:
        lines += [thin, row(f"{kind}.all", name, text, f"{kind}.all")]
        if not abbreviated:
            for pool in ("large", "small"):
                lines.append(row(f"{kind}.{pool}_pool", f"      from {pool} pool", text, f"{kind}.all"))
    for kind, name in _OVERSIZE:
        lines += [thin, row(kind, name, _count, kind)]
    lines.append(thick)
    return "".join(f"|{line:<{_WIDTH}}|\n" for line in lines)
