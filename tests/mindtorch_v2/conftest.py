"""Fixtures: the processor's vectors, and the Ascend emulator, called through its C ABI. It is built first, where there is a C compiler."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pytest
from _emulator import Emulator, built
from _emulator_operators import Emulator as OperatorEmulator

from mindtorch_v2._dispatch import native


@pytest.fixture(params=[0, 1, 2], ids=["plain", "AVX2", "AVX-512"])
def vectors(request: pytest.FixtureRequest) -> Iterator[int]:
    """Loops for each size of vectors that the processor has; once where there is no extension."""
    if native.extension is None:
        if request.param:
            pytest.skip("without the extension there is one way")
        yield 0
        return
    if native.extension.use_vectors(request.param) != request.param:
        native.extension.use_vectors(2)
        pytest.skip("the processor has no such vectors")
    yield request.param
    native.extension.use_vectors(2)


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
