"""Compositions of operators outside of pipelines: norms by their formula, `weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon))`, by aclnnRmsNorm.

Note [Composed as they come]
Where `x.pow(2)` of float32 needs no history it is left for later (Note [Late results] in `_late.py`), and so is each operator that goes on with the composition. The product with a weight launches the one
function, and so does whoever asks for the product before that. Any other use of what is between launches the operators that gave it one by one, as if nothing had been left.
"""

from __future__ import annotations

from typing import Any

from ..._dispatch.operator import Operator
from ..._dtype import DTYPES
from ..._generated.npu.functions import aclnnInplaceOne, aclnnRmsNorm
from ..._payload import contiguous_strides
from ..._rules.spec import Spec
from ..._state import PLAIN, TLS
from ..._tensor import wrap
from . import aclnn, run
from ._late import Late, fresh
from .creation import empty
from .errors import NpuError
from .payload import NpuPayload
from .storage import NpuStorage
from .streams import chosen, current_stream

_FLOAT = DTYPES["float32"]
_slot = NpuStorage.__dict__["_lease"]


class LateStorage(NpuStorage):
    """A storage whose memory is made when it is asked for; from then on it is a NpuStorage. The extension takes no storage of this class for memory."""

    __slots__ = ()

    @property
    def _lease(self) -> Any:  # type: ignore[override]
        late = _slot.__get__(self)
        self._lease = late.launched()
        return _slot.__get__(self)

    @_lease.setter
    def _lease(self, lease: Any) -> None:
        _slot.__set__(self, lease)
        self.__class__ = NpuStorage  # type: ignore[assignment]


def quick(op: Operator, args: tuple) -> tuple[Spec, NpuPayload] | None:
    """(the spec, the result) of a call that begins a composition, or goes on with one; None for all others."""
    step = _STEPS.get(op.name)
    if step is None or (TLS.grad_enabled and any(a.__class__ in PLAIN and a.requires_grad for a in args)):
        return None
    return step(op, args)


def _payload(value: Any) -> NpuPayload | None:
    """The payload of a float32 tensor on an NPU that lies there without gaps."""
    data = value._payload if value.__class__ in PLAIN else None
    if data.__class__ is not NpuPayload or data.dtype is not _FLOAT:
        return None
    return data if data.stride == contiguous_strides(data.shape) else None


def _late(value: Any, name: str) -> Late | None:
    """What a tensor is the late result of, all of it, if that is an operator of this name."""
    data = _payload(value)
    if data is None or data.storage.__class__ is not LateStorage:
        return None
    found = _slot.__get__(data.storage)
    return found if found.op.name == name and found.lease is None and found.shape == data.shape else None


def _left(op: Operator, args: tuple, shape: tuple, source: NpuPayload, epsilon: float = 0.0) -> tuple[Spec, NpuPayload]:
    """A result that is left for later. Operands stay what they are now, whatever is made of the tensors."""
    operands = tuple(wrap(a._payload, a._dtype) if a.__class__ in PLAIN else a for a in args)
    storage, beside = object.__new__(LateStorage), source.storage
    late = Late(op, operands, shape, source, epsilon, current_stream(beside._index), _launched)
    made = NpuPayload(shape, contiguous_strides(shape), _FLOAT, 0, storage)
    storage._where, storage._index, storage._nbytes = beside._where, beside._index, made.size * _FLOAT.itemsize
    _slot.__set__(storage, late)
    return Spec(shape, _FLOAT), made


def _launched(late: Late) -> Any:
    """The lease of a late result, whose launches go to its stream."""
    index = late.source.storage._index
    before, streams = current_stream(index), chosen()
    streams[index] = late.stream
    try:
        made = _rms_norm(late, None) if late.op.name == "mul" else None
        if made is None:
            made = run.run(late.op, Spec(late.shape, _FLOAT, None, _FLOAT), late.operands, late.source.device)
    finally:
        streams[index] = before
    return made.storage._lease


def _rms_norm(late: Late, weight: NpuPayload | None) -> NpuPayload | None:
    """The norm that a late product is, times a weight. None where there is no such function, or it is refused: the operators do it then, or say what is wrong."""
    x = late.source
    out, rstd = (empty(shape, None, _FLOAT, x.device) for shape in (x.shape, (*x.shape[:-1], 1)))
    try:
        with aclnn.running("mul", _FLOAT), fresh():
            if weight is None:
                weight = empty(x.shape[-1:], None, _FLOAT, x.device)
                aclnn.launch(aclnnInplaceOne, weight)
            aclnn.launch(aclnnRmsNorm, x, weight, late.epsilon, out, rstd)
    except (NpuError, NotImplementedError):
        return None
    return out


# ---------------------------------------------------------------------------------------------------------------- the operators


def _pow(op: Operator, args: tuple) -> Any:
    exponent = args[1]
    if exponent.__class__ not in (int, float) or exponent != 2:
        return None
    x = _payload(args[0])
    return None if x is None or not x.shape or not x.size else _left(op, args, x.shape, x)


def _mean(op: Operator, args: tuple) -> Any:
    late = _late(args[0], "pow") if len(args) == 4 and args[2] is True and args[3] is None else None
    dim = args[1] if late is not None else None
    if late is None or dim.__class__ not in (list, tuple) or len(dim) != 1 or dim[0] not in (-1, len(late.shape) - 1):
        return None
    return _left(op, args, (*late.shape[:-1], 1), late.source)


def _add(op: Operator, args: tuple) -> Any:
    _, epsilon, alpha = args
    late = _late(args[0], "mean") if epsilon.__class__ is float and alpha.__class__ is int and alpha == 1 else None
    return None if late is None else _left(op, args, late.shape, late.source, epsilon)


def _rsqrt(op: Operator, args: tuple) -> Any:
    late = _late(args[0], "add")
    return None if late is None else _left(op, args, late.shape, late.source, late.epsilon)


def _mul(op: Operator, args: tuple) -> Any:
    for one, other in (args, args[::-1]):
        given = _payload(one)
        if given is None:
            continue
        late = _late(other, "rsqrt")
        if late is not None and _is_same(given, late.source):
            return _left(op, args, given.shape, given, late.epsilon)
        late = _late(other, "mul")
        if late is not None and given.shape == late.shape[-1:] and given.storage._index == late.source.storage._index:
            if late.stream is current_stream(late.source.storage._index):
                made = _rms_norm(late, given)
                return None if made is None else (Spec(late.shape, _FLOAT), made)
    return None


def _is_same(one: NpuPayload, other: NpuPayload) -> bool:
    return one.storage is other.storage and one.shape == other.shape and one.offset == other.offset


_STEPS = {"pow": _pow, "mean": _mean, "add": _add, "rsqrt": _rsqrt, "mul": _mul}
BEGINS = frozenset(("pow.Tensor_Tensor",))
"""The operators that a composition may begin with: the extension does not run their plans by itself."""
