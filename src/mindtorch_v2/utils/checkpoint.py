"""Checkpointing: part of a model keeps only its inputs, and is computed again when the backward pass needs the rest."""

from __future__ import annotations

import contextlib
import importlib
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import mindtorch_v2 as mt
from mindtorch_v2 import amp

from .._autograd.engine import Walk
from .._state import TLS
from ..amp import _state as autocast_state
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "DefaultDeviceType",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_SELECTIVE = (
    "CheckpointPolicy",
    "SAC_IGNORED_OPS",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
)


def __getattr__(name: str) -> Any:
    if name in _SELECTIVE:  # which know operators by their overloads: not imported for others
        return getattr(importlib.import_module(f"{__package__}._selective"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


_DEFAULT_DETERMINISM_MODE = "default"
_debug_enabled: bool | None = None
_early_stop = True
ContextFn = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


class CheckpointError(RuntimeError):
    """What was computed again is not what the forward pass has saved."""


class DefaultDeviceType:
    """The kind of device whose generators are kept when no argument says which."""

    _default_device_type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cpu") -> None:
        """Set the kind of device."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The kind of device."""
        return DefaultDeviceType._default_device_type


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Override the `debug` argument of `checkpoint` for a block; None does not override."""
    global _debug_enabled
    before = _debug_enabled
    _debug_enabled = enabled
    try:
        yield
    finally:
        _debug_enabled = before


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether, for calls in the block, computing again stops as soon as everything that is needed is there."""
    global _early_stop
    before = _early_stop
    _early_stop = enable
    try:
        yield
    finally:
        _early_stop = before


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Two contexts that do nothing, for the forward pass and for computing again."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, tensors without their history but wanting gradients as before.

    Raises:
        RuntimeError: if `inputs` is no tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    detached = []
    for value in inputs:
        if isinstance(value, mt.Tensor):
            wanted = value.requires_grad
            value = value.detach()
            value.requires_grad = wanted
        detached.append(value)
    return tuple(detached)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input wants a gradient."""
    if not any(value.requires_grad for value in inputs if isinstance(value, mt.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def _infer_device_type(*args: Any) -> str:
    """The kind of the accelerator on which arguments lie, in containers too; the default kind if none does, "meta" for meta tensors alone."""
    kinds: list[str] = []
    tree_map(lambda value: kinds.append(value.device.type) if isinstance(value, mt.Tensor) else None, args)
    found = dict.fromkeys(kind for kind in kinds if kind != "cpu")
    if len(found) > 1:
        warnings.warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two types of devices. Device state will only be saved for devices "
            "of a single device type, and the remaining devices will be ignored. Consequently, if any checkpointed functions involve randomness, "
            f"this may result in incorrect gradients.\nDevice types: {sorted(found)} first device type: {next(iter(found))}",
            stacklevel=2,
        )
    return next(iter(found), DefaultDeviceType.get_device_type())


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The numbers and generator states of the accelerators on which arguments lie; none for CPU tensors."""
    devices: dict[int, Any] = {}
    for value in args:
        if isinstance(value, mt.Tensor) and value.device.type not in ("cpu", "meta"):
            module = getattr(mt, value.device.type)
            number = value.device.index or 0
            if number not in devices:
                devices[number] = module.get_rng_state(number)
    return list(devices), list(devices.values())


def set_device_states(devices: list[int], states: list[Any], *, device_type: str | None = None) -> None:
    """Put back what `get_device_states` has given."""
    module: Any = getattr(mt, device_type or DefaultDeviceType.get_device_type(), None)
    for number, state in zip(devices, states, strict=True):
        module.set_rng_state(state, number)


class _Surroundings:
    """Generator states and autocast settings of the forward pass, which computing again needs once more."""

    def __init__(self, args: tuple[Any, ...], preserve_rng_state: bool) -> None:
        self.preserve = preserve_rng_state
        self.kind = next(
            (a.device.type for a in args if isinstance(a, mt.Tensor) and a.device.type not in ("cpu", "meta")), None
        )
        if preserve_rng_state:
            self.cpu_state = mt.get_rng_state()
            self.devices, self.states = get_device_states(*args) if self.kind else ([], [])
        self.autocast = [
            (kind, autocast_state.get_autocast_dtype(kind), autocast_state.is_autocast_enabled(kind))
            for kind in ("cpu", self.kind)
            if kind is not None
        ]
        self.cache_enabled = autocast_state.is_autocast_cache_enabled()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """The surroundings of the forward pass; afterwards those of the caller are back."""
        with contextlib.ExitStack() as stack:
            if self.preserve:
                stack.callback(mt.set_rng_state, mt.get_rng_state())
                mt.set_rng_state(self.cpu_state)
                if self.kind:
                    module = getattr(mt, self.kind)
                    for number, state in zip(self.devices, self.states, strict=True):
                        stack.callback(module.set_rng_state, module.get_rng_state(number), number)
                        module.set_rng_state(state, number)
            for kind, dtype, enabled in self.autocast:
                stack.enter_context(amp.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=self.cache_enabled))
            yield


class CheckpointFunction(mt.autograd.Function):
    """The reentrant variant: a custom function whose backward runs the part, and a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run the part without recording anything."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(args, preserve_rng_state)
        ctx.inputs = [None if isinstance(value, mt.Tensor) else value for value in args]
        ctx.tensor_indices = [i for i, value in enumerate(args) if isinstance(value, mt.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_indices))
        with mt.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Run the part again, and go back through it. RuntimeError in a pass that goes to some inputs only."""
        if not TLS.whole_backward:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward(). "
                "To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[i] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.surroundings.again(), mt.enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, mt.Tensor):
            outputs = (outputs,)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, args, strict=True)
            if isinstance(output, mt.Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        mt.autograd.backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(value.grad if isinstance(value, mt.Tensor) else None for value in detached))


# ------------------------------------------------------------------------------------------- the variant without reentry


class _Place:
    """Stands in the graph for a tensor that will be computed again."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class _Enough(Exception):
    """Everything that is needed has been computed again."""


def _metadata(tensor: Any) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _Log:
    """The operators of a forward pass and of computing it again, for the message of an error."""

    def __init__(self) -> None:
        self.passes: tuple[list[str], list[str]] = ([], [])

    def contexts(self) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        """What notes operators in the forward pass, and when it is computed again."""
        return tuple(_Noting(calls) for calls in self.passes)  # pyright: ignore[reportReturnType]

    def report(self) -> str:
        """What was noted."""
        parts = [
            "\n\nYou are seeing this error because you passed `debug=True` to checkpoint and some tensors to be saved during the original "
            "forward and differ between those saved during recomputation. This can happen if different operators were ran in the original "
            "forward and in the recomputation."
        ]
        for title, calls in zip(("original", "recompute"), self.passes):
            parts.append(f"Operators executed during {title}:\n" + "\n".join(f"  {call}" for call in calls))
        return "\n\n".join(parts)


class _Noting(TorchDispatchMode):
    def __init__(self, calls: list[str]) -> None:
        super().__init__()
        self.calls = calls

    def __enter__(self) -> Any:
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def shown(value: Any) -> str:
            return f"{value.dtype}{list(value.shape)}" if isinstance(value, mt.Tensor) else repr(value)

        result = func(*args, **(kwargs or {}))
        given = ", ".join([*map(shown, args), *(f"{name}={shown(value)}" for name, value in (kwargs or {}).items())])
        self.calls.append(f"{func}({given}) -> {shown(result)}")
        return result


class _Frame:
    """One call of `checkpoint`: the places in the graph, and how to compute what belongs there."""

    def __init__(self, run: Callable[[], Any], early_stop: bool, describe: Callable[[Any], Any] | None) -> None:
        self.run = run
        self.early_stop = early_stop
        self.describe = describe
        self.places: list[weakref.ref[_Place]] = []
        self.descriptions: list[Any] = []
        self.complete = False  # whether the forward pass has come to its end
        self.values: dict[Any, dict[int, Any]] = {}  # by backward pass, and place
        self.log: _Log | None = None

    def pack(self, tensor: Any) -> _Place:
        """Leave a place in the graph instead of a tensor."""
        place = _Place(len(self.places))
        self.places.append(weakref.ref(place))
        if self.describe is not None:
            self.descriptions.append(self.describe(tensor))
        return place

    def unpack(self, place: _Place) -> Any:
        """What belongs in a place: once in each backward pass, which computes everything again when it asks for the first time.

        RuntimeError for the second time.
        """
        passes = Walk.running()
        key = passes[0] if passes else object()
        if key not in self.values:
            self.values = {one: values for one, values in self.values.items() if one in passes}
            made = self._compute()
            if passes:
                self.values[key] = made
        else:
            made = self.values[key]
        if place.number not in made:
            raise RuntimeError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
                "ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with details on your use case."
            )
        return made.pop(place.number)

    def _compute(self) -> dict[int, Any]:
        made: dict[int, Any] = {}
        count = 0

        def pack(tensor: Any) -> Any:
            nonlocal count
            number = count
            count += 1
            if number < len(self.places) and self.places[number]() is not None:
                made[number] = tensor.detach()
            if self.early_stop and self.complete and count == len(self.places):
                raise _Enough
            if number >= len(self.places) and self.complete:
                raise self._error(
                    "trying to save more tensors during recomputation than during the original forward pass."
                )
            return tensor.detach()

        with (
            mt.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
            mt.enable_grad(),
            contextlib.suppress(_Enough),
        ):
            self.run()
        self._compare(made, count)
        return made

    def _error(self, words: str) -> CheckpointError:
        return CheckpointError("torch.utils.checkpoint: " + words + ("" if self.log is None else self.log.report()))

    def _compare(self, made: dict[int, Any], count: int) -> None:
        """Raise CheckpointError unless what was made fits the places."""
        # A pass within the forward pass computes what that has not come to yet.
        if count != len(self.places) and (self.complete or count < len(self.places)):
            raise self._error(
                "A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.places)}\n"
                f"Number of tensors saved during recomputation: {count}"
            )
        if self.describe is None:
            return
        wrong = [
            f"tensor at position {number}:\nsaved metadata: {self.descriptions[number]}\n"
            f"recomputed metadata: {self.describe(tensor)}"
            for number, tensor in made.items()
            if self.describe(tensor) != self.descriptions[number]
        ]
        if wrong:
            raise self._error(
                "Recomputed values for the following tensors have different metadata than during the forward pass.\n"
                + "\n".join(wrong)
            )


def _describer(determinism_check: str) -> Callable[[Any], Any] | None:
    known = {_DEFAULT_DETERMINISM_MODE: _metadata, "none": None}
    if determinism_check not in known:
        raise ValueError(f"determinism_check should be one of {list(known)}, but got {determinism_check}")
    return known[determinism_check]


def _checkpoint_without_reentry(
    fn: Callable[..., Any],
    preserve_rng_state: bool,
    context_fn: ContextFn,
    determinism_check: str,
    early_stop: bool,
    debug: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    describe = _describer(determinism_check)
    log = _Log() if debug else None
    if log is not None:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        context_fn = log.contexts
    forward_context, again_context = context_fn()
    surroundings = _Surroundings(args, preserve_rng_state)

    def again() -> None:
        with surroundings.again(), again_context:
            fn(*args, **kwargs)

    frame = _Frame(again, early_stop, describe)
    frame.log = log
    if not mt.is_grad_enabled():
        with forward_context:
            return fn(*args, **kwargs)
    with mt.autograd.graph.saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        result = fn(*args, **kwargs)
    frame.complete = True
    return result


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: ContextFn = noop_context_fn,
    determinism_check: str = _DEFAULT_DETERMINISM_MODE,
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Run `function` so that the backward pass computes its inner results again instead of keeping them.

    Args:
        function: the part of the model.
        args: its arguments.
        use_reentrant: True for the older variant (a custom function, positional arguments only), False for the one that is
            recommended; without it a warning is given and the older one taken.
        context_fn: gives two contexts, for the forward pass and for computing again.
        determinism_check: "default" compares shape, dtype and device of what was computed again; "none" does not.
        debug: note the operators, for the message of an error.
        early_stop: stop computing again as soon as everything that is needed is there.
        kwargs: `preserve_rng_state=True`, and arguments for `function` (not in the older variant).

    Raises:
        ValueError: for arguments that the chosen variant does not take.
        CheckpointError: in the backward pass, if what was computed again does not fit.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _checkpoint_without_reentry(
            function,
            preserve,
            context_fn,
            determinism_check,
            early_stop and _early_stop,
            debug if _debug_enabled is None else _debug_enabled,
            args,
            kwargs,
        )
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run modules one after the other, all but the last segment of them checkpointed.

    Args:
        functions: a `Sequential`, or a list of functions of one tensor.
        segments: into how many parts they are divided.
        input: the tensor to begin with.
        use_reentrant: as for `checkpoint`.
        kwargs: `preserve_rng_state=True`.

    Raises:
        ValueError: for other keyword arguments.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
            "In version 2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True. "
            "Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, mt.nn.Sequential):
        functions = list(functions.children())

    def run(part: Any) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for function in part:
                value = function(value)
            return value

        return forward

    size = len(functions) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        part = functions[start : start + size]
        input = checkpoint(run(part), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(functions[last:])(input)
