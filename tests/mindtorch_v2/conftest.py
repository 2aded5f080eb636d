"""Fixtures of tests that call the Ascend emulator through its C ABI. It is built first, where there is a C compiler."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from _emulator import Emulator, built
from _emulator_operators import Emulator as OperatorEmulator


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """A copy of the library: state of its own, apart from an emulator that the process uses as its NPU."""
    path, reason = built()
    if path is None:
        pytest.skip(reason)
    return shutil.copy(path, tmp_path_factory.mktemp("emulator") / path.name)


@pytest.fixture
def lib(library, monkeypatch):
    monkeypatch.setenv("MINDTORCH_NPU_EMULATOR_MEMORY", str(64 << 20))
    for name in ("DEVICES", "SOC", "CANN", "TRACE"):
        monkeypatch.delenv(f"MINDTORCH_NPU_EMULATOR_{name}", raising=False)
    emulator = Emulator(library)
    emulator.ok("aclInit", None)
    emulator.ok("aclrtSetDevice", 0)
    emulator.message()
    yield emulator
    emulator.emClearFaults()
    emulator.ok("aclFinalize")


@pytest.fixture(scope="module")
def emulator():
    """The library with a stream, for calls of operators."""
    path, reason = built()
    if path is None:
        pytest.skip(reason)
    return OperatorEmulator(path)


@pytest.fixture
def pair(lib):
    """(lib, self, out, address of out): tensors of the test operator."""
    blocks = lib.upload(np.arange(6, dtype=np.float32)), lib.upload(np.zeros(6, np.float32))
    tensors = [lib.tensor(block, (2, 3)) for block in blocks]
    yield lib, *tensors, blocks[1]
    for tensor in tensors:
        lib.ok("aclDestroyTensor", tensor)
    for block in blocks:
        lib.ok("aclrtFree", block)
