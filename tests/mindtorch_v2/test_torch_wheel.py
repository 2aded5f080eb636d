"""The distribution torch that is this library: written, installed, used by every process, replaced, and taken away again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import textwrap
import zipfile
from pathlib import Path

import pytest
from _fresh import SOURCE

import mindtorch_v2
from mindtorch_v2._torch_proxy import wheel
from mindtorch_v2._torch_proxy.doctor import _excludes
from mindtorch_v2._torch_proxy.names import written

NAME = f"torch-{mindtorch_v2.__version__}-py3-none-any.whl"


class Environment:
    """An environment of Python with this library and what it needs; torch is installed into it, or not."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.python = str(
            next(path for path in (folder / "bin/python", folder / "Scripts/python.exe") if path.exists())
        )
        self.packages = Path(self.run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        others = sysconfig.get_path("purelib")
        (self.packages / "others.pth").write_text(f"{SOURCE}\n{others}\n", encoding="utf-8")

    def run(self, *arguments: str, status: int = 0, **options: object) -> str:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [self.python, *arguments], capture_output=True, text=True, timeout=200, env=environment, **options
        )
        assert done.returncode == status, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def code(self, code: str) -> str:
        return self.run("-c", textwrap.dedent(code))

    def pip(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "pip", "-q", "--python", self.python, "--disable-pip-version-check", *arguments],
            check=True,
            timeout=200,
        )

    def pretend(self, name: str, version: str, *requirements: str) -> None:
        """Let a distribution be there."""
        folder = self.packages / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        asked = "".join(f"Requires-Dist: {requirement}\n" for requirement in requirements)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{asked}")
        (folder / "RECORD").write_text("")
        (folder / "INSTALLER").write_text("pip\n")


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("bare") / "venv")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    made = Environment(folder / "venv")
    made.run("-m", "mindtorch_v2", "torch-wheel", str(folder / "wheels"))
    made.pip("install", "--no-deps", "--no-index", str(folder / "wheels" / NAME))
    return made


def test_wheel_is_small_and_the_same_every_time(tmp_path):
    first, second = wheel.write_wheel(str(tmp_path / "a")), wheel.write_wheel(str(tmp_path / "b"))
    assert Path(first).name == NAME and Path(first).read_bytes() == Path(second).read_bytes()
    assert Path(first).stat().st_size < 4000
    with zipfile.ZipFile(first) as archive:
        commands = archive.read(f"torch-{mindtorch_v2.__version__}.dist-info/entry_points.txt").decode()
        assert "torchrun = torch.distributed.run:main" in commands
        metadata = archive.read(f"torch-{mindtorch_v2.__version__}.dist-info/METADATA").decode()
        assert "Name: torch\nVersion: 2.13.0+mindtorch\n" in metadata and "Requires-Dist: mindtorch_v2\n" in metadata
        assert "Requires-Dist: jinja2\n" in metadata and "\n\n" not in metadata.partition("Description-Content-Type")[0]
    assert Path(wheel.write_constraints(str(tmp_path))).read_text() == "torch==2.13.0+mindtorch\ntorchvision==0.28.0\n"


def test_import_torch_is_this_library(environment):
    environment.code("""
        import torch
        import mindtorch_v2, importlib.metadata, importlib.util, sys
        assert torch is mindtorch_v2 and torch.__name__ == "torch" and torch.__version__ == "2.13.0+mindtorch"
        assert sys.modules["torch"] is mindtorch_v2 and importlib.metadata.version("torch") == "2.13.0+mindtorch"
        assert torch.nn.Linear.__module__ == "torch.nn.modules.linear"
        import functorch
        from functorch import vmap
        assert vmap is torch.func.vmap and torch.cuda.is_available() is False
        assert importlib.util.find_spec("torch") is not None
    """)
    environment.code("import torch.nn.functional as F, torch; assert F.relu(torch.tensor([-1.0])).item() == 0")
    environment.code(
        "from torch import nn; from torch.utils.data import DataLoader; assert nn.Linear(2, 3).weight.shape == (3, 2)"
    )
    environment.code("import functorch, torch; assert functorch.grad is torch.func.grad")
    environment.code("import mindtorch_v2, torch; assert torch is mindtorch_v2")
    environment.code(
        "from mindtorch_v2._torch_proxy import install; install(); import torch; assert torch.__name__ == 'torch'"
    )
    assert environment.run("-m", "mindtorch_v2", "-c", "import torch; print(torch.__name__)") == "torch\n"


def test_other_processes_see_torch(environment, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
            import multiprocessing, subprocess, sys, torch
            def double(x):
                return torch.__name__, (torch.tensor(x) * 2).tolist()
            if __name__ == "__main__":
                context = multiprocessing.get_context("spawn")
                with context.Pool(2) as pool:
                    print(pool.map(double, [[1], [2]]))
                print(subprocess.run([sys.executable, "-c", "import torch; print(torch.ones(1))"], capture_output=True, text=True).stdout)
        """)
    )
    assert environment.run(str(program)) == "[('torch', [2]), ('torch', [4])]\ntensor([1.])\n\n"
    assert environment.run("-m", "mindtorch_v2", str(program)) == "[('torch', [2]), ('torch', [4])]\ntensor([1.])\n\n"


TESTS = """
import os, pytest, torch
@pytest.mark.parametrize("n", range(4))
def test_worker(n):
    assert os.environ["PYTEST_XDIST_WORKER"] and torch.__name__ == "torch" and torch.ones(n).sum() == n
"""


def test_workers_of_pytest_see_torch(environment, bare, tmp_path):
    pytest.importorskip("xdist")
    (tmp_path / "test_sample.py").write_text(TESTS)
    arguments = ("-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_sample.py")
    assert "4 passed" in environment.run(*arguments, cwd=tmp_path)
    assert "4 passed" in bare.run("-m", "mindtorch_v2", *arguments, cwd=tmp_path)


def test_torch_without_the_library_says_so():
    code = f"import sys; sys.path.insert(0, {wheel.BESIDE!r}); import torch"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment)
    assert (
        done.returncode == 1
        and "is served by mindtorch_v2, which this Python does not have. Install mindtorch_v2" in done.stderr
    )


def test_doctor_without_a_torch(bare):
    text = bare.run("-m", "mindtorch_v2", "doctor", status=1)
    assert "distribution torch: none" in text and "import torch: finds nothing" in text
    assert "so `pip install` of a package that asks for torch brings PyTorch" in text


def test_doctor_where_all_is_well(environment):
    text = environment.run("-m", "mindtorch_v2", "doctor")
    assert f"distribution torch: 2.13.0+mindtorch in {environment.packages}\n" in text
    assert f"import torch: mindtorch_v2, by {environment.packages}" in text and text.endswith("to do\n-----\nnothing\n")


def test_doctor_names_what_a_package_writes_of_torch(environment):
    package = environment.packages / "sample_user"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import torch\nfrom torch.package import PackageExporter\nimport torch.nn as n\n"
        "def f(x):\n    return torch.relu(x), n.NoSuchLayer, torch.no_such, torch.float32, torch.Tensor.mine\n"
    )
    environment.pretend("sample-user", "1.0", "torch<2.13; python_version>'3'", "torch; extra == 'more'")
    (environment.packages / "sample_user-1.0.dist-info" / "RECORD").write_text("sample_user/__init__.py,,\n")
    text = environment.run("-m", "mindtorch_v2", "doctor", "--names", "sample-user", "absent", status=1)
    assert "sample-user 1.0: torch <2.13, which torch 2.13.0+mindtorch is not" in text
    assert "can be imported, and say so when they are called: 1 torch.package.PackageExporter" in text
    assert "not there: 2 torch.nn.NoSuchLayer torch.no_such" in text and "absent takes from torch" in text
    assert "real: 4" in text  # torch, torch.nn, relu and float32; what stands behind Tensor is its own


def test_pytorch_in_its_place_is_noticed_and_the_way_back_leaves_nothing(tmp_path):
    made = Environment(tmp_path / "venv")
    before = sorted(path.name for path in made.packages.iterdir())
    made.pretend("torch", "2.14.0")
    (made.packages / "torch").mkdir()
    (made.packages / "torch" / "__init__.py").write_text("__version__ = '2.14.0'\n")
    record = "torch/__init__.py,,\ntorch-2.14.0.dist-info/RECORD,,\ntorch-2.14.0.dist-info/METADATA,,\ntorch-2.14.0.dist-info/INSTALLER,,\n"
    (made.packages / "torch-2.14.0.dist-info" / "RECORD").write_text(record)
    text = made.run("-m", "mindtorch_v2", "doctor", status=1)
    assert "2.14.0 in" in text and "which is PyTorch" in text and "import torch: not mindtorch_v2" in text
    assert "PyTorch 2.14.0 is installed: `import torch` is PyTorch" in text
    done = subprocess.run(
        [made.python, "-m", "mindtorch_v2", "torch-wheel", "."], capture_output=True, text=True, cwd=tmp_path
    )
    assert (
        done.returncode == 0
        and "warning: PyTorch 2.14.0 is installed" in done.stderr
        and "brings it back" in done.stderr
    )
    made.pip("install", "--no-deps", "--no-index", str(tmp_path / NAME))
    assert made.code("import torch; print(torch.__version__)") == "2.13.0+mindtorch\n"
    made.pip("uninstall", "-y", "torch")
    assert sorted(path.name for path in made.packages.iterdir()) == before
    made.code("""
        try:
            import torch
        except ModuleNotFoundError:
            pass
        else:
            raise SystemExit("torch is still there")
    """)


@pytest.mark.parametrize(
    ("requirement", "excluded"),
    [
        ("", False), (">=2.0.0", False), ("<4.0,>=2.1.0", False), ("==2.13.0", False), ("==2.13.*", False), ("~=2.5", False),
        ("==2.14.0", True), ("==2.12.*", True), (">=2.14", True), ("<2.13", True), (">2.13.0", True), ("<=2.12.1,>=2", True),
        (">=2.11.0a0", False), ("===weird", False),
    ],
)  # fmt: skip
def test_requirements(requirement, excluded):
    assert _excludes(requirement) is excluded


def test_names_that_a_module_writes():
    source = """
        import torch, os, torch.nn.functional as F
        from torch import nn as layers, float32
        from torchvision import ops
        from . import torch_like
        torch.relu(os.path), layers.Linear.forward, F.gelu.x, torch_like.y
        torch.backends.cudnn.benchmark = True
    """
    assert json.dumps(sorted(written(textwrap.dedent(source)))) == json.dumps(
        ["torch", "torch.backends.cudnn", "torch.float32", "torch.nn", "torch.nn.Linear.forward", "torch.nn.functional", "torch.nn.functional.gelu.x", "torch.relu"]
    )  # fmt: skip
