"""Objects saved to memory, and archives changed by hand."""

from __future__ import annotations

import io
import zipfile

import mindtorch_v2 as torch


def saved(obj, **options):
    buffer = io.BytesIO()
    torch.save(obj, buffer, **options)
    buffer.seek(0)
    return buffer


def round_trip(obj, **options):
    return torch.load(saved(obj), **options)


def edited(raw, **changes):
    """An archive with other content for some records: bytes, a function of the old content, or None to leave a record out."""
    source, out = zipfile.ZipFile(io.BytesIO(raw)), io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for entry in source.infolist():
            name = entry.filename.partition("/")[2]
            content = changes.get(name, source.read(entry))
            content = content(source.read(entry)) if callable(content) else content
            if content is not None:
                target.writestr(entry.filename, content)
    out.seek(0)
    return out
