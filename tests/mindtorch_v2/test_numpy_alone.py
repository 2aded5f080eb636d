"""Where numpy is all that can be had (WebAssembly, locked-down hosts): the library imports and trains without the modules that it uses for some things."""

from __future__ import annotations

import pytest
from _fresh import python

BLOCKED = """
import sys
for name in ("ctypes", "_ctypes", "mmap", "multiprocessing", "_multiprocessing", "scipy", "ml_dtypes", "safetensors", "cffi"):
    sys.modules[name] = None
"""
NATIVE = ("", "import os\nos.environ['MINDTORCH_V2_NATIVE'] = '0'\n")


@pytest.mark.parametrize("native", NATIVE)
def test_trains_saves_and_loads(native):
    python(
        """
        import io
        import mindtorch_v2 as torch
        from mindtorch_v2.utils.data import DataLoader, TensorDataset
        torch.manual_seed(0)
        nn, F = torch.nn, torch.nn.functional
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 2))
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        x = torch.randn(64, 4)
        y = (x.sum(1) > 0).long()
        losses = []
        for epoch in range(8):
            for batch, target in DataLoader(TensorDataset(x, y), 16, shuffle=True):
                loss = F.cross_entropy(model(batch), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] / 1.5, losses
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        again = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 2))
        again.load_state_dict(torch.load(file))
        assert torch.equal(model.eval()(x), again.eval()(x)) and x.is_shared() is False
        assert abs(torch.erf(torch.tensor(0.5)).item() - 0.5204998778) < 1e-6 and torch.linalg.svdvals(x).shape == (4,)
        assert x.half().float().allclose(x, atol=1e-2) and x.numpy().shape == (64, 4)
        wide = torch.zeros(2, 3, dtype=torch.bfloat16, device="meta")
        assert (wide @ wide.T).dtype is torch.bfloat16 and torch.finfo(torch.bfloat16).eps == 0.0078125
        """,
        prelude=native + BLOCKED,
    )


@pytest.mark.parametrize("native", NATIVE)
def test_what_needs_ml_dtypes_says_so(native):
    python(
        """
        import mindtorch_v2 as torch
        x = torch.ones(2)
        for dtype in (torch.bfloat16, torch.float8_e4m3fn):
            for call in (
                lambda: x.to(dtype), lambda: torch.ones(2, dtype=dtype), lambda: torch.empty(2, dtype=dtype), lambda: torch.tensor([1.0], dtype=dtype),
                lambda: torch.frombuffer(bytearray(4), dtype=dtype), lambda: x.view(dtype), lambda: torch.zeros_like(x, dtype=dtype),
            ):
                try:
                    call()
                except RuntimeError as error:
                    assert f"{dtype} are not supported on the CPU without ml_dtypes, which is not installed" in str(error), error
                else:
                    raise SystemExit("nothing was raised")
        """,
        prelude=native + BLOCKED,
    )


def test_files_without_mmap(tmp_path):
    """safetensors maps its files by this."""
    (tmp_path / "file").write_bytes(bytes(range(40)))
    python(
        f"""
        import mindtorch_v2 as torch
        path = {str(tmp_path / "file")!r}
        storage = torch.UntypedStorage.from_file(path, False, 24)
        assert storage.nbytes() == 24 and storage.tolist() == list(range(24))
        storage.fill_(7)
        assert open(path, "rb").read() == bytes(range(40))
        try:
            torch.UntypedStorage.from_file(path, True, 24)
        except ImportError as error:
            assert error.name == "mmap", error
        else:
            raise SystemExit("shared without mmap")
        """,
        prelude=BLOCKED,
    )


def test_programs_that_ask_for_an_npu_are_told_that_there_is_none():
    out = python(
        """
        import importlib.util, sys
        sys.modules["mindtorch_v2._native"] = None
        from mindtorch_v2._torch_proxy import install
        install()
        import torch
        print(torch.npu.is_available(), torch.npu.device_count(), importlib.util.find_spec("torch_npu"), torch.nn.Linear.__module__)
        """,
        prelude=BLOCKED,
    )
    assert out.split() == ["False", "0", "None", "torch.nn.modules.linear"]


def test_nothing_of_it_is_imported_with_the_library():
    out = python(
        """
        import numpy, sys
        before = set(sys.modules)
        import mindtorch_v2 as torch
        from mindtorch_v2.utils.data import DataLoader
        import mindtorch_v2.nn, mindtorch_v2.optim, mindtorch_v2.serialization
        torch.ones(2).sum()
        print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before} & {"mmap", "multiprocessing", "scipy", "cffi", "safetensors"}))
        """,
        prelude="",
    )
    assert out.strip() == ""
