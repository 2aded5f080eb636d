"""Names that libraries look for: private helpers, checks, functions that torch once had."""

from __future__ import annotations

import copy
import gc
import pickle

import pytest
from _fresh import python

import mindtorch_v2 as torch
from mindtorch_v2.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs
from mindtorch_v2.nn.utils._named_member_accessor import NamedMemberAccessor
from mindtorch_v2.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary


def test_assertions():
    torch._assert(True, "fine")
    with pytest.raises(AssertionError, match="why"):
        torch._assert(False, "why")
    torch._assert_async(torch.tensor([2]))
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got zero"):
        torch._assert_async(torch.tensor(0.0))
    with pytest.raises(RuntimeError, match="why"):
        torch._assert_async(torch.tensor(False), "why")
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        torch._assert_async(torch.tensor([1, 2]))


@pytest.mark.parametrize("name", ["eig", "lstsq", "matrix_rank", "solve", "symeig"])
def test_functions_that_torch_once_had_say_what_serves(name):
    arguments = [torch.eye(2)] * (2 if name in ("lstsq", "solve") else 1)
    with pytest.raises(RuntimeError, match="(?s)deprecated since version 1.9 and is now removed.*linalg"):
        getattr(torch, name)(*arguments)


def test_dicts_of_tensors_by_identity():
    a, b = torch.ones(2), torch.ones(2)
    d = WeakTensorKeyDictionary({a: 1})
    assert a in d and b not in d and 3 not in d
    d[b] = 2
    assert len(d) == 2 and dict(d.items()) == {a: 1, b: 2} and {*map(id, d)} == {id(a), id(b)}
    assert d == d.copy() and d | {} == d and copy.copy(d)[b] == 2
    del a
    gc.collect()
    assert [*d.values()] == [2] and d.popitem() == (b, 2) and not d
    assert WeakIdKeyDictionary() == {}
    reference = TensorWeakRef(b)
    assert reference() is b


def test_named_member_accessor():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    access = NamedMemberAccessor(module)
    weight = access.get_tensor("0.weight")
    assert weight is module[0].weight
    other = torch.zeros(2, 2)
    assert access.swap_tensor("0.weight", other) is weight and module[0].weight is other
    access.set_tensor("0.weight", weight)
    former, missing = access.swap_tensors_dict({"0.bias": torch.ones(2), "1.running_mean": torch.ones(2)})
    assert missing == [] and module[0].bias.tolist() == [1, 1]
    access.swap_tensors_dict(former)
    assert isinstance(module[0].bias, torch.nn.Parameter) and module[1].running_mean.tolist() == [0, 0]
    assert access.check_keys(["0.weight", "2.weight"])[1] == ["2.weight"]
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): '0.absent'"):
        access.swap_tensors_dict({"0.absent": other})
    with pytest.raises(AttributeError, match="Linear has no attribute `absent`"):
        access.get_tensor("0.absent")
    with pytest.raises(AttributeError, match="Sequential has no attribute `5`"):
        access.get_submodule("5")
    access.del_tensor("0.bias")
    assert not hasattr(module[0], "bias")
    assert isinstance(access.swap_submodule("1", torch.nn.ReLU()), torch.nn.BatchNorm1d)


def test_scatter_and_gather_are_for_several_devices():
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        scatter(torch.ones(4), ["cpu"])
    with pytest.raises(AssertionError, match="Gather function not implemented for CPU tensors"):
        gather([torch.ones(1)], "cpu")
    meta = ["meta", "meta"]
    first, second = scatter({"x": torch.ones(5, 2), "y": 3}, meta)
    assert first["x"].shape == (3, 2) and second["x"].shape == (2, 2) and second["y"] == 3
    args, kwargs = scatter_kwargs((torch.ones(4),), {"flag": True}, meta)
    assert len(args) == len(kwargs) == 2 and kwargs[1] == {"flag": True}
    joined = gather([{"x": part} for part in args], "meta")
    assert joined["x"][0].shape == (4,)


def test_jacobian_vector_products():
    jvp = torch.autograd.functional.jvp
    x = torch.tensor([1.0, 2.0])
    out, product = jvp(lambda a: a**2, x, torch.tensor([1.0, 3.0]))
    assert out.tolist() == [1, 4] and product.tolist() == [2, 12] and not product.requires_grad
    outs, products = jvp(lambda a, b: (a * b, b.sum()), (x, x), (x, torch.ones(2)))
    assert outs[1].item() == 3 and products[0].tolist() == [2, 6] and products[1].item() == 2
    assert jvp(lambda a: a.sum(), torch.tensor([3.0]))[1].item() == 1
    assert jvp(lambda a: torch.ones(2), x, x)[1].tolist() == [0, 0]
    x.requires_grad_()
    (second,) = torch.autograd.grad(jvp(lambda a: a**3, x, torch.ones(2), create_graph=True)[1].sum(), x)
    assert second.tolist() == [6, 12]
    with pytest.raises(RuntimeError, match="The vector v can only be None if"):
        jvp(lambda a: a, x)
    with pytest.raises(
        RuntimeError, match=r"v has invalid size: should be torch.Size\(\[2\]\) but got torch.Size\(\[3\]\)"
    ):
        jvp(lambda a: a, x, torch.ones(3))
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        jvp(lambda a: torch.ones(2), x, torch.ones(2), strict=True)


def test_fake_implementations_may_come_before_their_operator():
    @torch.library.register_fake("names_test::later")
    def shape(x):
        return torch.empty(3, device="meta")

    @torch.library.custom_op("names_test::later", mutates_args=())
    def later(x: torch.Tensor) -> torch.Tensor:
        return x.new_ones(3)

    assert later(torch.ones(1, device="meta")).shape == (3,) and later(torch.ones(1)).tolist() == [1, 1, 1]


def test_control_flow_as_functions():
    python("""
        assert torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(1),)).item() == 2
        i, x = torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2)))
        assert i.item() == 3 and x.tolist() == [8, 8]
        from torch._higher_order_ops import associative_scan, map, scan
        carry, sums = scan(lambda c, x: (c + x, c + x), torch.zeros(()), torch.arange(4.0))
        assert carry.item() == 6 and sums.tolist() == [0, 1, 3, 6]
        assert scan(lambda c, x: (c + x, c + x), torch.zeros(()), torch.arange(4.0), reverse=True)[1].tolist() == [6, 6, 5, 3]
        assert map(lambda x, y: {"z": x * y}, torch.arange(3), torch.tensor(2))["z"].tolist() == [0, 2, 4]
        assert associative_scan(torch.add, torch.arange(6).reshape(2, 3), 1).tolist() == [[0, 1, 3], [3, 7, 12]]
        assert associative_scan(torch.add, torch.arange(3), 0, reverse=True).tolist() == [3, 3, 2]
    """)


def test_answers_about_the_library():
    python("""
        assert "USE_MKL=OFF" in torch.__config__.show() and "get_num_threads" in torch.__config__.parallel_info()
        key = torch._C.DispatchKey
        keys = torch._C.DispatchKeySet(key.CPU) | torch._C.DispatchKeySet(key.CUDA)
        assert keys.has(key.CPU) and not keys.has(key.Meta) and keys.remove(key.CUDA) == torch._C.DispatchKeySet(key.CPU)
        assert torch._C._get_default_device() == "cpu" and not torch._C._are_functorch_transforms_active()
        assert torch.vmap(lambda x: x + torch._C._are_functorch_transforms_active())(torch.zeros(2)).tolist() == [1, 1]
        a = torch.ones(4)
        assert torch._C._is_alias_of(a, a[1:]) and not torch._C._is_alias_of(a, a.clone())
        assert isinstance(torch.Tensor, torch._C._TensorMeta) and issubclass(torch._C._LinAlgError, RuntimeError)
        assert torch._utils._get_device_index("cuda:1") == 1 and torch._utils._element_size(torch.float64) == 8
        assert torch._utils._get_device_index("cpu", allow_cpu=True) == -1
        assert torch.utils._pytree.is_structseq_instance(torch.ones(2).max(0)) and not torch.utils._pytree.is_structseq((1,))
        assert torch._tensor_str._tensor_str(torch.ones(2), 0) == "[1., 1.]"
        assert torch._tensor_str._add_suffixes("f([1]", ["n=1"], 2, False) == "f([1], n=1)"
        from torch.autograd.profiler import EventList
        events = EventList()
        events._build_tree()
        assert events.table() == "" and events.key_averages() == []
        from torch._tensor import _convert, _rebuild_from_type_v2
        from torch.utils.data._utils.worker import _generate_state
        assert _generate_state(123, 4) == [3133042655, 609701789, 3156826794, 1639029168]
        from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter
        from torch._functorch.vmap import _add_batch_dim, _remove_batch_dim, _vmap_increment_nesting, _vmap_decrement_nesting
        level = _vmap_increment_nesting(3, "error")
        x = _add_batch_dim(torch.arange(6).reshape(2, 3), 1, level)
        assert x.shape == (2,) and _remove_batch_dim(x * 2, level, 3, 0).tolist() == [[0, 6], [2, 8], [4, 10]]
        assert _vmap_decrement_nesting() == level
        import io
        buffer = io.BytesIO()
        torch.save(torch.ones(2), buffer)
        assert torch.storage._load_from_bytes(buffer.getvalue()).tolist() == [1, 1]
    """)


def test_vectors_of_files(tmp_path):
    file = tmp_path / "numbers"
    file.write_bytes(bytes(range(64)))
    assert torch.from_file(str(file), size=3, dtype=torch.int32).tolist() == [50462976, 117835012, 185207048]
    assert torch.from_file(str(file)).shape == (0,) and torch.from_file(str(file), None, None).dtype is torch.float32
    private = torch.from_file(str(file), False, 4, dtype=torch.uint8)
    private[0] = 9
    shared = torch.from_file(str(file), True, 4, dtype=torch.uint8)
    assert shared.tolist() == [0, 1, 2, 3]
    assert shared.untyped_storage().filename == str(file) and private.untyped_storage().filename is None
    shared[1] = 7
    assert torch.from_file(str(file), size=2, dtype=torch.uint8).tolist() == [0, 7]
    made = torch.from_file(str(tmp_path / "new"), True, 3, dtype=torch.int32)
    assert made.tolist() == [0, 0, 0] and (tmp_path / "new").stat().st_size == 12
    with pytest.raises(RuntimeError, match="size <64> is smaller than the required mapping size <68>"):
        torch.from_file(str(file), size=17, dtype=torch.int32)
    with pytest.raises(
        RuntimeError, match=r"unable to open file <.*absent> in read-only mode: No such file or directory \(2\)"
    ):
        torch.from_file(str(tmp_path / "absent"), size=3)
    with pytest.raises(RuntimeError, match="tensors constructed from a file cannot be pinned"):
        torch.from_file(str(file), size=3, pin_memory=True)
    with pytest.raises(NotImplementedError, match="aten::from_file"):
        torch.from_file(str(file), size=3, device="meta")


def test_operators_that_libraries_take_from_aten():
    x = torch.ones(2, 3, device="meta")
    assert torch._shape_as_tensor(x).tolist() == [2, 3] and torch._shape_as_tensor(x).dtype is torch.int64
    aten = torch.ops.aten
    assert str(aten._pin_memory.default) == "aten._pin_memory.default"
    with pytest.raises(NotImplementedError, match="_sparse_mm_reduce_impl"):
        aten._sparse_mm_reduce_impl.default(torch.eye(2), torch.eye(2), "sum")
    made = aten._sparse_addmm.default(torch.eye(2), torch.eye(2).to_sparse(), torch.eye(2))
    assert made.tolist() == [[2, 0], [0, 2]]


def test_divergences_of_other_classes_may_be_registered():
    from mindtorch_v2.distributions import kl

    class Foreign:
        pass

    try:
        kl.register_kl(Foreign, Foreign)(lambda p, q: 5)
        assert kl.kl_divergence(Foreign(), Foreign()) == 5
    finally:
        kl._KL_REGISTRY.pop((Foreign, Foreign), None)
        kl._KL_MEMOIZE.clear()
    with pytest.raises(TypeError, match="must be a class"):
        kl.register_kl(3, Foreign)


def test_diagonals_are_filled_in_place():
    assert torch.zeros(2, 3).fill_diagonal_(5).tolist() == [[5, 0, 0], [0, 5, 0]]
    tall = torch.zeros(7, 3)
    assert tall.fill_diagonal_(5) is tall and tall.sum().item() == 15
    assert torch.zeros(7, 3).fill_diagonal_(5, wrap=True).nonzero().tolist() == [
        [0, 0],
        [1, 1],
        [2, 2],
        [4, 0],
        [5, 1],
        [6, 2],
    ]
    cube = torch.zeros(3, 3, 3).fill_diagonal_(2)
    assert cube.sum().item() == 6 and cube[1, 1, 1].item() == 2
    assert torch.zeros(3, 3, dtype=torch.int64).fill_diagonal_(2.5).diagonal().tolist() == [2, 2, 2]
    assert torch.zeros(4, 3, device="meta").t().fill_diagonal_(1).shape == (3, 4)
    x = torch.ones(3, 4, requires_grad=True)
    (x * 2).fill_diagonal_(7).sum().backward()
    assert x.grad.tolist() == [[0, 2, 2, 2], [2, 0, 2, 2], [2, 2, 0, 2]]
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x.fill_diagonal_(1)
    with pytest.raises(RuntimeError, match="dimensions must larger than 1"):
        torch.zeros(3).fill_diagonal_(2)
    with pytest.raises(RuntimeError, match="all dimensions of input must be of equal length"):
        torch.zeros(3, 4, 3).fill_diagonal_(2)
    assert (
        not hasattr(torch, "fill_diagonal_")
        and str(torch.ops.aten.fill_diagonal_.default) == "aten.fill_diagonal_.default"
    )


def test_arrays_of_what_requires_grad_outside_of_grad_mode():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert x.numpy().tolist() == [1, 1] and x.view(-1).cpu().numpy().tolist() == [1, 1]
    with torch.inference_mode():
        assert x.numpy().tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()


def test_fx_traces_functions_of_lists():
    from mindtorch_v2.fx import symbolic_trace

    traced = symbolic_trace(lambda a, b: torch.broadcast_tensors(a, b)[0] + 1)
    assert traced(torch.ones(1, 3), torch.ones(2, 1)).shape == (2, 3)


def test_functions_are_no_methods_of_the_classes_that_have_them():
    class Layer:
        product, linear, clamp_ = torch.mul, torch.nn.functional.linear, torch.relu_

    x, layer = torch.tensor([[-1.0, 2.0]]), Layer()
    assert torch.equal(layer.product(x, x), x * x)
    assert torch.equal(layer.linear(x, x), x @ x.T)
    assert layer.clamp_(x) is x and x.tolist() == [[0.0, 2.0]]
    assert pickle.loads(pickle.dumps(torch.mul)) is torch.mul and copy.deepcopy(torch.mul) is torch.mul


def test_classes_of_libraries_of_c_are_not_there():
    assert (
        python("""
        from torch._compile import _disable_dynamo

        assert torch._disable_dynamo is _disable_dynamo and torch.classes.loaded_libraries == set()
        try:
            torch.classes.some.Thing()
        except RuntimeError as error:
            print(error)
        try:
            torch.classes.load_library("/nowhere.so")
        except OSError as error:
            print(error)
    """)
        == "Class some.Thing not registered!\n/nowhere.so: operators compiled for PyTorch cannot be loaded\n"
    )
