"""Steps of optimizers as functions that are compared with PyTorch's: calls that tests/record_nn.py evaluates there, and
test_optim_functions.py here."""

from __future__ import annotations

import importlib

_REAL = "float32 float64"
_ALL = f"{_REAL} complex64"
# The dtypes, the call of a step with lists `a`, `b`, `c` of zeros and others that `run_function` makes, and the class that does the same.
_CALLS = [
    (
        _ALL,
        "adam(p, g, a, b, [], n, amsgrad=False, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0, eps=1e-8, maximize=False) | Adam(p, 0.1, (0.8, 0.9), 1e-8, 0, False, maximize=False)",
    ),
    (
        _ALL,
        "adam(p, g, a, b, c, n, amsgrad=True, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0.1, eps=1e-8, maximize=True) | Adam(p, 0.1, (0.8, 0.9), 1e-8, 0.1, True, maximize=True)",
    ),
    (
        "float32",
        "adam(p, g, a, b, [], n, amsgrad=False, beta1=0.8, beta2=0.9, lr=torch.tensor(0.1), weight_decay=0, eps=1e-8, maximize=False) | Adam(p, torch.tensor(0.1), (0.8, 0.9), 1e-8, 0, False, maximize=False)",
    ),
    (
        "float32",
        "adam(p, g, a, b, [], n, amsgrad=False, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0.1, eps=1e-8, maximize=False, foreach=True) | Adam(p, 0.1, (0.8, 0.9), 1e-8, 0.1, False, maximize=False, foreach=True)",
    ),
    (
        "float32",
        "adam(p, g, a, b, [], n, amsgrad=False, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0.1, eps=1e-8, maximize=False, fused=True) | Adam(p, 0.1, (0.8, 0.9), 1e-8, 0.1, False, maximize=False, fused=True)",
    ),
    (
        _ALL,
        "adamw(p, g, a, b, [], n, amsgrad=False, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0.1, eps=1e-8, maximize=False) | AdamW(p, 0.1, (0.8, 0.9), 1e-8, 0.1, False, maximize=False)",
    ),
    (
        _ALL,
        "adamw(p, g, a, b, c, n, amsgrad=True, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0.1, eps=1e-8, maximize=True) | AdamW(p, 0.1, (0.8, 0.9), 1e-8, 0.1, True, maximize=True)",
    ),
    (
        "float32",
        "adam(p, g, a, b, [], n, amsgrad=False, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0.1, eps=1e-8, maximize=False, decoupled_weight_decay=True) | AdamW(p, 0.1, (0.8, 0.9), 1e-8, 0.1, False, maximize=False)",
    ),
    (
        _ALL,
        "sgd(p, g, new, weight_decay=0, momentum=0, lr=0.1, dampening=0, nesterov=False, maximize=False) | SGD(p, 0.1, 0, 0, 0, False, maximize=False)",
    ),
    (
        _ALL,
        "sgd(p, g, new, weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.1, nesterov=False, maximize=True) | SGD(p, 0.1, 0.9, 0.1, 0.1, False, maximize=True)",
    ),
    (
        _ALL,
        "sgd(p, g, new, weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0, nesterov=True, maximize=False) | SGD(p, 0.1, 0.9, 0, 0.1, True, maximize=False)",
    ),
    (
        "float32",
        "sgd(p, g, new, weight_decay=0.1, momentum=0.9, lr=torch.tensor(0.1), dampening=0, nesterov=True, maximize=False) | SGD(p, torch.tensor(0.1), 0.9, 0, 0.1, True, maximize=False)",
    ),
    (
        "float32",
        "sgd(p, g, new, weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0, nesterov=False, maximize=False, fused=True) | SGD(p, 0.1, 0.9, 0, 0.1, False, maximize=False, fused=True)",
    ),
    (
        "float32",
        "sgd(p, g, new, weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0, nesterov=False, maximize=False, foreach=True) | SGD(p, 0.1, 0.9, 0, 0.1, False, maximize=False, foreach=True)",
    ),
    (
        _ALL,
        "adagrad(p, g, a, n, lr=0.1, weight_decay=0.1, lr_decay=0.2, eps=1e-10, maximize=True) | Adagrad(p, 0.1, 0.2, 0.1, maximize=True)",
    ),
    (
        _ALL,
        "adadelta(p, g, a, b, n, lr=0.5, rho=0.8, eps=1e-6, weight_decay=0.1, maximize=True) | Adadelta(p, 0.5, 0.8, weight_decay=0.1, maximize=True)",
    ),
    (
        _ALL,
        "adamax(p, g, a, b, n, maximize=True, eps=1e-8, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0.1) | Adamax(p, 0.1, (0.8, 0.9), weight_decay=0.1, maximize=True)",
    ),
    (
        _ALL,
        "asgd(p, g, a, one, rate, n, maximize=True, lambd=0.01, lr=0.1, t0=1, alpha=0.5, weight_decay=0.1) | ASGD(p, 0.1, 0.01, 0.5, 1, 0.1, maximize=True)",
    ),
    (
        _ALL,
        "nadam(p, g, a, b, one, n, maximize=True, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0.1, momentum_decay=0.01, eps=1e-8) | NAdam(p, 0.1, (0.8, 0.9), 1e-8, 0.1, 0.01, maximize=True)",
    ),
    (
        "float32",
        "nadam(p, g, a, b, one, n, True, beta1=0.8, beta2=0.9, lr=0.1, weight_decay=0.1, momentum_decay=0.01, eps=1e-8) | NAdam(p, 0.1, (0.8, 0.9), 1e-8, 0.1, 0.01, True)",
    ),
    (
        _ALL,
        "radam(p, g, a, b, n, maximize=True, beta1=0.8, beta2=0.99, lr=0.1, weight_decay=0.1, eps=1e-8) | RAdam(p, 0.1, (0.8, 0.99), 1e-8, 0.1, maximize=True)",
    ),
    (
        "float32",
        "radam(p, g, a, b, n, True, beta1=0.8, beta2=0.99, lr=0.1, weight_decay=0.1, eps=1e-8) | RAdam(p, 0.1, (0.8, 0.99), 1e-8, 0.1, True)",
    ),
    (
        _ALL,
        "rmsprop(p, g, a, [], [], n, maximize=True, lr=0.1, alpha=0.8, eps=1e-8, weight_decay=0.1, momentum=0, centered=False) | RMSprop(p, 0.1, 0.8, 1e-8, 0.1, 0, False, maximize=True)",
    ),
    (
        _ALL,
        "rmsprop(p, g, a, b, c, n, maximize=True, lr=0.1, alpha=0.8, eps=1e-8, weight_decay=0.1, momentum=0.9, centered=True) | RMSprop(p, 0.1, 0.8, 1e-8, 0.1, 0.9, True, maximize=True)",
    ),
    (
        _ALL,
        "rprop(p, g, a, size, n, maximize=True, step_size_min=1e-6, step_size_max=50, etaminus=0.5, etaplus=1.2) | Rprop(p, 0.1, maximize=True)",
    ),
    (
        _REAL,
        "adafactor(p, g, row, col, vector, n, d=1.0, lr=0.1, beta2_decay=-0.8, weight_decay=0.1, eps1=None, eps2=1e-3, maximize=True) | Adafactor(p, 0.1, weight_decay=0.1, maximize=True)",
    ),
    (
        _REAL,
        "muon(p, g, a, lr=0.1, weight_decay=0.1, momentum=0.9, nesterov=True, ns_coefficients=(3.4445, -4.775, 2.0315), ns_steps=5, eps=1e-7, adjust_lr_fn=None, has_complex=False) | Muon(p, 0.1, 0.1, 0.9)",
    ),
]
FUNCTIONS = [(dtype, expression) for dtypes, expression in _CALLS for dtype in dtypes.split()]

FUNCTION_MODULES = (
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "_adafactor",
    "_muon",
)


def run_function(torch, dtype, expression, steps=4, twin=False):
    """Parameters and state after steps of an optimizer's function, by names; with twin, of its class in place of it.

    A class is made by the part of the expression after `|`, and keeps its own state.
    """
    call, made = (part.strip() for part in expression.split("|"))
    torch.manual_seed(3)

    def tensors():
        # The matrix alone is what Muon takes.
        shapes = [(5, 3)] if call.startswith("muon") else [(5, 3), (7,)]
        parts = [(torch.randn(shape), torch.randn(shape)) for shape in shapes]
        made = [torch.complex(*pair) if dtype == "complex64" else pair[0] for pair in parts]
        return [tensor.to(getattr(torch, dtype)) for tensor in made]

    p = tensors()
    scope = {"torch": torch, "p": p, "q": [torch.nn.Parameter(tensor.clone()) for tensor in p]}
    state = {name: [torch.zeros_like(tensor) for tensor in p] for name in ("a", "b", "c")}
    state["n"] = [torch.tensor(0.0) for _ in p]
    state["one"] = [torch.tensor(1.0) for _ in p]
    state["rate"] = [torch.tensor(0.1) for _ in p]
    state["size"] = [torch.full_like(tensor, 0.1 + 0.1j if tensor.is_complex() else 0.1) for tensor in p]
    state["new"] = [None for _ in p]
    state["row"] = [tensor.new_zeros((5, 1)) if tensor.dim() == 2 else None for tensor in p]
    state["col"] = [tensor.new_zeros((1, 3)) if tensor.dim() == 2 else None for tensor in p]
    state["vector"] = [None if tensor.dim() == 2 else torch.zeros_like(tensor) for tensor in p]
    used = [name for name in state if f" {name}," in call]
    for name in FUNCTION_MODULES:
        scope[name.strip("_")] = getattr(importlib.import_module(f"{torch.__name__}.optim.{name}"), name.strip("_"))
    optimizer = eval(made, {**vars(torch.optim), "torch": torch, "p": scope["q"]}) if twin else None
    for _ in range(steps):
        g = tensors()
        if optimizer is None:
            eval(call, {**scope, **state, "g": g})
        else:
            for parameter, grad in zip(scope["q"], g, strict=True):
                parameter.grad = grad
            optimizer.step()
    outcome = {"p": scope["q"] if twin else p}
    if not twin:
        outcome.update({name: [tensor for tensor in state[name] if tensor is not None] for name in used})
    return {
        name: [torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach() for tensor in found]
        for name, found in outcome.items()
    }
