"""`torch.autograd.Function`: operations whose derivative a user writes."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._dispatch import ops
from .._state import TLS
from .._tensor import Tensor, bump_version, counter, version, wrap
from .inplace import rebase_history
from .keeping import keep, keep_output
from .node import Node, attach_many, edge


class FunctionCtx:
    """What `forward` leaves for `backward`."""

    _to_save: tuple | None = None
    _to_push: tuple = ()
    _pushing = False  # while jvp runs
    _non_differentiable: tuple = ()
    _dirty: tuple = ()
    _materialize = True
    _materialize_non_diff_grads = True
    needs_input_grad: tuple = ()

    if TYPE_CHECKING:
        _node: Any
    _node = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Save inputs or outputs (or None); `saved_tensors` gives them back in `backward`."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save inputs or outputs (or None); `saved_tensors` gives them back in `jvp`."""
        self._to_push = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` changed in place."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs get no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether absent gradients arrive in `backward` as zeros (the default) or as None."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple:
        if self._pushing:
            return self._to_push
        if self._node is None:
            return tuple(self._to_save or ())
        return tuple(self._node.unpack())


class CustomNode(Node):
    """The node of a user's Function; each has a subclass of its own. What the user left in the ctx are attributes of it too."""

    __slots__ = ()
    runs_on_nothing = True

    def __getattr__(self, name: str) -> Any:
        consts = None if name in ("consts", "extras", "outputs", "edges", "saved") else self.consts
        if consts is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(consts[1], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _NODE_SLOTS:
            object.__setattr__(self, name, value)
        else:
            setattr(self.consts[1], name, value)

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.name()} object at {id(self):#x}>"

    def apply(self, grads: tuple) -> tuple:
        """Call the user's `backward`, and line its results up with the tensor inputs."""
        function, ctx, positions, total, differentiable = self.consts
        given_grads = self.materialize(grads) if ctx._materialize else grads
        if not ctx._materialize_non_diff_grads:
            given_grads = [given_grads[i] if i in differentiable else grads[i] for i in range(len(grads))]
        given = _backward_of(function)(ctx, *given_grads)
        if not isinstance(given, tuple):
            given = (given,) if not isinstance(given, list) else tuple(given)
        if len(given) > total:
            if any(extra is not None for extra in given[total:]):
                raise RuntimeError(
                    f"function {self.name()} returned an incorrect number of gradients (expected {total}, got {len(given)})"
                )
        elif len(given) < total:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {total}, got {len(given)})"
            )
        for value in given:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"expected Variable or None (got {type(value).__name__})")
        return tuple(given[position] for position in positions)

    @property
    def _raw_saved_tensors(self) -> tuple:
        return Node.reader.raw(self)


_NODE_SLOTS = frozenset(("edges", "saved", "consts", "outputs", "extras", "label", "_metadata"))


def _backward_of(function: type) -> Callable:
    own = function.backward is not Function.backward
    vjp = function.vjp is not Function.vjp
    if own and vjp:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
        )
    return function.vjp if vjp else function.backward


class _FunctionMeta(type):
    def __init__(cls, name: str, bases: tuple, namespace: dict):
        super().__init__(name, bases, namespace)
        cls._ctx_class = type(name + "Backward", (FunctionCtx,), {})
        cls._backward_cls = type(name + "Backward", (CustomNode,), {"__slots__": (), "_forward_cls": cls})


class Function(metaclass=_FunctionMeta):
    """Subclass with static methods `forward(ctx, *args)` and `backward(ctx, *grads)`; call `apply`.

    With a static method `setup_context(ctx, inputs, output)`, `forward` takes no ctx.
    """

    _ctx_class: type
    _backward_cls: type
    generate_vmap_rule = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Save what `backward` needs, where `forward` takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """The operation on a batch of arguments."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set generate_vmap_rule=True."
        )

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`, and record `backward` when an input requires grad."""
        ctx = cls._ctx_class()
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args, kwargs = _with_defaults(cls, args, kwargs), {}
        edges = []
        positions = []
        needs = []
        for position, value in enumerate(args):
            if isinstance(value, Tensor):
                one = edge(value) if TLS.grad_enabled else None
                edges.append(one)
                positions.append(position)
                needs.append(one is not None)
            else:
                needs.append(False)
        ctx.needs_input_grad = tuple(needs)
        recorded = any(needs)
        profiler = TLS.profiler
        about = None if profiler is None else profiler.open(cls.__name__, "cpu_op", 0)
        before, tangents = TLS.grad_enabled, TLS.tangents
        TLS.grad_enabled = False
        if tangents is not None:
            TLS.tangents = type(tangents)()  # the level is there, the tangents are not
        try:
            if separate:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        finally:
            TLS.grad_enabled, TLS.tangents = before, tangents
            if profiler is not None:
                profiler.close(about)
        for tensor in ctx._dirty:
            bump_version(tensor)
        if recorded:
            output = _record(cls, ctx, args, output, tuple(edges), tuple(positions))
        elif tangents is not None:  # an argument that comes back has the tangent that jvp says
            output = _apart(output, args, ctx._dirty)
        if tangents is not None:
            _push_tangents(cls, ctx, args, output, tangents)
        return output


def _apart(output: Any, args: tuple, dirty: tuple) -> Any:
    """The outputs with views in the place of arguments that were not changed in place."""
    own = {id(a) for a in args if isinstance(a, Tensor)} - {id(t) for t in dirty}

    def one(value: Any) -> Any:
        return _own_view(value) if id(value) in own else value

    return type(output)(map(one, output)) if isinstance(output, (tuple, list)) else one(output)


def _push_tangents(cls: Any, ctx: Any, args: tuple, output: Any, tangents: Any) -> None:
    """Give the outputs the tangents that the user's `jvp` makes of those of the arguments."""
    given = [tangents.of(a) if isinstance(a, Tensor) else None for a in args]
    if not tangents.enabled or all(g is None for g in given):
        return
    if ctx._materialize:
        given = [
            ops.zeros_like(a).detach() if g is None and isinstance(a, Tensor) and a._dtype.category > 1 else g
            for a, g in zip(args, given)
        ]
    versions = {id(g): version(g) for g in given if g is not None}
    ctx._pushing = True
    try:
        moved = cls.jvp(ctx, *given)
    finally:
        ctx._pushing = False
    moved = tuple(moved) if isinstance(moved, (tuple, list)) else (moved,)
    outputs = tuple(output) if isinstance(output, (tuple, list)) else (output,)
    if len(moved) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got {len(moved)})"
        )
    dirty = {id(t) for t in ctx._dirty}
    silent = {id(t) for t in ctx._non_differentiable}
    for number, (result, tangent) in enumerate(zip(outputs, moved)):
        if tangent is None or not isinstance(result, Tensor):
            continue
        if id(result) in silent or result._dtype.category < 2:
            raise RuntimeError(
                f"Function's jvp gave a forward gradient for output {number}, which is not differentiable. You should return None at that "
                "position instead."
            )
        if not isinstance(tangent, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {number}.")
        if tangent.shape != result.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor "
                f"is of size {list(result.shape)} while the given forward gradient is of size {list(tangent.shape)}."
            )
        before = tangents.own(result) if id(result) in dirty else None
        if before is not None and (tangent is not before or version(tangent) == versions.get(id(tangent))):
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input "
                "inplace, then the jvp function must modify the corresponding gradient inplace."
            )
        tangents.set(result, tangent)


def _record(cls: Any, ctx: Any, args: tuple, output: Any, edges: tuple, positions: tuple) -> Any:
    single = not isinstance(output, (tuple, list))
    outputs = [output] if single else list(output)
    node = cls._backward_cls()
    node.label = cls.__name__ + "Backward"
    node.edges = edges
    dirty = {id(t) for t in ctx._dirty}
    silent = {id(t) for t in ctx._non_differentiable}
    inputs = {id(a) for a in args if isinstance(a, Tensor)}
    _check_dirty(dirty, inputs, outputs)
    if len(outputs) > 1 and any(tensor._base is not None for tensor in ctx._dirty):
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. This "
            "is not supported by the current autograd engine. You should either make sure the input is not a view (using .clone() for example) "
            "or make your Function only return one Tensor (potentially splitting it into two Functions: one doing the inplace that returns a "
            "single Tensor and a second one that does the other operations). You can ask on the forum https://discuss.pytorch.org/ if you need "
            "help to do this change."
        )
    results: list = []
    views: list[Tensor] = []
    numbers = []
    for value in outputs:
        if isinstance(value, Tensor) and id(value) not in silent and _can_require(value):
            if id(value) not in dirty and (id(value) in inputs or value._base is not None):
                value = _own_view(value)
                views.append(value)
            numbers.append(len(results))
        results.append(value)
    for view in views:
        view._multi_view = "function" if len(numbers) == 1 else True
    # What is no tensor has a place among the outputs too, at which no gradient arrives.
    tensors = [r if isinstance(r, Tensor) else None for r in results]
    chosen = tuple(numbers)
    node.consts = (cls, ctx, positions, len(args), chosen)
    attach_many(tensors, node, chosen)
    made_here = {id(t): i for i, t in enumerate(tensors) if t is not None}
    saved = []
    for value in ctx._to_save or ():
        if value is None:
            saved.append(None)
        elif id(value) in made_here and id(value) not in inputs:
            saved.append(keep_output(value, made_here[id(value)]))
        else:
            saved.append(keep(value))
    node.saved = saved
    for tensor in ctx._dirty:
        if tensor._node is node:
            rebase_history(tensor, node)
    ctx._to_save = None
    ctx._node = _Weak(node)
    return results[0] if single else type(output)(results) if isinstance(output, list) else tuple(results)


def _check_dirty(dirty: set[int], inputs: set[int], outputs: list) -> None:
    if dirty - inputs:
        warnings.warn(
            "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to pass it to mark_dirty().",
            stacklevel=4,
        )
    if dirty - {id(value) for value in outputs}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must "
            "all be outputs of the Function."
        )


def _with_defaults(cls: Any, args: tuple, kwargs: dict) -> tuple:
    """The arguments of `forward` in order, with the defaults of those that were not given: `setup_context` gets them all."""
    forward = cls.forward
    code = getattr(forward, "__code__", None)
    if not kwargs and (code is None or (len(args) >= code.co_argcount and not code.co_kwonlyargcount)):
        return args
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _own_view(value: Tensor) -> Tensor:
    """A view that `forward` returns, as a tensor whose history is the Function's.

    It is no view of its base any more, or an in-place change would take its history from the base's and lose the user's `backward`: such changes,
    also of its own views, are refused. The version is still the base's.
    """
    made = wrap(value._payload, value._dtype)
    made._shares = counter(value)
    return made


class _Weak:
    """The node of a ctx, without a cycle: the node refers to the ctx."""

    __slots__ = ("reference",)

    def __init__(self, node: Node):
        import weakref

        self.reference = weakref.ref(node)

    def unpack(self) -> list:
        node = self.reference()
        if node is None:
            raise RuntimeError("the graph of this function is gone")
        return node.unpack()


def _can_require(value: Tensor) -> bool:
    return value._dtype.is_floating_point or value._dtype.is_complex


def once_differentiable(fn: Callable) -> Callable:
    """Decorates a `backward` that cannot itself be differentiated."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        before = TLS.grad_enabled
        TLS.grad_enabled = False
        try:
            outputs = fn(ctx, *args)
        finally:
            TLS.grad_enabled = before
        if not TLS.grad_enabled or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        values = (outputs,) if single else outputs
        node = _Undifferentiable()
        # The results as leaves, so that a pass comes as far as this node whatever the arguments were.
        node.edges = tuple(
            edge(wrap(v._payload, v._dtype).requires_grad_()) if _may_require(v) else None for v in values
        )
        node.saved = node.consts = None
        tensors = [wrap(v._payload, v._dtype) if isinstance(v, Tensor) else v for v in values]
        attach_many([t if isinstance(t, Tensor) else None for t in tensors], node)
        return tensors[0] if single else tuple(tensors)

    return wrapper


def _may_require(value: Any) -> bool:
    return isinstance(value, Tensor) and _can_require(value)


class _Undifferentiable(Node):
    __slots__ = ()

    def apply(self, grads: tuple) -> tuple:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


_Undifferentiable.__name__ = "Error"  # as graphs show it
