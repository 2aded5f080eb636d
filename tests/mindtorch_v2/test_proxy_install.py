"""`install()` serves torch, owns nothing else, and can be undone."""

from __future__ import annotations

from _fresh import PROXY, python, run


def test_torch_is_mindtorch():
    python("""
        import mindtorch_v2, sys
        assert torch is mindtorch_v2 and sys.modules["torch"] is mindtorch_v2
        import torch.nn.functional as F
        from torch.utils import _pytree
        from torch.optim import lr_scheduler
        assert torch.nn is mindtorch_v2.nn and F is mindtorch_v2.nn.functional
        assert torch.Tensor is mindtorch_v2.Tensor
        assert _pytree is mindtorch_v2.utils._pytree
        assert lr_scheduler is mindtorch_v2.optim.lr_scheduler
    """)


def test_install_twice_changes_nothing():
    python("""
        import sys
        before = list(sys.meta_path)
        install()
        assert sys.meta_path == before
    """)


def test_modules_keep_their_own_specs():
    python("""
        import importlib, torch.nn, torch.utils.hooks
        assert torch.nn.__spec__.name == "mindtorch_v2.nn"
        assert torch.utils.hooks.__spec__.name == "mindtorch_v2.utils.hooks"
        assert importlib.reload(torch.utils.hooks) is torch.utils.hooks
    """)


def test_specs_and_metadata_answer():
    python("""
        import importlib.metadata as metadata, importlib.util as util
        assert metadata.version("torch") == torch.__version__
        assert metadata.distribution("torch").metadata["Name"] == "torch"
        assert metadata.packages_distributions()["torch"] == ["torch"]
        for name in ("torch", "torch.nn", "torch.distributed.fsdp", "torch.utils.data.distributed"):
            assert util.find_spec(name) is not None, name
        assert util.find_spec("torch.no_such_module") is None
    """)


def test_other_packages_are_not_touched():
    python("""
        import importlib.metadata as metadata, importlib.util as util
        for name in ("torch_npu", "torch_xla", "torchvision", "torchaudio", "torchao", "torchx"):
            assert util.find_spec(name) is None, name
        try:
            metadata.version("torch_npu")
        except metadata.PackageNotFoundError:
            pass
        else:
            raise SystemExit("metadata of another package was invented")
    """)


def test_unknown_names_fail_loudly():
    python("""
        import importlib
        def raises(kind, call, text):
            try:
                call()
            except kind as error:
                assert text in str(error), error
            else:
                raise SystemExit(f"{text}: nothing was raised")
        raises(AttributeError, lambda: torch.no_such_function, "no_such_function")
        raises(AttributeError, lambda: torch.nn.NoSuchLayer, "NoSuchLayer")
        raises(AttributeError, lambda: torch.distributed.no_such_function, "no_such_function")
        raises(ModuleNotFoundError, lambda: importlib.import_module("torch.no_such_module"), "torch.no_such_module")
        # modules of mindtorch_v2 that torch does not have are not loaded a second time under a name of torch
        raises(ModuleNotFoundError, lambda: importlib.import_module("torch._state"), "torch._state")
    """)


def test_uninstall_restores():
    python("""
        import sys, mindtorch_v2
        import torch.jit, torch.nn.attention.flex_attention
        from mindtorch_v2._torch_proxy import is_installed, uninstall
        finders = len(sys.meta_path)
        assert is_installed()
        uninstall()
        uninstall()
        assert not is_installed() and len(sys.meta_path) == finders - 1
        assert not [name for name in sys.modules if name == "torch" or name.startswith("torch.")]
        assert not hasattr(mindtorch_v2, "onnx")
        try:
            import torch
        except ModuleNotFoundError:
            pass
        else:
            raise SystemExit("torch is still there")
        install()
        import torch
        assert torch is mindtorch_v2 and torch.jit.is_tracing() is False
    """)


def test_refuses_when_another_torch_is_there(tmp_path):
    (tmp_path / "torch.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport torch\n"
    done = run(["-c", code + PROXY])
    assert done.returncode == 1
    assert "RuntimeError: cannot serve torch from mindtorch_v2: another torch" in done.stderr
    assert str(tmp_path) in done.stderr


def test_version_is_accepted_by_version_checks():
    python("""
        from packaging import version
        assert version.parse(torch.__version__) >= version.parse("2.6")
        assert version.parse(version.parse(torch.__version__).base_version) >= version.parse("2.1")
        assert torch.__version__ >= (2, 6) and torch.__version__ > "2.9" and torch.__version__ < "2.14"
        assert torch.__version__ == str(torch.__version__) and isinstance(torch.__version__, str)
        assert torch.version.cuda is None and torch.version.hip is None and torch.version.debug is False
        assert torch.version.__version__ == torch.__version__
    """)
