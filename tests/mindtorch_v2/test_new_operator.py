"""A new pointwise operator that is a numpy ufunc takes one schema entry and nothing else.

The source tree is copied, an entry for `hypot` is added, and all its forms are used in a fresh process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
FAMILY = "schema/ops/pointwise.yaml"
ENTRY = """
- func: hypot(Tensor self, Tensor other) -> Tensor
  variants: [function, method, inplace, out]
  meta: elementwise(self, other, dtypes='floating_real', op='hypot_cpu')
  grad:
    self: grad * (self / result)
    other: grad * (other / result)
  kernels:
    cpu: numpy.hypot
  fallback: not_bound
  fast: ufunc
  tags: [pointwise, tensors]
"""
ALREADY = "func: hypot(" in (ROOT / FAMILY).read_text()


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree whose schema has one entry more, generated."""
    made = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for folder in ("schema", "codegen", "generated", "native", "src"):
        shutil.copytree(ROOT / folder, made / folder, symlinks=True, ignore=ignored)
    file = made / FAMILY
    text = file.read_text()
    if ALREADY:  # the project has grown it: take that entry's place
        before, after = text.split("- func: hypot(", 1)
        text = before + (("- func: " + after.split("\n- func: ", 1)[1]) if "\n- func: " in after else "")
    file.write_text(text.rstrip("\n") + "\n" + ENTRY)
    result = run(made, "-m", "codegen", "generate", "--root", str(made))
    assert result.returncode == 0, result.stderr + result.stdout
    return made


def script(tree: Path, text: str) -> None:
    """Run Python in the copy; a failed assertion there fails here."""
    lead = """
        import mindtorch_v2 as torch, pathlib, pytest
        assert pathlib.Path(torch.__file__).is_relative_to(TREE), torch.__file__
        t = torch.tensor
    """.replace("TREE", repr(str(tree)))
    result = run(tree, "-c", textwrap.dedent(lead) + textwrap.dedent(text))
    assert result.returncode == 0, result.stderr


def test_only_generated_files_differ(tree: Path) -> None:
    changed = []
    for folder in ("codegen", "src", "schema"):
        for file in (tree / folder).rglob("*"):
            original = ROOT / file.relative_to(tree)
            if file.is_file() and "_generated" not in file.parts and file.read_bytes() != original.read_bytes():
                changed.append(file.relative_to(tree).as_posix())
    assert changed == [FAMILY]


def test_the_generator_is_content(tree: Path) -> None:
    result = run(tree, "-m", "codegen", "check", "--root", str(tree))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "hypot" in run(tree, "-m", "codegen", "explain", "hypot", "--root", str(tree)).stdout


def test_function_method_in_place_and_out(tree: Path) -> None:
    script(
        tree,
        """
        a, b = t([3.0, 5.0]), t([4.0, 12.0])
        assert torch.hypot(a, b).tolist() == [5.0, 13.0]
        assert torch.hypot(input=a, other=b).tolist() == a.hypot(b).tolist() == [5.0, 13.0]
        assert torch.hypot(t([[3.0], [6.0]]), t([4.0, 8.0])).shape == (2, 2)
        out = torch.empty(0)
        assert torch.hypot(a, b, out=out) is out and out.tolist() == [5.0, 13.0]
        assert torch.hypot(a, b, out=torch.empty(2, dtype=torch.float64)).dtype is torch.float64
        c = a.clone()
        assert c.hypot_(b) is c and c.tolist() == [5.0, 13.0] and c._version == 1
        with pytest.raises(RuntimeError, match="The size of tensor a"):
            torch.hypot(torch.ones(2), torch.ones(3))
        """,
    )


def test_promotion_is_pytorch_s(tree: Path) -> None:
    script(
        tree,
        """
        assert torch.hypot(t([3.0]), t([4])).dtype is torch.float32
        assert torch.hypot(t([3.0], dtype=torch.bfloat16), t([4.0])).dtype is torch.float32
        assert torch.hypot(t([3.0], dtype=torch.bfloat16), t(4.0)).dtype is torch.bfloat16
        assert torch.hypot(t([3.0]), t([4.0], dtype=torch.float64)).dtype is torch.float64
        assert torch.hypot(t([3.0], dtype=torch.float16), t([4.0], dtype=torch.float16)).tolist() == [5.0]
        for bad, name in ((t([3]), "Long"), (t([True]), "Bool"), (t([3j]), "ComplexFloat")):
            for device in ("cpu", "meta"):
                with pytest.raises(NotImplementedError, match=f'"hypot_cpu" not implemented for \\'{name}\\''):
                    torch.hypot(bad.to(device), bad.to(device))
        with pytest.raises(TypeError, match="must be Tensor, not int"):
            torch.hypot(t([3.0]), 4)
        """,
    )


def test_meta_keeps_strides(tree: Path) -> None:
    script(
        tree,
        """
        x = torch.empty(2, 3).t()
        for device in ("cpu", "meta"):
            y = torch.hypot(x.to(device), x.to(device))
            assert y.device.type == device and y.stride() == (1, 3) and y.shape == (3, 2)
        """,
    )


def test_gradients(tree: Path) -> None:
    script(
        tree,
        """
        x = t([3.0, 5.0], dtype=torch.float64, requires_grad=True)
        y = t([[4.0], [12.0]], dtype=torch.float64, requires_grad=True)
        assert torch.hypot(x, y).grad_fn.name() == "HypotBackward0"
        assert torch.autograd.gradcheck(torch.hypot, (x, y))
        assert torch.autograd.gradgradcheck(torch.hypot, (x, y))
        torch.hypot(x, t([4.0, 12.0], dtype=torch.float64)).sum().backward()
        assert x.grad.tolist() == [0.6, 5 / 13]
        z = x * 1
        z.hypot_(t([4.0, 12.0], dtype=torch.float64))
        z.sum().backward()
        assert x.grad.tolist() == [1.2, 10 / 13]
        """,
    )


def test_subclasses_and_stubs(tree: Path) -> None:
    script(
        tree,
        """
        class Mine(torch.Tensor):
            pass
        assert type(torch.hypot(t([3.0]).as_subclass(Mine), t([4.0]))) is Mine
        assert "hypot" in (pathlib.Path(torch.__file__).parent / "_generated" / "functions" / "__init__.pyi").read_text()
        assert "hypot_" in (pathlib.Path(torch.__file__).parent / "_generated" / "tensor.pyi").read_text()
        """,
    )
