"""Names of torch that few programs write: recurrent networks of flat weights, former members, policies of checkpoints, trackers of modules, batons."""

from __future__ import annotations

import copy
import inspect
import operator
import os
import pickle
import types
import warnings

import pytest
from _fresh import python

import mindtorch_v2 as torch
from mindtorch_v2.nn import attention
from mindtorch_v2.nn.parallel import parallel_apply
from mindtorch_v2.utils.file_baton import FileBaton
from mindtorch_v2.utils.module_tracker import ModuleTracker

aten = torch.ops.aten


@pytest.mark.parametrize(("kind", "name"), [("RNN", "rnn_tanh"), ("GRU", "gru"), ("LSTM", "lstm")])
@pytest.mark.parametrize("both", [False, True])
def test_recurrent_functions_are_what_the_modules_compute(kind, name, both):
    torch.manual_seed(0)
    module = getattr(torch.nn, kind)(3, 4, 2, bidirectional=both)
    x, h = torch.randn(5, 2, 3), torch.randn(4 if both else 2, 2, 4)
    states = (h, h * 2) if kind == "LSTM" else h
    expected, last = module(x, states)
    function, weights = getattr(torch, name), [*module.parameters()]
    output, *final = function(x, states, weights, True, 2, 0.0, False, both, False)
    assert torch.equal(output, expected)
    assert all(map(torch.equal, final, last if kind == "LSTM" else [last]))
    first = function(x.transpose(0, 1), states, weights, True, 2, 0.0, False, both, True)[0]
    assert torch.equal(first, expected.transpose(0, 1))
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    data = function(packed.data, packed.batch_sizes, states, weights, True, 2, 0.0, False, both)[0]
    assert torch.equal(data, module(packed, states)[0].data)
    with pytest.raises(RuntimeError, match="not divisible by stride 4"):
        function(x, states, weights[:-1], True, 2, 0.0, False, both, False)
    with pytest.raises(RuntimeError, match="incorrect number of RNN parameters"):
        function(x, states, weights[:-4], True, 2, 0.0, False, both, False)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_cells_are_what_the_modules_compute(kind):
    torch.manual_seed(0)
    cell = getattr(torch.nn, f"{kind}Cell")(3, 4)
    x, h = torch.randn(2, 3), torch.randn(2, 4)
    states = (h, h) if kind == "LSTM" else h
    name = {"RNN": "rnn_tanh_cell", "GRU": "gru_cell", "LSTM": "lstm_cell"}[kind]
    expected, found = cell(x, states), getattr(torch, name)(x, states, *cell.parameters())
    assert all(map(torch.equal, expected, found)) if kind == "LSTM" else torch.equal(expected, found)


def test_convolution_over_time_first():
    x, w, b = torch.arange(12.0).reshape(3, 2, 2), torch.arange(8.0).reshape(2, 2, 2), torch.tensor([0.5, -0.5])
    assert torch.conv_tbc(x, w, b).tolist() == [[[48.5, 57.5], [72.5, 89.5]], [[96.5, 121.5], [120.5, 153.5]]]
    assert torch.conv_tbc(x, w, b, 1).shape == (4, 2, 2) and torch.nn.functional.conv_tbc is torch.conv_tbc
    for arguments, words in (
        ((x[0], w, b), "Input must have 3 dims: time, batch, in_channel"),
        ((x, w[:, :1], b), r"Input dim 2 \(input channels\) is not == dim 1 in the weight tensor"),
        ((x, w, w), "Bias must be 1-D"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.conv_tbc(*arguments)


def test_norms_of_old():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.frobenius_norm(x, [0, 1]).item() == pytest.approx(55**0.5)
    assert torch.norm_except_dim(x, 1, 0).tolist() == [[3], [12]] and torch.norm_except_dim(x, 1, -1).item() == 15
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.norm_except_dim(x, 2, 2)
    shuffled = torch.native_channel_shuffle(torch.arange(8.0).reshape(1, 4, 2), 2)
    assert shuffled.flatten().tolist() == [0, 1, 4, 5, 2, 3, 6, 7]


def test_functions_in_place():
    x = torch.tensor([1.5, -2.5])
    assert torch.fix_(x) is x and torch.negative_(x).tolist() == [-1, 2] and torch.clip_(x, 0.0).tolist() == [0, 2]
    assert torch.addmv_(torch.ones(2), torch.eye(2), torch.ones(2)).tolist() == [2, 2]
    y = torch.ones(2, requires_grad=True) * 2
    assert torch.detach_(y) is y and y.is_leaf


def test_former_members():
    x = torch.arange(6.0)
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        assert x.resize(2, 3).shape == (2, 3)
    with pytest.warns(UserWarning, match="non-inplace resize_as is deprecated"):
        assert x.resize_as(torch.ones(3, 2)).shape == (3, 2)
    with (
        warnings.catch_warnings(),
        pytest.raises(RuntimeError, match=r"requested resize to 2x2 \(4 elements in total\)"),
    ):
        warnings.simplefilter("ignore")
        x.resize(2, 2)
    for name in ("eig", "lstsq", "solve", "symeig"):
        with pytest.raises(RuntimeError, match="deprecated since version 1.9 and is now removed"):
            getattr(x, name)(*[x] * (name in ("lstsq", "solve")))
    with pytest.raises(RuntimeError, match="Use torch.distributions instead"):
        x.reinforce(1)
    assert x.const_data_ptr() == x.data_ptr() and x.grad_dtype is torch.float32 and x.name is None
    assert x[3].__long__() == 3 and x[3].__nonzero__() and not torch.is_neg(x) and not torch.is_distributed(x)


def test_classes_of_results():
    kinds = torch.return_types
    made = torch.max(torch.eye(2), 1, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))
    assert type(made) is kinds.max_out and kinds.max in kinds.all_return_types and "sort_out" in dir(kinds)
    assert type(torch.histogramdd(torch.ones(2, 1), [2])) is kinds.histogramdd
    with pytest.raises(AttributeError, match="module 'torch.return_types' has no attribute 'nothing'"):
        kinds.nothing  # noqa: B018


def test_copies_of_what_sparse_tensors_consist_of():
    coo = torch.eye(2).to_sparse()
    csr = torch.eye(2).to_sparse_csr()
    assert torch.indices_copy(coo).tolist() == [[0, 1], [0, 1]] and torch.crow_indices_copy(csr).tolist() == [0, 1, 2]
    values = torch.values_copy(coo)
    values.zero_()
    assert coo.values().tolist() == [1, 1] and torch.col_indices_copy(csr).tolist() == [0, 1]


@pytest.mark.parametrize("policy", ["list", "function"])
def test_policies_of_checkpoints(policy):
    from mindtorch_v2.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

    ran = []

    class Count(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            ran.append(str(func))
            return func(*args, **(kwargs or {}))

    def decide(context, op, *args, **kwargs):
        kept.add(context.is_recompute)
        return CheckpointPolicy.MUST_SAVE if op is aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE

    kept: set[bool] = set()
    chosen = [aten.mm.default] if policy == "list" else decide
    a, b = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3)

    def run(x):
        return torch.sin(torch.mm(torch.cos(x), b))

    with Count():
        result = checkpoint(
            run, a, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(chosen)
        )
        result.sum().backward()
    assert (
        ran.count("aten.cos.default") >= 2 and ran.count("aten.mm.default") == 2
    )  # once forward, once for the gradient
    other = a.detach().clone().requires_grad_()
    run(other).sum().backward()
    assert torch.equal(a.grad, other.grad) and (policy == "list" or kept == {False, True})
    with pytest.raises(ValueError, match="to be an OpOverload"):
        create_selective_checkpoint_contexts([torch.mm])
    with pytest.raises(TypeError, match="must be either a function or a list"):
        create_selective_checkpoint_contexts(3)


def test_modules_that_run():
    seen: list[tuple[set[str], bool]] = []

    class Inner(torch.nn.Module):
        def forward(self, x):
            seen.append((set(tracker.parents), tracker.is_bw))
            return x * 2

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)

    with ModuleTracker() as tracker:
        x = torch.ones(2, requires_grad=True)
        y = Outer()(x)
        y.register_hook(lambda grad: seen.append((set(tracker.parents), tracker.is_bw)))
        y.sum().backward()
    assert seen[0] == ({"Global", "Outer", "Outer.inner"}, False)
    assert tracker.parents == {"Global"} and not tracker.is_bw


def test_batons(tmp_path):
    path = os.path.join(tmp_path, "lock")
    first, second = FileBaton(path), FileBaton(path, wait_seconds=0.001)
    assert first.try_acquire() and not second.try_acquire()
    first.release()
    second.wait()
    assert second.try_acquire()
    second.release()
    assert not os.path.exists(path)


def test_signatures_of_functions():
    from mindtorch_v2.library import fallthrough_kernel, infer_schema

    def f(
        x: torch.Tensor, y: int, z: float = 1.0, *, w: list[torch.Tensor], o: torch.Tensor | None = None
    ) -> torch.Tensor:
        return x

    assert (
        infer_schema(f, mutates_args=()) == "(Tensor x, SymInt y, float z=1.0, *, Tensor[] w, Tensor? o=None) -> Tensor"
    )
    assert infer_schema(f, mutates_args=("x",), op_name="a::b").startswith("a::b(Tensor(a0!) x, SymInt y")
    with pytest.raises(ValueError, match="were not found in the function's signature"):
        infer_schema(f, mutates_args=("q",))
    with pytest.raises(ValueError, match="must have a type annotation"):
        infer_schema(lambda x: None, mutates_args=())
    with pytest.raises(NotImplementedError):
        fallthrough_kernel()


def test_other_implementations_of_attention():
    class Handle:
        removed = False

        def remove(self):
            Handle.removed = True

    attention.register_flash_attention_impl("mine", register_fn=Handle)
    assert "mine" in attention.list_flash_attention_impls() and attention.current_flash_attention_impl() is None
    attention.activate_flash_attention_impl("mine")
    assert attention.current_flash_attention_impl() == "mine"
    attention.restore_flash_attention_impl()
    assert Handle.removed and attention.current_flash_attention_impl() is None
    with pytest.raises(ValueError, match="Unknown flash attention impl 'other'"):
        attention.activate_flash_attention_impl("other")


def test_modules_side_by_side_and_without_statistics():
    modules = [torch.nn.ReLU(), torch.nn.Flatten()]
    outputs = parallel_apply(modules, [torch.tensor([-1.0]), (torch.ones(2, 2, 2),)])
    assert outputs[0].tolist() == [0] and outputs[1].shape == (2, 4)
    with pytest.raises(AssertionError, match="is not equal to the number of inputs 1"):
        parallel_apply(modules, [1])
    norm = torch.func.replace_all_batch_norm_modules_(torch.nn.Sequential(torch.nn.BatchNorm1d(2)))[0]
    assert norm.running_mean is None and not norm.track_running_stats


def test_names_under_the_proxy():
    python(
        """
        from mindtorch_v2._torch_proxy import install
        install()
        import torch
        assert torch.has_lapack and torch.Storage is torch.FloatStorage and torch.legacy_contiguous_format is torch.contiguous_format
        assert torch._C.parse_schema("a::b(Tensor x) -> Tensor").name == "a::b" and torch.Tag.core in torch.ops.aten.add.Tensor.tags
        assert torch._C._get_accelerator() == torch.device("cpu")
        assert torch.wait(torch.fork(lambda x: x + 1, 1)) == 2 and torch.sym_sqrt(4) == 2 and torch._VF.lstm is torch.lstm
        class A:
            word = torch.classproperty(lambda cls: cls.__name__)
        assert A.word == "A" and A().word == "A"
        torch.sym_constrain_range(3, min=1, max=4)
        try:
            torch.sym_constrain_range_for_size(-1)
        except RuntimeError as error:
            assert "Invalid value range for -1 between [0, 9223372036854775807]" in str(error)
        else:
            raise AssertionError
        torch.set_anomaly_enabled(True, False)
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
        torch.set_anomaly_enabled(False)
        import torch.multiprocessing as mp
        assert issubclass(mp.TimeoutError, mp.ProcessError)
        torch.compiler.set_default_backend("eager")
        assert torch.compiler.get_default_backend() == "eager"
        """
    )


def test_memory_of_others():
    x = torch.arange(3.0)
    assert torch.from_dlpack(x, copy=False).data_ptr() == x.data_ptr() == torch.from_dlpack(x, device="cpu").data_ptr()
    copied = torch.from_dlpack(x, copy=True)
    assert copied.tolist() == [0, 1, 2] and copied.data_ptr() != x.data_ptr()
    capsule = x.__dlpack__(max_version=(1, 0), dl_device=x.__dlpack_device__(), copy=True)
    assert torch.from_dlpack(capsule).data_ptr() != x.data_ptr()


BUILTIN = (
    "add where nonzero numel is_complex result_type can_cast promote_types get_default_dtype asarray frombuffer tensor from_numpy equal is_grad_enabled "
    "is_autocast_enabled get_num_threads lstm gru_cell hspmm sparse_coo_tensor values_copy nn.functional.adaptive_avg_pool1d sparse.mm "
    "overrides.has_torch_function_unary _assert_async"
).split()


@pytest.mark.parametrize("name", BUILTIN)
def test_functions_that_are_builtin_in_pytorch_stay_functions_in_a_class(name):
    function = operator.attrgetter(name)(torch)
    member = type("A", (), {"f": function})().f
    assert not isinstance(member, types.MethodType) and member.__name__ == name.rpartition(".")[2]
    if "." not in name:
        assert pickle.loads(pickle.dumps(function)) is function and copy.deepcopy(function) is function


def test_functions_of_python_bind_as_pytorchs_do():
    class A:
        split, einsum = torch.split, torch.einsum

    assert isinstance(A().split, types.MethodType) and isinstance(A().einsum, types.MethodType)
    assert torch.meshgrid.__kwdefaults__ == {"indexing": None}
    assert [*inspect.signature(torch.split).parameters] == ["tensor", "split_size_or_sections", "dim"]


class Answers:
    """What takes over every call, and says which."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return function, len(args)


@pytest.mark.parametrize(
    "name",
    "is_complex is_nonzero numel result_type resolve_conj nonzero where detach_ resize_as_ values_copy split norm unique einsum atleast_1d meshgrid".split(),
)
def test_functions_that_are_no_operators_are_taken_over(name):
    function, o = getattr(torch, name), Answers()
    args = {
        "result_type": (o, 1),
        "where": (o, 1, o),
        "split": (o, 2),
        "einsum": ("i->i", o),
        "resize_as_": (o, o),
    }.get(name, (o,))
    assert function(*args) == (function, len(args))
    assert torch.overrides.has_torch_function(args) and torch.is_grad_enabled()


def test_traced_programs_name_functions_that_are_no_operators():
    traced = torch.fx.symbolic_trace(lambda x: torch.where(torch.is_complex(x), x, torch.split(x, 2)[0]))
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets[:2] == [torch.is_complex, torch.split] and targets[-1] is torch.where
    assert "torch.where" in traced.code and pickle.loads(pickle.dumps(traced)).code == traced.code


@pytest.mark.parametrize(
    ("name", "args", "keywords", "message"),
    [
        ("_assert_scalar", (0, "no"), {}, "no"),
        ("_assert_async", (torch.zeros(1),), {}, "Expected Tensor with single nonzero value, but got zero"),
        ("_assert_async", (torch.zeros(1), "no"), {}, "no"),
        ("_assert_async", (torch.zeros(2),), {}, "Boolean value of Tensor with more than one value is ambiguous"),
        (
            "_assert_tensor_metadata",
            (torch.ones(2, 3), [2, 4]),
            {},
            "Tensor sizes mismatch! Expected: [2, 4], Got: [2, 3]",
        ),
        (
            "_assert_tensor_metadata",
            (torch.ones(2, 3), [2, 3], [1, 3]),
            {},
            "Tensor strides mismatch! Expected: [1, 3], Got: [3, 1]",
        ),
        (
            "_assert_tensor_metadata",
            (torch.ones(2).half(),),
            {"dtype": torch.int64},
            "Tensor dtype mismatch! Expected: Long, Got: c10::Half",
        ),
        (
            "_assert_tensor_metadata",
            (torch.ones(2),),
            {"device": "meta"},
            "Tensor device mismatch! Expected: meta, Got: cpu",
        ),
        (
            "_assert_tensor_metadata",
            (torch.ones(2),),
            {"layout": torch.sparse_csr},
            "Tensor layout mismatch! Expected: SparseCsr, Got: Strided",
        ),
        ("sym_constrain_range", (3,), {"max": 2}, "Invalid value range for 3 between [-9223372036854775808, 2]."),
        (
            "sym_constrain_range",
            (3,),
            {"min": 5, "max": 1},
            "Max must be greater than or equal to min. Got min=5 max=1",
        ),
        (
            "sym_constrain_range_for_size",
            (3,),
            {"max": 1},
            "Max value to constrain_range_for_size must be greater than 2. got: 1",
        ),
    ],
)
def test_assertions_that_are_operators(name, args, keywords, message):
    with pytest.raises(RuntimeError) as caught:
        getattr(aten, name)(*args, **keywords)
    assert str(caught.value).startswith(message)


def test_assertions_that_hold_give_nothing():
    x = torch.ones(2, 3)
    assert aten._assert_tensor_metadata.default(x, [2, 3], [3, 1], torch.float32, device="cpu") is None
    assert aten._assert_scalar.default(2.5, "no") is aten._assert_async.msg(torch.ones(1), "no") is None
    assert aten.sym_constrain_range_for_size.default(5, min=3, max=7) is None


def test_only_inputs_of_old():
    x = torch.ones(2, requires_grad=True)
    assert torch.autograd.grad(x.sum(), x, None, None, False, True, True)[0].tolist() == [1, 1]
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated and is ignored now"):
        torch.autograd.grad(x.sum(), x, only_inputs=False)


def test_constructor_of_old_takes_tensors_of_any_dtype():
    class Own(torch.Tensor):
        pass

    x = torch.arange(3)
    for made in (torch.Tensor(x), Own(x), torch.Tensor.__new__(Own, x), torch.Tensor(other=x)):
        assert made.dtype is torch.int64 and made.data_ptr() == x.data_ptr()
    w = torch.ones(2, requires_grad=True)
    assert torch.Tensor(w).requires_grad
    with pytest.raises(
        TypeError, match=r"expected TensorOptions\(dtype=float, .*\(got TensorOptions\(dtype=long int, device=cpu"
    ):
        torch.FloatTensor(x)


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        (
            ((2, 3), (4,)),
            RuntimeError,
            "length 4 at -1! Mismatching argument at index 1 had (4,); but expected shape should be broadcastable to [2, 3]",
        ),
        (
            ((5, 1, 3), (2, 4, 3)),
            RuntimeError,
            "length 2 at -3! Mismatching argument at index 1 had (2, 4, 3); but expected shape should be broadcastable to [5, 4, 3]",
        ),
        (((2, -1), (2, 3)), ValueError, "Attempting to broadcast a dimension with negative length!"),
    ],
)
def test_shapes_that_do_not_broadcast(shapes, error, message):
    with pytest.raises(error) as caught:
        torch.broadcast_shapes(*shapes)
    assert message in str(caught.value)
    assert torch.broadcast_shapes(3, (2, 1), (0, 1, 1)) == (0, 2, 3)


def test_einsum_of_a_list_is_taken_over_with_its_operands():
    traced = torch.fx.symbolic_trace(lambda a, b: torch.einsum("i,i->", [a, b]))
    node = next(node for node in traced.graph.nodes if node.op == "call_function")
    assert node.target is torch.einsum and [str(arg) for arg in node.args] == ["i,i->", "a", "b"]
