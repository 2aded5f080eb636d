"""Overload resolution: from the arguments of a call to one operator and its arguments in schema order."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from .._tensor import TOO_LONG, Tensor
from .._warnings import warn_once
from .convert import ItemTooLong, Mismatch, called, convert_one, describe
from .operator import Operator, Param

# Spellings that PyTorch accepts for its own, for the sake of numpy's users.
_SPELLINGS = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "self",
    "x1": "self",
    "x2": "other",
    "a": "self",
    "input": "self",
}
_INT_TYPES = ("int", "SymInt")


def resolve(
    overloads: Sequence[Operator],
    args: tuple,
    kwargs: dict,
    method: bool = False,
    out: Any = None,
    inplace: bool = False,
) -> tuple[Operator, tuple]:
    """The first overload that the arguments fit (and that takes an `out=` when one is given), and the arguments in its order.

    TypeError names the argument when there is one overload, and lists all overloads otherwise.
    """
    first: Exception | None = None
    if out is not None:
        return _resolve_out(overloads, args, kwargs, out)
    for op in overloads:
        try:
            return op, bind(op, args, kwargs, method)
        except ItemTooLong as error:
            raise TypeError(describe(op, error, method, inplace)) from None
        except ValueError as error:
            if str(error) != TOO_LONG:
                raise
            raise _other_fault(error, overloads, args, kwargs, method, inplace) from None
        except (Mismatch, _Unfit) as error:
            if first is None:
                first = error.with_traceback(None)  # its frames hold the arguments, and would be held by this one
    former = _former(overloads, args, kwargs, method, inplace)
    if former is not None:
        return former
    raise _refused(first, overloads, args, kwargs, method, inplace)


def _other_fault(
    error: Exception, overloads: Sequence[Operator], args: tuple, kwargs: dict, method: bool, inplace: bool
) -> Exception:
    """What another argument is refused for, whose type is wrong, or `error`, of a number that is too long: types are looked at first."""
    from .refusals import refusal  # once a call has failed

    unsaid = TypeError()
    found = refusal(unsaid, called(overloads[0], inplace), overloads, args, kwargs, method, inplace)
    return error if found is unsaid else found


def _refused(
    first: Exception | None, overloads: Sequence[Operator], args: tuple, kwargs: dict, method: bool, inplace: bool
) -> TypeError:
    """The error for arguments that no overload takes, of which `first` is what the first one had against them."""
    from .refusals import refusal  # once a call has failed

    op, name = overloads[0], called(overloads[0], inplace)
    if isinstance(first, Mismatch):
        text = describe(op, first, method, inplace)
    else:
        text = f"{name}() {first or 'takes no such arguments'}"
    error = refusal(TypeError(text), name, overloads, args, kwargs, method, inplace)
    error.__suppress_context__ = True
    return error


def _resolve_out(overloads: Sequence[Operator], args: tuple, kwargs: dict, out: Any) -> tuple[Operator, tuple]:
    """`resolve` of a call with `out=`. Where only one overload takes as many arguments, the error is about it."""
    own = [op for op in overloads if "out" in op.variants]
    given = {**kwargs, "out": out}
    likely = [op for op in overloads if len(op.params) + ("out" in op.variants) >= len(args) + len(given)]
    if len(overloads) > 1 and likely == own and len(own) == 1:
        return resolve(own, args, kwargs)
    for op in own:
        try:
            return op, bind(op, args, kwargs, False)
        except (Mismatch, _Unfit):
            continue
    former = _former(own, args, kwargs, False)
    if former is not None:
        return former
    if len(overloads) == 1:
        return resolve(overloads, args, kwargs)
    raise _refused(None, overloads, args, given, False, False)


_FACTORS = ("alpha", "value")  # of the second tensor; beta is that of the first


def _former(
    overloads: Sequence[Operator], args: tuple, kwargs: dict, method: bool, inplace: bool = False
) -> tuple[Operator, tuple] | None:
    """The overload of a call with factors before the tensors that they multiply: `addmm(beta, self, alpha, mat1, mat2)`."""
    for op in overloads:
        if "factors_first" not in op.tags:
            continue
        first, *others = [p.name for p in op.params if not p.keyword]
        factors = [p.name for p in op.params if p.keyword]
        beta = ["beta"] if "beta" in factors else []
        factor = [name for name in _FACTORS if name in factors]
        for order in ([*beta, first, *factor, *others], [*beta, first, *others]):
            if method:  # the tensor is what the method is called on
                order = [first, *(name for name in order if name != first)]
            if len(order) != len(args) or order == [first, *others]:
                continue
            given = dict(zip(order, args))
            if not all(_is_number(given[name]) for name in (*beta, *factor) if name in given):
                continue
            named = {name: value for name, value in given.items() if name in factors}
            try:
                bound = bind(op, tuple(given[name] for name in (first, *others)), {**kwargs, **named}, method)
            except (Mismatch, _Unfit):
                continue
            shown = ", ".join("input" if name == "self" else name for name in order)
            name = called(op, inplace)
            warn_once(
                f"This overload of {name} is deprecated:\n\t{name}({shown})\nConsider using one of the following signatures instead:\n"
                f"\t{op}",
                stacklevel=4,
            )
            return op, bound
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (Number, np.generic)) or (isinstance(value, Tensor) and not value.dim())


class _Required:
    """Class of REQUIRED: the default of a parameter that has none, where it may be given under another spelling."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


def respelled(op: Operator, values: tuple, spellings: dict) -> tuple:
    """The arguments of a call with numpy's spellings (`axis=1`) put in their place. TypeError for an unknown name."""
    found = list(values)
    names = [p.name for p in op.params]
    for spelling, value in spellings.items():
        meant = _SPELLINGS.get(spelling)
        if meant not in names:
            raise TypeError(f"{op.name}() got an unexpected keyword argument '{spelling}'")
        found[names.index(meant)] = value
    return tuple(found)


class _Unfit(Exception):
    """The number or names of the arguments do not fit."""


def bind(op: Operator, args: tuple, kwargs: dict, method: bool) -> tuple:
    """The arguments in the order of `op.params`, converted. Raises Mismatch or _Unfit."""
    params = op.params
    positional = [p for p in params if not p.keyword]
    args = _gather_varargs(positional, args, kwargs, method)
    if len(args) > len(positional):
        raise _Unfit(
            f"takes {len(positional)} positional argument{'s' if len(positional) != 1 else ''} but {len(args)} were given"
        )
    bound = []
    used = 0
    for position, param in enumerate(params):
        if not param.keyword and position < len(args):
            if param.name in kwargs:
                raise _Unfit(f"got multiple values for argument '{param.name}'")
            value = args[position]
        else:
            value, found = _keyword(param, kwargs)
            if not found:
                if param.required:
                    raise _Unfit(f'missing 1 required positional arguments: "{_shown(param)}"')
                bound.append(param.default)
                continue
            used += 1
            if value is None and not param.required and not param.optional:
                bound.append(param.default)
                continue
        bound.append(convert_one(op, param, value, position))
    if used < len(kwargs):
        known = {p.name for p in params}
        for name in kwargs:
            if name not in known and _SPELLINGS.get(name) not in known:
                raise _Unfit(f"got an unexpected keyword argument '{name}'")
        raise _Unfit("got an argument twice")
    return tuple(bound)


def _shown(param: Param) -> str:
    return "input" if param.name == "self" else param.name


def _keyword(param: Param, kwargs: dict) -> tuple[Any, bool]:
    name = param.name
    if name in kwargs:
        return kwargs[name], True
    for spelling, meant in _SPELLINGS.items():
        if meant == name and spelling in kwargs:
            return kwargs[spelling], True
    return None, False


def _gather_varargs(positional: list[Param], args: tuple, kwargs: dict, method: bool) -> tuple:
    """`view(2, 3)` as `view((2, 3))`, where the only parameter is a list of ints."""
    skip = 1 if method else 0
    own = positional[skip:]
    if len(own) != 1 or not own[0].is_list or own[0].type not in _INT_TYPES:
        return args
    given = args[skip:]
    if not given:
        if own[0].required and own[0].name not in kwargs and len(args) == skip and method and own[0].size is None:
            return args
        return args
    first = given[0]
    if isinstance(first, (tuple, list)) or (isinstance(first, Tensor) and first.dim() != 0):
        return args
    if first is None or len(given) == 1 and own[0].size is not None:
        return args
    return (*args[:skip], given)
