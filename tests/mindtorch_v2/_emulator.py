"""The emulator by ctypes: CANN's functions with the types of `data/acl_prototypes.json`, and short ways to what tests need."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src" / "mindtorch_v2" / "_backends" / "npu" / "emulator"
LIBRARY = SOURCES / "build" / "libascend_emulator.so"
OTHER = "MINDTORCH_EMULATOR_TEST_LIBRARY"
"""A variable with another build to test (that of `make asan`)."""
PROTOTYPES: dict[str, tuple[str, list[tuple[str, str]]]] = json.loads(
    (HERE / "data" / "acl_prototypes.json").read_text()
)

H2H, H2D, D2H, D2D = range(4)
DTYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "uint16": 7, "uint32": 8, "int64": 9, "uint64": 10, "float64": 11,
          "bool": 12, "complex64": 16, "complex128": 17, "bfloat16": 27}  # fmt: skip

_SCALARS = {
    "size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32,
    "float": ctypes.c_float, "aclFloat16": ctypes.c_uint16, "aclnnStatus": ctypes.c_int32, "void": None,
}  # fmt: skip
_HANDLES = {"aclrtStream", "aclrtEvent", "aclrtContext", "aclrtDrvMemHandle"} | {
    "aclrtCallback",
    "aclrtHostFunc",
    "aclrtExceptionInfoCallback",
}


def built() -> tuple[Path | None, str]:
    """The library, built first when there is a compiler; else the reason why there is none."""
    if os.environ.get(OTHER):
        return Path(os.environ[OTHER]), ""
    if shutil.which("cc"):
        with open(SOURCES / "Makefile") as lock:  # tests that run side by side build one after the other
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run(["make", "-C", str(SOURCES), "all"], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the emulator does not build:\n{done.stdout}{done.stderr}")
    return (LIBRARY, "") if LIBRARY.exists() else (None, "the emulator is not built, and there is no C compiler")


def _ctype(name: str) -> Any:
    name = name.removeprefix("const ").strip()
    if name == "char*":
        return ctypes.c_char_p
    if name.endswith("*") or name in _HANDLES:
        return ctypes.c_void_p
    return _SCALARS.get(name, ctypes.c_int)  # the rest are enums


class Emulator:
    """An opened emulator, and its functions as methods: `lib.aclrtMalloc(...)` gives the status."""

    def __init__(self, path: Path) -> None:
        self.dll = ctypes.CDLL(str(path))
        for name, (result, parameters) in PROTOTYPES.items():
            function = getattr(self.dll, name)
            function.restype = _ctype(result)
            function.argtypes = [_ctype(kind) for kind, _ in parameters]
            setattr(self, name, function)
        p, i = ctypes.c_void_p, ctypes.c_int64
        own = {
            "emFault": (None, [ctypes.c_char_p, i, i]), "emClearFaults": (None, []), "emLive": (i, [ctypes.c_char_p]),
            "emLaunches": (i, [ctypes.c_char_p]), "emMissing": (ctypes.c_char_p, [ctypes.c_char_p]),
            "emUniform": (None, [ctypes.c_uint64, ctypes.c_uint64, i, p]),
            "emCopyGetWorkspaceSize": (ctypes.c_int32, [p, i, p, p, p]), "emTakeGetWorkspaceSize": (ctypes.c_int32, [p, i, p, p, p]),
            "emCopy": (ctypes.c_int32, [p, ctypes.c_uint64, p, p]), "emTake": (ctypes.c_int32, [p, ctypes.c_uint64, p, p]),
        }  # fmt: skip
        for name, (result, parameters) in own.items():
            function = getattr(self.dll, name)
            function.restype, function.argtypes = result, parameters
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def message(self) -> str:
        """The thread's last message, which is taken."""
        text = self.aclGetRecentErrMsg()
        return "" if text is None else text.decode()

    def ok(self, name: str, *args: Any) -> None:
        """Call a function that must succeed."""
        status = getattr(self, name)(*args)
        assert status == 0, f"{name}: {status}: {self.message()}"

    def make(self, name: str, *args: Any) -> int:
        """The pointer that a function stores by its first argument."""
        cell = ctypes.c_void_p()
        self.ok(name, ctypes.byref(cell), *args)
        assert cell.value
        return cell.value

    def malloc(self, nbytes: int) -> int:
        return self.make("aclrtMalloc", nbytes, 0)

    def stream(self) -> int:
        return self.make("aclrtCreateStream")

    def event(self, flags: int = 11) -> int:
        return self.make("aclrtCreateEventExWithFlag", flags)

    def query(self, name: str, handle: int) -> int:
        """The status that a query stores."""
        cell = ctypes.c_int()
        self.ok(name, handle, ctypes.byref(cell))
        return cell.value

    def upload(self, array: np.ndarray) -> int:
        """New device memory with an array's bytes."""
        data = np.ascontiguousarray(array)
        address = self.malloc(max(data.nbytes, 1))
        self.ok("aclrtMemcpy", address, data.nbytes, data.ctypes.data, data.nbytes, H2D)
        return address

    def download(self, address: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array of what is at a device address."""
        array = np.empty(shape, dtype)
        self.ok("aclrtMemcpy", array.ctypes.data, array.nbytes, address, array.nbytes, D2H)
        return array

    def tensor(
        self, address: int | None, shape: tuple[int, ...], dtype: str = "float32", strides: tuple[int, ...] | None = None, offset: int = 0, stored: int | None = None
    ) -> int | None:  # fmt: skip
        """A tensor's descriptor; None with a message when it is refused."""
        dims = (ctypes.c_int64 * len(shape))(*shape)
        steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        storage = (ctypes.c_int64 * 1)(int(np.prod(shape, dtype=np.int64)) if stored is None else stored)
        return self.aclCreateTensor(dims, len(shape), DTYPES[dtype], steps, offset, 2, storage, 1, address)

    def phase1(self, name: str, source: int, number: int, target: int) -> tuple[int, int | None, int]:
        """(status, executor, workspace size) of a test operator's first phase."""
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        status = getattr(self, f"{name}GetWorkspaceSize")(
            source, number, target, ctypes.byref(size), ctypes.byref(executor)
        )
        return status, executor.value, size.value

    def copy(self, source: int, target: int, stream: int | None = None) -> None:
        """Launch the test operator that copies."""
        status, executor, _ = self.phase1("emCopy", source, 0, target)
        assert status == 0, self.message()
        self.ok("emCopy", None, 0, executor, stream)


PRELUDE = """
import ctypes, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, {folder!r})
from _emulator import *
lib = Emulator(Path({library!r}))
lib.ok("aclInit", None)
lib.ok("aclrtSetDevice", 0)
"""


def run(library: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program that has `lib`, initialised, in a process of its own."""
    import textwrap

    text = PRELUDE.format(folder=str(HERE), library=str(library)) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )
