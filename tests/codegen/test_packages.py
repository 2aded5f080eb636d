"""Operators of a package of its own: the example in examples/operator_package, faults planted in it, and mistakes in its schema."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/operator_package"
GENERATE = ("-m", "mindtorch_v2.codegen", "--schema", "my_ops/schema", "--out", "my_ops/generated")
TESTS = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", "tests")
MISTAKE = """\
- func: {name}(Tensor self) -> Tensor
  variants: [function{variant}]
  meta: elementwise(self)
  grad: none
  kernels: {{cpu: {kernel}}}
  {more}
"""


def run(folder: Path, *command: str, library: Path = ROOT / "src", **environment: str) -> subprocess.CompletedProcess:
    """A process of Python in the folder of a package that is not installed."""
    paths = os.pathsep.join([str(library), str(folder), environment.pop("more", "")])
    env = {**os.environ, "PYTHONPATH": paths, "PIPELINE": "0", **environment}
    return subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the example."""
    return shutil.copytree(EXAMPLE, tmp_path / "package", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))


def test_the_example_with_the_tests_that_follow_from_its_schema(package):
    done = run(package, *TESTS)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize(
    ("file", "old", "new", "word"),
    [
        ("formulas.py", "scale - result * result / scale", "scale - result * result", "gradcheck"),
        ("rules.py", "(*shape[:-1], 1)", "(*shape[:-1], 2)", "rms_pair"),
        ("rules.py", 'raise RuntimeError("rms_pair: expected at least one dimension")', "pass", "meta"),
        ("kernels.py", "np.tanh(self) *", "np.tanh(self + len(self.shape)) *", "scaled_tanh"),
    ],
)
def test_planted_faults_are_found(package, file, old, new, word):
    text = (package / "my_ops" / file).read_text()
    assert old in text
    (package / "my_ops" / file).write_text(text.replace(old, new))
    done = run(package, *TESTS)
    assert done.returncode == 1 and word in done.stdout


def test_an_installed_package_is_found_by_its_entry_point(package, tmp_path):
    info = tmp_path / "site/my_ops-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_ops\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[mindtorch_v2.operators]\nmy_ops = my_ops.generated\n")
    program = (
        "import mindtorch_v2 as torch; print(torch.ops.my_ops.difference(torch.ones(2), 3 * torch.ones(2)).tolist())"
    )
    done = run(package, "-c", program, more=str(info.parent))
    assert done.stdout.strip() == "[-2.0, -2.0]", done.stderr
    done = run(package, "-c", program)
    assert "has no attribute 'difference'" in done.stderr


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": "abs"}, "mistake.yaml:1:9: abs: the name must begin with 'my_ops_'"),
        ({"kernel": "kernels.scaled_tan"}, "unknown kernel 'kernels.scaled_tan'; did you mean 'kernels.scaled_tanh'?"),
        ({"kernel": "pointwise.nothing"}, "unknown kernel 'pointwise.nothing'"),
        ({"variant": ", method"}, "methods of Tensor are the library's"),
        ({"more": "block: self"}, "loops in C are the library's"),
        ({"more": "namespace: nn"}, "unknown namespace 'nn'"),
        ({"more": "fast: kernels.scaled_tanh"}, "the short cut can only be 'ufunc'"),
    ],
)
def test_mistakes_are_told_with_their_place(package, given, problem):
    words = {"name": "my_ops_x", "variant": "", "kernel": "numpy.negative", "more": "tags: [pointwise]", **given}
    (package / "my_ops/schema/ops/mistake.yaml").write_text(MISTAKE.format(**words))
    done = run(package, *GENERATE)
    assert done.returncode == 1 and problem in done.stderr
    assert not (package / "my_ops/generated/tables/mistake.py").exists()


def test_what_is_no_product_any_more_is_removed(package):
    (package / "my_ops/schema/ops/rows.yaml").unlink()
    assert run(package, *GENERATE, "--check").returncode == 1
    done = run(package, *GENERATE)
    assert done.returncode == 0 and "3 removed" in done.stdout
    assert not (package / "my_ops/generated/tables/rows.py").exists()
    assert run(package, *GENERATE, "--check").returncode == 0


def test_the_generator_of_a_wheel(package, tmp_path):
    """Which has no checkout around it: laid out as setup.py does."""
    installed = tmp_path / "site/mindtorch_v2"
    ignored = shutil.ignore_patterns("__pycache__", "emulator")
    shutil.copytree(ROOT / "src/mindtorch_v2", installed, ignore=ignored)
    shutil.copytree(ROOT / "generated", installed / "_generated", ignore=ignored, dirs_exist_ok=True)
    own = shutil.ignore_patterns("__pycache__", "__init__.py", "__main__.py")
    shutil.copytree(ROOT / "codegen", installed / "codegen", ignore=own, dirs_exist_ok=True)
    shutil.copy(ROOT / "schema/aclnn.yaml", installed / "codegen/aclnn.yaml")
    done = run(package, *GENERATE, "--check", library=installed.parent)
    assert done.returncode == 0, done.stderr


def test_derivatives_may_read_more_arguments_than_recorders_in_c_take(package):
    names = [f"a{i}" for i in range(20)]
    signature = ", ".join(f"float {name}" for name in names)
    (package / "my_ops/schema/ops/many.yaml").write_text(
        f"- func: my_ops_many(Tensor self, {signature}) -> Tensor\n"
        "  variants: [function]\n"
        "  meta: elementwise(self, dtypes='floating_real', op='many')\n"
        f"  grad: {{self: grad * ({' + '.join(names)})}}\n"
        "  kernels: {cpu: many.many}\n"
        "  tags: [pointwise]\n"
    )
    (package / "my_ops/many.py").write_text(
        "def many(self, *numbers):\n    return self * self.dtype.type(sum(numbers))\n"
    )
    done = run(package, *GENERATE)
    assert done.returncode == 0, done.stderr
    program = (
        "import mindtorch_v2 as torch; torch.ops.import_module('my_ops.generated')\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "torch.ops.my_ops.many(x, *range(20)).sum().backward(); print(x.grad.tolist())"
    )
    done = run(package, "-c", program)
    assert done.stdout.strip() == "[190.0, 190.0]", done.stderr


def test_a_wheel_holds_all_that_its_part_of_the_generator_imports():
    """The rest, `WORKSHOP` of setup.py, serves this repository alone."""
    tree = ast.parse((ROOT / "setup.py").read_text())
    (workshop,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and "WORKSHOP" in ast.unparse(node.targets[0])
    ]
    left_out = {path.stem for path in eval(ast.unparse(workshop), {"CODEGEN": ROOT / "codegen"})}
    held = {
        path.stem: ast.parse(path.read_text()) for path in (ROOT / "codegen").glob("*.py") if path.stem not in left_out
    }
    assert left_out <= {path.stem for path in (ROOT / "codegen").glob("*.py")} and {"outside", "emit"} <= held.keys()
    for name, module in held.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and node.level:
                imported = {node.module} if node.module else {alias.name for alias in node.names}
                assert imported <= held.keys(), name
