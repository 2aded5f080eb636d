"""Input that has no end, or too many dimensions, and files that say what would never end: refused in bounded time, in PyTorch's words where it has them."""

from __future__ import annotations

import io
import pickle
import time
import zipfile
from typing import Any

import pytest

import mindtorch_v2 as torch


def _nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def _endless() -> list:
    made: list = []
    made.append(made)
    return made


def _with_itself() -> list:
    made: list = [1.0]
    made.append(made)
    return made


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (_endless(), ValueError, "too many dimensions 'list'"),
        (_with_itself(), TypeError, "must be real number, not list"),
        (_nested(1.0, 129), ValueError, "too many dimensions 'list'"),
        (_nested(1.0, 65), RuntimeError, "a tensor of 65 dimensions is not supported on CPU: there are at most 64"),
    ],
)
def test_lists_of_too_many_dimensions(data: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        torch.tensor(data, dtype=torch.float32)


def test_deep_lists_take_no_longer_than_their_elements() -> None:
    start = time.thread_time()
    assert torch.tensor(_nested(1.0, 40)).shape == (1,) * 40
    assert time.thread_time() - start < 1


@pytest.mark.parametrize("make", ["zeros([1] * 65)", "zeros(1).view([1] * 65)", "zeros(1).expand([1] * 65)"])
def test_shapes_of_too_many_dimensions(make: str) -> None:
    with pytest.raises(RuntimeError, match="a tensor of 65 dimensions is not supported"):
        eval(f"torch.{make}").tolist()


def test_steps_and_offsets_of_views() -> None:
    x = torch.arange(5.0)
    assert x[:: 2**61].tolist() == [0.0] and x[:: 2**61].stride(0) > 0
    file = io.BytesIO()
    torch.save(x[:: 2**61], file)
    file.seek(0)
    assert torch.load(file).tolist() == [0.0]
    grid = torch.zeros(3, 4)
    assert [v.storage_offset() for v in (x[5:], x[4:4], x[2:][3:], grid[1:, 4:], grid[3:])] == [5, 4, 5, 8, 12]


@pytest.mark.parametrize(
    ("shape", "order", "wanted"),
    [((1, 3), (1, 0), (1, 3)), ((3, 1), (1, 0), (1, 1)), ((2, 1, 3), (0, 2, 1), (3, 1, 3)), ((3, 1), (0, 1), (1, 1))],
)
def test_dimensions_of_one_element_beside_numbers(shape: tuple, order: tuple, wanted: tuple) -> None:
    x = torch.ones(shape).permute(order)
    for made in (x + 1, 1 - x, x * 2.5, x > 1, x.add(1, alpha=2), torch.tensor(2.0) + x, x % 2, x + torch.tensor(2.0)):
        assert made.stride() == wanted


_ONE = b"\x80\x02X\x01\x00\x00\x00a"
_DEEP = b")" + b"\x85" * 200_000
_WIDE = _ONE + b"q\x00h\x00\x86" * 40
_GLOBAL = b"c_codecs\nencode\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (b"\x80\x02" + _DEEP + b")\x81.", "Can only create new object of a class, but got a tuple of 1"),
        (b"\x80\x02" + _DEEP + b")R.", "unrecognized function a tuple of 1"),
        (b"\x80\x02]X\x01\x00\x00\x00aa)\x81.", "Can only create new object of a class, but got a list of 1"),
        (_WIDE + b")R.", "unrecognized function a tuple of 2"),
        (_WIDE + b"Q.", "Only persistent_load of storage is allowed"),
        (b"\x80\x02}" + _WIDE[2:] + b"K\x01s.", "a key of nested tuples is too large"),
        (b"\x80\x02cbuiltins\nset\n" + _WIDE[2:] + b"\x85R.", "a key of nested tuples is too large"),
        (
            b"\x80\x02" + _GLOBAL + b"q\x00X\x00\x00\x10\x00" + b"a" * (1 << 20) + b"q\x01" + b"h\x00h\x01\x85R" * 3000 + b".",
            "makes far more of its values than it holds",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["archive", "legacy"])
def test_pickles_that_would_never_end(code: bytes, words: str, form: str) -> None:
    file = io.BytesIO()
    if form == "archive":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", code)
            archive.writestr("archive/version", "3\n")
    else:
        file.write(pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({}, 2) + code)
    file.seek(0)
    start = time.thread_time()
    with pytest.raises(pickle.UnpicklingError, match=words):
        torch.load(file, weights_only=True)
    assert time.thread_time() - start < 5


def test_a_state_may_not_name_what_python_gives_a_meaning() -> None:
    file = io.BytesIO()
    torch.save(torch.nn.Parameter(torch.ones(2)), file)
    content = file.getvalue()
    made = torch.nn.Parameter(torch.ones(2))
    from mindtorch_v2._serialization.rebuild import _set_obj_state

    with pytest.raises(RuntimeError, match="'__class__' cannot be set on a tensor"):
        _set_obj_state(made, {"__class__": torch.Tensor})
    assert torch.load(io.BytesIO(content)).tolist() == [1.0, 1.0]
