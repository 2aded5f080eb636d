"""What members of Tensor that are written by hand take, as PyTorch's parser reads it; what does not fit is refused in its words before anything is done.

The text of a signature is as in the schema, without the tensor itself. Members that PyTorch writes in Python are named as they are there, which Python's own sentences say.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ... import _tensor
from ..._dispatch import native
from ..._dispatch.refusals import check_by_text, usual

_FORMAT = "*, MemoryFormat? memory_format=None"
_MOVE = f"Device? device=None, bool non_blocking=False, {_FORMAT}"

SIGNATURES = {
    "apply_": "Any callable",
    "cpu": _FORMAT,
    "get_device": "",
    "is_contiguous": "*, MemoryFormat memory_format=torch.contiguous_format",
    "is_inference": "",
    "is_pinned": "Device? device=None",
    "is_same_size": "Tensor other",
    "is_set_to": "Tensor tensor",
    "map2_": "Tensor x, Tensor y, Any callable",
    "map_": "Tensor other, Any callable",
    "new_tensor": "Any data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False",
    "nonzero": "*, bool as_tuple=False",
    "numpy": "*, bool force=False",
    "pin_memory": "Device? device=None",
    "requires_grad_": "bool requires_grad=True",
    "resize_": f"SymInt[] size, {_FORMAT}",
    "resize_as_": f"Tensor the_template, {_FORMAT}",
    "retain_grad": "",
    "type_as": "Tensor other",
    **dict.fromkeys("data_ptr untyped_storage is_floating_point is_complex is_signed is_conj is_neg resolve_conj resolve_neg is_distributed has_names".split(), ""),
    **dict.fromkeys("is_coalesced _nnz sparse_dim dense_dim _dimI _dimV _is_view".split(), ""),
    **dict.fromkeys("float double half bfloat16 int long short char byte bool cfloat cdouble chalf".split(), _FORMAT),
    **dict.fromkeys("cuda npu xpu ipu mtia mps".split(), _MOVE),
}  # fmt: skip
_IN_PYTHON = frozenset(
    "split norm stft lu unique unique_consecutive backward register_hook register_post_accumulate_grad_hook share_memory_ is_shared dim_order storage_type "
    "module_load __len__ __deepcopy__ __reduce_ex__ __format__ __contains__ __reversed__ __dlpack__ __dlpack_device__ __array__".split()
)


def checked(members: dict[str, Any]) -> dict[str, Any]:
    """The members, of which those with a signature look at their arguments first."""
    return {name: _checked(name, member) for name, member in members.items()}


def _checked(name: str, member: Any) -> Any:
    if member.__class__ is not FunctionType:
        return member
    if name in _IN_PYTHON:
        member.__qualname__, member.__module__ = f"Tensor.{name}", _tensor.__name__
    text = SIGNATURES.get(name)
    if text is None:
        return member

    def check(self: Any, *args: Any, **kwargs: Any) -> None:
        check_by_text(name, (text,), args, kwargs)

    return native.checked(member, check, usual(text))
