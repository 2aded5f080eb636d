"""`torch.ops.aten`: overloads by PyTorch's names, their signatures and tags, and what serves each."""

from __future__ import annotations

import copy
import pickle

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._above import above
from mindtorch_v2._schemas import FunctionSchema, Tag

aten = torch.ops.aten
X = torch.tensor([1.0, 2.0, 3.0])
ROWS = [row for row in above("overloads").SIGNATURES.replace("\n", "|").split("|") if row]


def found(signature: str):
    """The overload of a signature; None where it is not there."""
    name, _, overload = signature.partition("(")[0].partition(".")
    return getattr(getattr(aten, name, None), overload or "default", None)


def test_all_core_overloads_are_there_and_say_what_they_are():
    for row in ROWS:
        signature, _, tags = row.partition("\t")
        overload = found(signature)
        if overload is None:
            assert "core" not in tags.split(), signature
            continue
        assert str(overload._schema) == f"aten::{signature}"
        assert {tag.name for tag in overload.tags} == {*tags.split(), "pt2_compliant_tag"} - {"-"} - (
            {"pt2_compliant_tag"} if "-" in tags.split() else set()
        )
    assert sum(found(row.partition("\t")[0]) is not None for row in ROWS) > 2000


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (lambda: aten.add.Scalar(X, 2, 10), [21, 22, 23]),
        (lambda: aten.add_.Scalar(X.clone(), 2), [3, 4, 5]),
        (lambda: aten.add.Scalar_out(X, 2, out=torch.empty(3)), [3, 4, 5]),
        (lambda: aten.rsub.Scalar(X, 1, 2), [-1, -3, -5]),
        (lambda: aten.pow.Scalar(2, X), [2, 4, 8]),
        (lambda: aten.pow.Tensor_Scalar(X, 2), [1, 4, 9]),
        (lambda: aten.div.Scalar_mode(X, 2, rounding_mode="floor"), [0, 1, 1]),
        (lambda: aten.where.ScalarSelf(X > 1, 1.0, X), [1, 1, 1]),
        (lambda: aten.fill.Scalar(X, 7), [7, 7, 7]),
        (lambda: aten.absolute(-X), [1, 2, 3]),
        (lambda: aten.absolute_.default(-X), [1, 2, 3]),
        (lambda: aten.concat.default([X, X]), [1, 2, 3, 1, 2, 3]),
        (lambda: aten.tanh_backward.grad_input(X, X, grad_input=torch.empty(3)), [0, -6, -24]),
        (lambda: aten.zero(X), [0, 0, 0]),
        (lambda: aten.resize(X, [2]), [1, 2]),
        (lambda: aten.set_.source_Tensor(torch.empty(0), X), [1, 2, 3]),
    ],
)
def test_overloads_that_operators_of_the_schema_serve(call, result):
    assert call().tolist() == result and X.tolist() == [1, 2, 3]


def test_members_stand_for_what_is_no_operator():
    x = torch.ones(2, 3)
    assert aten.sym_size.int(x, 1) == 3 and aten.sym_numel(x) == 6 and aten.sym_stride.int(x, 0) == 3
    assert (
        list(aten.sym_size(x)) == [2, 3]
        and list(aten.sym_stride.default(x)) == [3, 1]
        and aten.sym_storage_offset(x[1]) == 3
    )
    assert aten.sym_is_contiguous(x) and not aten.is_contiguous(x.t()) and aten.dim.default(x) == 2
    assert aten.item(X[1]) == 2 and aten._local_scalar_dense(X[1]) == 2 and aten.is_leaf.default(x) is True
    assert aten.promote_types(torch.int8, torch.uint8) is torch.int16 and aten.can_cast(torch.int8, torch.float32)
    with pytest.raises(RuntimeError, match="Empty tensor not supported"):
        aten._local_scalar_dense.default(torch.empty(0))


def test_several_buffers_and_buffers_of_operators_without():
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    got = aten.max.dim_max(torch.eye(2), 1, max=values, max_values=indices)
    assert got[0] is values and values.tolist() == [1, 1] and indices.tolist() == [0, 1]
    kept = torch.empty(0)
    assert aten.zero.out(X, out=kept) is kept and kept.tolist() == [0, 0, 0]
    wide = torch.empty(0, dtype=torch.float64)
    assert aten.mean.dtype_out(X, dtype=torch.float64, out=wide) is wide and wide.item() == 2


def test_objects_of_overloads():
    add = aten.add.Tensor
    assert add is aten.add.Tensor and add.overloadpacket is aten.add and str(add) == "aten.add.Tensor"
    assert add.name() == "aten::add.Tensor" and aten.sin.default.name() == "aten::sin" and add.namespace == "aten"
    assert (
        repr(add) == "<OpOverload(op='aten.add', overload='Tensor')>" and not add.is_view and aten.view.default.is_view
    )
    assert copy.deepcopy(add) is add and pickle.loads(pickle.dumps(add)) is add
    assert set(aten.add.overloads()) >= {"Tensor", "Scalar", "out", "Scalar_out"} and "Tensor" in [*aten.add]
    assert Tag.core in add.tags and str(Tag.pointwise) == "Tag.pointwise" and Tag.pointwise.value == 16
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'nothing'"):
        aten.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="The underlying op of 'aten.add' has no overload name 'nothing'"):
        aten.add.nothing  # noqa: B018


def test_signatures_are_read():
    schema = FunctionSchema(
        'x::f.o(Tensor(a!) self, Tensor?[] more, int[2] size=1, *, str mode="a, b", float? p=None, Tensor(b!) out) -> (Tensor(a!), int)'
    )
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("x::f", "o", True)
    self, more, size, mode, p, out = schema.arguments
    assert (
        self.is_write
        and not self.is_out
        and self.alias_info
        and self.alias_info.before_set == {"a"}
        and not self.has_default_value()
    )
    assert more.type == "List[Optional[Tensor]]" and (size.type, size.N, size.default_value) == ("List[int]", 2, 1)
    assert mode.kwarg_only and mode.default_value == "a, b" and p.has_default_value() and p.default_value is None
    assert p.type == "Optional[float]" and out.is_out and [r.type for r in schema.returns] == ["Tensor", "int"]
    dtype = aten.sum.default._schema.arguments[1]
    assert (dtype.name, dtype.type, dtype.real_type) == ("dtype", "Optional[int]", "Optional[ScalarType]")
    with pytest.raises(RuntimeError, match="no signature of an operator"):
        FunctionSchema("nothing")


def test_signatures_of_operators_that_pytorch_has_not():
    """Those of other libraries, and of packages, say defaults, sizes of lists and all results, as PyTorch's do."""
    npu, vision = torch.ops.npu, torch.ops.torchvision
    norm = npu.npu_rms_norm.default._schema
    assert (
        str(norm)
        == "npu::npu_rms_norm(Tensor self, Tensor gamma, float epsilon=9.9999999999999995e-07) -> (Tensor, Tensor)"
    )
    assert norm.arguments[2].default_value == 1e-6 and len(norm.returns) == 2
    assert (
        str(vision.nms.default._schema) == "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    )
    given = {
        a.name: a.default_value for a in npu.npu_fusion_attention.default._schema.arguments if a.has_default_value()
    }
    assert (given["scale"], given["pse"], given["softmax_layout"], given["sync"]) == (1.0, None, "", False)
    assert "query" not in given and len(npu.npu_fusion_attention.default._schema.returns) == 7


def test_products_of_eight_bits_saturate():
    one = torch.tensor(1.0)
    for dtype, largest in ((torch.float8_e4m3fn, 448), (torch.float8_e5m2, float("inf"))):
        a = torch.full((16, 16), 200.0).to(dtype)
        assert torch._scaled_mm(a, a.t(), one, one)[0, 0].item() == largest
        assert torch._scaled_mm(a, a.t(), one, -one)[0, 0].item() == -largest
        assert torch._scaled_mm(a, a.t(), one, one * float("nan"))[0, 0].isnan()
    a, kept = torch.ones(16, 16).to(torch.float8_e4m3fn), torch.empty(0, dtype=torch.int16)
    assert torch._scaled_mm(a, a.t(), one, one, out=kept) is kept and kept[0, 0].item() == 16
