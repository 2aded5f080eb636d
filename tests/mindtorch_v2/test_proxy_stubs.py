"""Every name of `schema/torch_proxy.yaml` is there and behaves as the file says."""

from __future__ import annotations

from pathlib import Path

import pytest
from _fresh import python

ROOT = Path(__file__).resolve().parents[2]
yaml = pytest.importorskip("yaml")


def _schema() -> dict:
    return yaml.safe_load((ROOT / "schema" / "torch_proxy.yaml").read_text(encoding="utf-8"))


def test_every_stub_behaves_as_the_schema_says():
    python(f"""
        import enum, importlib, warnings
        import yaml
        warnings.simplefilter("ignore")
        schema = yaml.safe_load(open({str(ROOT / "schema" / "torch_proxy.yaml")!r}, encoding="utf-8"))
        problems = []
        def check(condition, text):
            if not condition:
                problems.append(text)
        for entry in schema["stubs"]:
            name = "torch" + ("." + entry["module"] if entry["module"] else "")
            if entry.get("beside"):
                name = entry["module"]
            try:
                module = importlib.import_module(name)
            except Exception as error:
                problems.append(f"{{name}}: {{error!r}}")
                continue
            error = getattr(__builtins__, entry.get("error", "NotImplementedError"))
            for n, value in entry.get("constants", {{}}).items():
                check(getattr(module, n) == value, f"{{name}}.{{n}}")
            for n, value in entry.get("returns", {{}}).items():
                check(getattr(module, n)(1, x=2) == value, f"{{name}}.{{n}}")
            for n in entry.get("identity", ()):
                check(getattr(module, n)(check) is check and getattr(module, n)(option=1)(check) is check, f"{{name}}.{{n}}")
            for n in entry.get("contexts", ()):
                with getattr(module, n)():
                    pass
                check(getattr(module, n)(1)(lambda: 3)() == 3, f"{{name}}.{{n}}")
            for n, members in entry.get("enums", {{}}).items():
                check([m.name for m in getattr(module, n)] == members, f"{{name}}.{{n}}")
            for n in entry.get("exceptions", ()):
                check(issubclass(getattr(module, n), Exception), f"{{name}}.{{n}}")
            for n in entry.get("classes", ()):
                cls = getattr(module, n)
                check(isinstance(cls, type) and not isinstance(1, cls), f"{{name}}.{{n}}")
                type("Sub", (cls,), {{}})
            for n in (*entry.get("classes", ()), *entry.get("functions", ())):
                try:
                    getattr(module, n)(1, x=2)
                except error as raised:
                    check(entry["because"] in str(raised), f"{{name}}.{{n}}: {{raised}}")
                else:
                    problems.append(f"{{name}}.{{n}}: nothing was raised")
            for source, names in entry.get("from", {{}}).items():
                for n in names:
                    check(hasattr(module, n), f"{{name}}.{{n}}")
        if problems:
            raise SystemExit("\\n".join(problems))
    """)


def test_stubs_answer_as_attributes():
    python("""
        assert torch.cuda.is_available() is False and torch.cuda.device_count() == 0
        assert torch.distributed.is_available() and torch.distributed.is_initialized() is False
        assert torch.distributed.fsdp.FullyShardedDataParallel is torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel
        assert torch.backends.cudnn.enabled is False and torch.backends.mps.is_available() is False
        assert torch.nn.parallel.DistributedDataParallel.__name__ == "DistributedDataParallel"
        assert not isinstance(torch.ones(1), torch.fx.Proxy)
        assert torch.jit.is_scripting() is False and torch.jit.is_tracing() is False
        assert torch.compiler.is_compiling() is False and torch._dynamo.is_compiling() is False
        assert torch.xpu.is_available() is False and torch.accelerator.current_accelerator() is None
    """)


def test_compiled_modules_stand_for_the_module():
    python("""
        import copy, pickle
        from torch._dynamo.eval_frame import OptimizedModule
        class Doubling(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.factor = torch.nn.Linear(2, 2), 2
            def forward(self, x, more=0):
                return self.inner(x) * self.factor + more
            def other(self):
                return self.factor
        module = Doubling()
        compiled = torch.compile(module)
        assert type(compiled) is OptimizedModule is torch._dynamo.OptimizedModule and not isinstance(compiled, Doubling)
        assert compiled._orig_mod is module and compiled.inner is module.inner and compiled.other() == 2
        x = torch.randn(3, 2)
        assert torch.equal(compiled(x, more=1), module(x, more=1)) and torch.equal(compiled.forward(x), module(x))
        assert list(compiled.state_dict()) == ["_orig_mod.inner.weight", "_orig_mod.inner.bias"]
        assert [n for n, _ in compiled.named_modules()] == ["", "_orig_mod", "_orig_mod.inner"]
        assert repr(compiled).startswith("OptimizedModule(\\n  (_orig_mod): Doubling(")
        compiled.factor = 5
        compiled.eval()
        assert module.factor == 5 and not module.training and not compiled.training and compiled.train() is compiled and module.inner.training
        del compiled.factor
        assert not hasattr(module, "factor") and "other" in dir(compiled)
        compiled.further = torch.nn.Parameter(torch.ones(1))
        assert module.further is compiled.further and list(compiled.state_dict())[0] == "_orig_mod.further"
        compiled.load_state_dict(compiled.state_dict())
        again = copy.deepcopy(compiled)
        assert type(again) is OptimizedModule and again._orig_mod is not module
        assert isinstance(pickle.loads(pickle.dumps(torch.compile(torch.nn.ReLU())))._orig_mod, torch.nn.ReLU)
        calls = []
        compiled.register_forward_hook(lambda *a: calls.append(a))
        assert torch.compile(module, disable=True) is module and len(torch.compile(torch.nn.Sequential(module))) == 1
        assert type(torch.compile(mode="default")(module)) is OptimizedModule and torch.compile(dynamic=True)(len)([0]) == 1
        assert module.compile() is None
        (compiled(x[:, :2]).sum() if hasattr(module, "factor") else module.inner(x).sum()).backward()
        assert module.inner.weight.grad is not None
        try:
            compiled.absent
        except AttributeError as error:
            assert str(error) == "'Doubling' object has no attribute 'absent'"
    """)


def test_streams_and_events_of_the_cpu():
    python("""
        stream, event = torch.Stream(), torch.Event()
        assert repr(stream) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0" and isinstance(stream, torch.Stream)
        assert repr(event) == "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"
        assert (stream.device, stream.stream_id, stream.device_index, stream.device_type) == (torch.device("cpu"), 0, -1, 0)
        assert repr(torch.Stream(stream_id=1, device_index=0, device_type=0)) == "torch.Stream device_type=cpu, device_index=0, stream_id=1"
        assert stream == torch.Stream("cpu", priority=1) and hash(stream) == hash(torch.Stream(device="cpu")) and stream != torch.Stream("meta")
        assert stream.query() and stream.synchronize() is None and stream.wait_event(event) is None and not stream.is_capturing()
        assert event.query() and event.wait() is None and event.synchronize() is None and repr(torch.Event(enable_timing=True)).count("flag=1")
        with stream as entered:
            assert entered is stream
        for call, words in (
            (lambda: stream.record_event(), "cpu backend doesn't support events."), (lambda: stream.wait_stream(stream), "cpu backend doesn't support events."),
            (lambda: event.record(), "cpu backend doesn't support events."), (lambda: torch.Stream("cuda"), "PyTorch is not linked with support for cuda devices"),
            (lambda: torch.Event("cuda"), "PyTorch is not linked with support for cuda devices"), (lambda: torch.Stream(3), "Cannot access accelerator device"),
            (lambda: stream.native_handle(), "Backend doesn't support getting stream native handle."),
        ):
            try:
                call()
            except RuntimeError as error:
                assert words in str(error), error
            else:
                raise SystemExit(words)
        try:
            event.elapsed_time(torch.Event())
        except ValueError as error:
            assert str(error) == "Both events must be created with argument 'enable_timing=True'."
    """)


def test_functional_stubs():
    python("""
        f = lambda x: x + 1
        assert torch.jit.script(f) is f and torch.compile(f, disable=True) is f and torch.compile(mode="reduce-overhead")(f).__wrapped__ is f
        assert torch.compiler.disable(f) is f and torch.compiler.disable(recursive=False)(f) is f
        assert torch.compile(f)(torch.ones(1)).item() == 2
        with torch.backends.cudnn.flags(enabled=False, deterministic=True):
            assert torch.backends.cudnn.deterministic is True
        assert torch.backends.cudnn.deterministic is False
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            with torch.profiler.record_function("name"):
                profiler.step()
        assert [e.name for e in profiler.events()] == ["name"] and profiler.step_num == 1
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.are_deterministic_algorithms_enabled() and torch.is_deterministic_algorithms_warn_only_enabled()
        from torch.fx.experimental.symbolic_shapes import guard_or_false, free_symbols
        assert guard_or_false(3 > 2) is True and list(free_symbols(3)) == []
        torch._check(True)
        for call, kind in ((lambda: torch._check(False, lambda: "why"), RuntimeError), (lambda: torch._check_index(False), IndexError)):
            try:
                call()
            except kind as error:
                assert str(error)
            else:
                raise SystemExit(f"{kind} was not raised")
    """)


def test_import_only_classes_survive_pickling_and_subclassing():
    python("""
        import pickle
        from torch.distributed import ReduceOp
        assert pickle.loads(pickle.dumps(ReduceOp.SUM)) is ReduceOp.SUM
        from torch.fx.experimental.proxy_tensor import PythonKeyTracer
        assert pickle.loads(pickle.dumps(PythonKeyTracer)) is PythonKeyTracer
        class Mine(PythonKeyTracer):
            def __init__(self):
                pass
        try:
            Mine()
        except NotImplementedError as error:
            assert "Mine can be imported but not called: there is no symbolic tracing" in str(error), error
        else:
            raise SystemExit("a subclass of an import-only class was made")
    """)


def test_exported_programs_have_pytorchs_names():
    python("""
        import torch._dynamo.exc, torch.compiler, torch.fx.experimental.symbolic_shapes as shapes
        from torch.export import Dim, ExportedProgram, export
        from torch.export.graph_signature import InputKind

        class Asking(torch.nn.Module):
            def forward(self, x):
                return x + 1 if torch.compiler.is_exporting() else x

        program = export(Asking(), (torch.ones(2),))
        assert program.module()(torch.zeros(2)).tolist() == [1, 1]
        assert not torch.compiler.is_exporting()
        assert (ExportedProgram.__module__, Dim.__module__) == ("torch.export.exported_program", "torch.export.dynamic_shapes")
        assert export.__module__ == "torch.export"
        assert torch._dynamo.exc.UserError.__mro__[1:3] == (torch._dynamo.exc.TorchDynamoException, RuntimeError)
        assert shapes.GuardOnDataDependentSymNode.__module__ == "torch.fx.experimental.symbolic_shapes"
        assert program.graph_signature.input_specs[0].kind is InputKind.USER_INPUT
        try:
            export(torch.nn.Linear(2, 2), [torch.ones(2)])
        except torch._dynamo.exc.UserError as error:
            assert "Expecting `args` to be a tuple" in str(error)
        else:
            raise SystemExit("a list of arguments was taken")
    """)


def test_generated_stubs_are_current():
    import sys

    pytest.importorskip("jinja2")
    sys.path.insert(0, str(ROOT))
    from codegen.proxy import render_proxy

    rendered = render_proxy(ROOT / "schema")
    on_disk = {f"proxy/{p.name}": p.read_text(encoding="utf-8") for p in (ROOT / "generated" / "proxy").glob("*.py")}
    assert rendered.keys() == on_disk.keys()
    assert [name for name, text in rendered.items() if on_disk[name] != text] == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{module: jit, tier: 2, colour: red}", ":5: jit: unknown key colour"),
        ("{module: jit, tier: 4}", ":5: jit: an entry needs `module` and a `tier` of 2 or 3"),
        ("{module: jit, tier: 3, classes: [A]}", ":5: jit: import-only names need `because`"),
        ("{module: jit, tier: 2, returns: {f: 1}, identity: [f]}", ":5: jit: f is listed twice"),
        ("{module: jit.x, tier: 2}", ":5: jit.x: there is no module torch.jit"),
        ("{module: jit, tier: 2, from: {'~onnx': [export]}}", ":5: jit: torch.onnx has no export"),
        ("{module: jit, tier: 2, identity: ['a b']}", ":5: jit: 'a b' is not a name"),
    ],
)
def test_mistakes_in_the_schema_are_reported(tmp_path, entry, message):
    import sys

    pytest.importorskip("jinja2")
    sys.path.insert(0, str(ROOT))
    from codegen.proxy import ProxySchemaError, load

    (tmp_path / "torch_proxy.yaml").write_text(f"real:\n  trees: [nn]\n  aliases: {{}}\nstubs:\n- {entry}\n")
    with pytest.raises(ProxySchemaError) as caught:
        load(tmp_path)
    assert f"schema/torch_proxy.yaml{message}" in str(caught.value)
