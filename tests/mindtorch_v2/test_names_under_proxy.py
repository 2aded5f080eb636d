"""Under the proxy modules, classes, functions and pickles bear torch's names; places.json and plain_pickle.bin are PyTorch's, see tests/record_names.py."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from _fresh import SOURCE, python

DATA = Path(__file__).with_name("data")
PACKAGE = SOURCE / "mindtorch_v2"
ELSEWHERE = {
    "torch._C": "the extension's functions are plain ones here",
    "torch.jit": "a future of this library",
    "torch.fx.subgraph_rewriter": "one module has all of it here",
    "torch.signal.windows.windows": "one module has all of it here",
    "torch.utils.hooks.BackwardHook": "nn's own",
}


def test_classes_and_functions_say_where_pytorch_has_them():
    out = python(f"""
        import importlib, json, pickle, types
        from mindtorch_v2._generated.proxy import index
        places = json.load(open({str(DATA / "places.json")!r}))
        checked = 0
        for module, by_place in places.items():
            module = importlib.import_module(module)
            for place, names in by_place.items():
                for name in names.split():
                    value = getattr(module, name, None)
                    public = not name.startswith("_") or isinstance(value, type)
                    if not public or not isinstance(value, type | types.FunctionType) or "_generated" in value.__module__ or name in index.ROOT_NAMES:
                        continue
                    if {{place, f"{{place}}.{{name}}"}} & {{*{list(ELSEWHERE)!r}}}:
                        continue
                    if value is torch.OutOfMemoryError:  # NPUs' error by another name
                        continue
                    checked += 1
                    if value.__module__ != place:
                        print(module.__name__, name, value.__module__, place)
                    elif value.__qualname__ == name:
                        try:
                            pickle.dumps(value)
                        except pickle.PicklingError as error:
                            print(module.__name__, name, error)
        print(checked)
    """)
    *problems, checked = out.splitlines()
    assert problems == [] and int(checked) > 750


def test_the_package_itself():
    python("""
        import inspect, sys
        import torch.nn.functional as F
        assert torch.__name__ == "torch" and torch.nn.__name__ == "torch.nn" and F.__name__ == "torch.nn.functional"
        assert sys.modules["torch.nn.functional"] is sys.modules["mindtorch_v2.nn.functional"] is F
        assert torch.nn.Linear.__module__ == "torch.nn.modules.linear" and torch.nn.Linear.forward.__module__ == "torch.nn.modules.linear"
        assert repr(torch.nn.Linear) == "<class 'torch.nn.modules.linear.Linear'>" and inspect.getmodule(torch.optim.SGD) is torch.optim.sgd
        assert inspect.getsource(torch.nn.Identity).startswith("class Identity")
        try:
            torch.no_such_name
        except AttributeError as error:
            assert str(error) == "module 'torch' has no attribute 'no_such_name'"
    """)


def test_what_was_imported_before_gets_its_names_and_loses_them():
    python(
        """
        import mindtorch_v2 as torch
        from mindtorch_v2 import nn, optim
        from mindtorch_v2._torch_proxy import install, uninstall
        from mindtorch_v2.autograd import Function
        relu, lr = nn.functional.relu, optim.lr_scheduler.StepLR
        own = [torch.__name__, nn.Linear.__module__, nn.Linear.forward.__module__, relu.__module__, lr.__module__, Function.__module__]
        install()
        assert torch.__name__ == "torch" and nn.Linear.__module__ == nn.Linear.forward.__module__ == "torch.nn.modules.linear"
        assert relu.__module__ == "torch.nn.functional" and lr.__module__ == "torch.optim.lr_scheduler"
        assert Function.__module__ == "torch.autograd.function" and torch.distributions.Normal.__module__ == "torch.distributions.normal"
        uninstall()
        now = [torch.__name__, nn.Linear.__module__, nn.Linear.forward.__module__, relu.__module__, lr.__module__, Function.__module__]
        assert now == own and all(name.startswith("mindtorch_v2") for name in own)
        assert torch.distributions.Normal.__module__ == "mindtorch_v2.distributions.normal"
        assert torch.distributions.__name__ == "mindtorch_v2.distributions" and torch.fft.__name__ == "mindtorch_v2.fft"
        """,
        prelude="",
    )


def test_plain_pickles_bear_pytorchs_names():
    python("""
        import pickle, pickletools
        nn = torch.nn
        def named(value):
            return {a for op, a, _ in pickletools.genops(pickle.dumps(value, 2)) if op.name == "GLOBAL"} - {"__builtin__ set", "_codecs encode"}
        tensor = {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch.storage _load_from_bytes"}
        parameter = tensor | {"torch._utils _rebuild_parameter"}
        assert named(torch.ones(2)) == named(torch.ones(2, dtype=torch.bfloat16)) == tensor
        assert named(nn.Linear(2, 2)) == parameter | {"torch.nn.modules.linear Linear"}
        assert named(torch.float32) == {"torch float32"} and named(torch.Size([1])) == {"torch Size"}
        assert named(torch.device("cpu")) == {"torch device"} and named(torch.strided) == {"torch strided"}
        assert named(torch.no_grad) == {"torch.autograd.grad_mode no_grad"} and named(nn.functional.relu) == {"torch.nn.functional relu"}
        assert named(torch.Generator) == {"torch._C Generator"} and named(torch.Tensor) == {"torch Tensor"}
        assert named(torch.distributions.Normal(0.0, 1.0)) == tensor | {"torch Size", "torch.distributions.normal Normal"}
        for value in (torch.int8, torch.device("npu", 1), torch.Size([2, 3]), torch.channels_last, torch.strided):
            assert pickle.loads(pickle.dumps(value)) == value
        lstm = nn.LSTM(2, 3)
        assert lstm.__getstate__()["_flat_weights_names"] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
        assert lstm.__getstate__()["_flat_weights"][0] is lstm.weight_ih_l0  # PyTorch's modules need them
        back = pickle.loads(pickle.dumps(lstm))
        assert "_flat_weights" not in vars(back) and back._flat_weights[0] is back.weight_ih_l0
        assert back(torch.ones(1, 2))[0].shape == (1, 3)
        storage = pickle.loads(pickle.dumps(torch.arange(3).untyped_storage()))
        assert bytes(storage)[8] == 1 and pickle.loads(pickle.dumps(torch.arange(3).storage())).tolist() == [0, 1, 2]
        meta = pickle.loads(pickle.dumps(torch.ones(2, 3, device="meta")))
        assert meta.device.type == "meta" and meta.shape == (2, 3)
    """)


def test_tensors_with_attributes_are_pickled():
    python("""
        import pickle
        t = torch.ones(2)
        t.mark = 3
        assert b"torch._tensor\\n_rebuild_from_type_v2" in pickle.dumps(t, 2)
        back = pickle.loads(pickle.dumps(t))
        assert back.mark == 3 and type(back) is torch.Tensor and back.tolist() == [1, 1]
        norm = torch.nn.LazyBatchNorm1d()
        norm(torch.ones(4, 3))
        assert pickle.loads(pickle.dumps(norm)).running_var.shape == (3,)
    """)


def test_operators_are_pickled_by_the_names_of_pytorchs_builtin_functions():
    python("""
        import pickle, pickletools
        F = torch.nn.functional
        def named(value):
            text = pickle.dumps(value, 2)
            assert pickle.loads(text) is value, value
            return [a for op, a, _ in pickletools.genops(text) if op.name == "GLOBAL"]
        assert named(torch.relu) == ["torch relu"] and named(torch.cat) == ["torch cat"] and named(torch._foreach_add) == ["torch _foreach_add"]
        assert named(F.gelu) == ["torch._C._nn gelu"] and named(torch.linalg.det) == ["torch._C._linalg linalg_det"]
        assert named(torch.fft.fft) == ["torch._C._fft fft_fft"] and named(torch.special.psi) == ["torch._C._special special_psi"]
        assert named(torch.tensor) == ["torch tensor"] and named(torch.einsum) == ["torch.functional einsum"]
        assert torch._C._VariableFunctions.relu is torch._C._VariableFunctionsClass.relu is torch.relu
        function = b"c__builtin__\\ngetattr\\nctorch._C\\n_VariableFunctionsClass\\nU\\x04relu\\x86R."
        assert pickle.loads(function) is torch.relu
        assert hasattr(torch._C._nn, "gelu") and not hasattr(torch._C._nn, "no_such_function") and not hasattr(torch._C._nn, "cat")
    """)


def test_pytorchs_plain_pickles_are_read():
    python(f"""
        import pickle
        model = pickle.load(open({str(DATA / "plain_pickle.bin")!r}, "rb"))
        torch.manual_seed(0)
        encoder = torch.nn.TransformerEncoderLayer(4, 2, 8, activation=torch.nn.functional.gelu, batch_first=True)
        same = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.LSTM(4, 2), encoder)
        for name, parameter in same.named_parameters():
            assert torch.equal(parameter, model.get_parameter(name)), name
        assert [type(layer) for layer in model] == [type(layer) for layer in same] and model.size == (2,)
        assert model.where == torch.device("cpu") and model.kind is torch.float64 and model.ones.dtype is torch.bfloat16
        assert not model[0].bias.requires_grad and model[0].weight.requires_grad and model[3].self_attn.batch_first
        x = torch.randn(5, 3)
        assert torch.equal(model.eval()[:2](x), same.eval()[:2](x)) and torch.equal(model[2](model[0](x))[0], same[2](same[0](x))[0])
        sequence = torch.randn(1, 5, 4)
        assert torch.equal(model[3](sequence), same[3](sequence))
    """)


def test_private_modules_are_imported_by_their_own_names():
    """`from . import _late` asks for `torch._late` under the proxy, which is not served, unless the module is there already."""
    code = "import mindtorch_v2, sys; print(*(n for n in sys.modules if n.startswith('mindtorch_v2.')))"
    at_once = {name.removeprefix("mindtorch_v2.") for name in python(code, prelude="").split()}
    late = []
    for file in PACKAGE.rglob("*.py"):
        package = ["mindtorch_v2", *file.relative_to(PACKAGE).parts[:-1]]
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom):
                continue
            above = package[: len(package) - node.level + 1] if node.level else []
            if ".".join([*above, *filter(None, [node.module])]) == "mindtorch_v2":
                private = (alias.name for alias in node.names if alias.name.startswith("_"))
                late += [
                    f"{file}:{node.lineno}: {name}"
                    for name in private
                    if importlib.util.find_spec(f"mindtorch_v2.{name}") is not None and name not in at_once
                ]
    assert late == []


def test_functorch_stands_beside_torch():
    python("""
        import warnings
        import functorch
        from functorch import FunctionalModule, FunctionalModuleWithBuffers
        warnings.simplefilter("ignore")
        model = torch.nn.Linear(2, 2)
        model.tied = model.weight
        function, parameters = functorch.make_functional(model)
        assert isinstance(function, FunctionalModule) and FunctionalModule.__module__ == "torch._functorch.make_functional"
        assert function.param_names == ("weight", "bias") and function.names_map == {"weight": ["weight", "tied"], "bias": ["bias"]}
        assert all(p.is_meta for p in function.parameters()) and torch.equal(parameters[0], model.weight) and parameters[0] is not model.weight
        x = torch.randn(3, 2)
        assert torch.equal(function(parameters, x), model(x)) and all(p.is_meta for p in function.parameters())
        gradients = functorch.grad(lambda ps: function(ps, x).sum())(parameters)
        assert torch.allclose(gradients[0], x.sum(0).expand(2, 2)) and gradients[1].tolist() == [3, 3]
        assert not functorch.make_functional(model, disable_autograd_tracking=True)[1][0].requires_grad and model.weight.requires_grad
        models = [torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).eval() for _ in range(3)]
        try:
            functorch.make_functional(models[0])
        except RuntimeError as error:
            assert "`model` has buffers" in str(error)
        function, parameters, buffers = functorch.combine_state_for_ensemble(models)
        assert isinstance(function, FunctionalModuleWithBuffers) and function.buffer_names[0] == "1.running_mean"
        together = functorch.vmap(function, in_dims=(0, 0, None))(parameters, buffers, x)
        assert torch.allclose(together, torch.stack([m(x) for m in models]), atol=1e-6) and not parameters[0].requires_grad
        try:
            import functorch.dim
        except ImportError:
            pass
        else:
            raise SystemExit("functorch.dim is there")
        import torch.func
        assert not hasattr(torch, "functorch")
    """)
