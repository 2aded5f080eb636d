"""Libraries over torch, installed as their users install them: they import beside each other, and compute what they compute with PyTorch.

`make test-ecosystem` makes the environment (requirements.txt) and runs this; without the libraries, or without a torch that is mindtorch_v2, there is nothing to run.
"""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TOLERANCE = 2e-4
LIBRARIES = (
    "accelerate adam_atan2_pytorch botorch captum datasets diffusers e3nn einops ema_pytorch gpytorch kornia lightning linear_operator lion_pytorch lpips "
    "monai open_clip peft pyro pytorch_lightning pytorch_metric_learning resemblyzer rotary_embedding_torch safetensors.torch segmentation_models_pytorch "
    "sentence_transformers skorch tensordict timm torch_geometric torchdiffeq torchmetrics torchsde torchvision transformers vector_quantize_pytorch "
    "x_transformers"
).split()
VALUES = json.loads((HERE / "values.json").read_text(encoding="utf-8"))
NEEDS = {
    "small_optimizers": ("lion_pytorch", "adam_atan2_pytorch", "ema_pytorch", "rotary_embedding_torch"),
    "peft": ("peft", "transformers"),
    "diffusers.adapted": ("diffusers", "peft", "torchsde"),
}

pytestmark = pytest.mark.ecosystem


@pytest.fixture(autouse=True)
def _served():
    torch = pytest.importorskip("torch")
    if "mindtorch" not in torch.__version__:
        pytest.skip("torch is PyTorch here")


def _there(*names: str) -> None:
    for name in names:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("name", LIBRARIES)
def test_imports(name):
    _there(name)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", f"import {name}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("name", VALUES)
def test_programs_give_pytorchs_numbers(name, monkeypatch):
    _there(*NEEDS.get(name, (name,)))
    monkeypatch.syspath_prepend(str(HERE))
    import deeper
    import further
    import models
    import sundry
    import tools
    import wider
    from outcomes import outcomes

    found, expected = (
        outcomes(
            (models.PROGRAMS | tools.PROGRAMS | further.PROGRAMS | wider.PROGRAMS | deeper.PROGRAMS | sundry.PROGRAMS)[
                name
            ]
        ),
        VALUES[name],
    )
    assert [row[0] for row in found] == [row[0] for row in expected]
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        scale = max([abs(x) for x in theirs[2:] if math.isfinite(x)], default=0)
        for place, (x, y) in enumerate(zip(ours[1:], theirs[1:], strict=True)):
            close = x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= TOLERANCE * max(abs(y), scale, 1e-3)
            assert close, (
                f"{name}: tensor {number}, {'sum' if place == 0 else f'element {place - 1}'}: {x}, PyTorch {y}"
            )
