"""Tests on NPUs: `MINDTORCH_NPU_EMULATOR=1 pytest tests/npu` (`make test-npu`) with the emulator, or plain `pytest tests/npu` on a machine that has some.

They are apart from the other tests, which describe a machine without an NPU.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "mindtorch_v2"))

import mindtorch_v2 as torch

AVAILABLE = torch.npu.is_available()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).resolve().parent
    if AVAILABLE:
        return
    for item in items:
        if here in Path(item.path).parents:
            item.add_marker(pytest.mark.skip(reason="there is no NPU; `make test-npu` runs these with the emulator"))
