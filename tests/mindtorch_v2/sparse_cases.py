"""Calls of sparse tensors, as text, for test_sparse.py and for recording what PyTorch says of them (tests/record_sparse.py)."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from pathlib import Path
from typing import Any


class Names:
    """What the calls may name, of one torch."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.copy, self.pickle = copy, pickle
        self.S, self.C, self.T = torch.sparse_coo_tensor, torch.sparse_csr_tensor, torch.tensor
        self.D = torch.arange(9.0).reshape(3, 3) + 1

    def A(self, grad: bool = False) -> Any:
        """Sorted coordinates that nobody has called sorted."""
        return self.S([[0, 0, 1, 2], [1, 2, 0, 1]], self.T([1.0, 2, 3, 4]), (3, 3), requires_grad=grad)

    def U(self, grad: bool = False) -> Any:
        """Coordinates in no order, of which one stands twice."""
        return self.S([[0, 2, 0, 0], [1, 1, 1, 0]], self.T([1.0, 2, 3, 4]), (3, 3), requires_grad=grad)

    def H(self, grad: bool = False) -> Any:
        """One sparse dimension and a dense one."""
        return self.S([[2, 0, 2]], self.T([[1.0, 2], [3, 4], [5, 6]]), (3, 2), requires_grad=grad)

    def R(self, grad: bool = False) -> Any:
        """Rows."""
        return self.C([0, 2, 3, 4], [1, 2, 0, 1], self.T([1.0, 2, 3, 4]), (3, 3), requires_grad=grad)

    def d(self) -> Any:
        """A dense leaf."""
        return self.D.clone().requires_grad_()

    def g(self, function: Any, *leaves: Any) -> tuple:
        """A result, and the gradients of a weighted sum of its elements."""
        result = function(*leaves)
        dense = result.to_dense() if result.layout != self.torch.strided else result
        weights = self.torch.arange(1.0, dense.numel() + 1).reshape(dense.shape)
        (dense * weights).sum().backward()
        return result, [leaf.grad for leaf in leaves]

    def acc(self, kinds: str, twice: bool = False) -> Any:
        """What a leaf has after gradients of these kinds (sparse, unsorted, dense) arrived, in one pass or in several."""
        torch, names = self.torch, self

        class Given(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, kind: str) -> Any:
                ctx.kind = kind
                return x.clone()

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return {"s": names.A, "u": names.U}.get(ctx.kind, lambda: grad)(), None

        leaf = torch.zeros(3, 3, requires_grad=True)
        if twice:
            for kind in kinds:
                Given.apply(leaf, kind).sum().backward()
        else:
            sum(Given.apply(leaf, kind) for kind in kinds).sum().backward()
        return leaf.grad

    def emb(self, optimizer: Any = None, mode: str | None = None, pad: int | None = None, steps: int = 1) -> tuple:
        """The gradient and the weight of a table after some steps."""
        torch = self.torch
        torch.manual_seed(0)
        if mode is None:
            module = torch.nn.Embedding(6, 2, sparse=True, padding_idx=pad)
        else:
            module = torch.nn.EmbeddingBag(6, 2, sparse=True, mode=mode, padding_idx=pad)
        made = optimizer(list(module.parameters())) if optimizer else None
        for _ in range(steps):
            if made is not None:
                made.zero_grad()
            out = module(self.T([[1, 2, 1], [5, 1, 0]]))
            (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
            if made is not None:
                made.step()
        return module.weight.grad, module.weight.detach()

    def rt(self, value: Any, **options: Any) -> Any:
        """What is read of what was saved."""
        file = io.BytesIO()
        self.torch.save(value, file)
        file.seek(0)
        return self.torch.load(file, **options)


def outcome(names: Names, call: str) -> Any:
    """How the result prints, or the class and the beginning of the message of an error."""
    space = {name: getattr(names, name) for name in dir(names) if not name.startswith("__")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(call, space))
        except Exception as error:  # noqa: BLE001 (which one is what is asked)
            return [type(error).__name__, str(error).partition(" This could be")[0]]


CASES = (Path(__file__).parent / "data" / "sparse_calls.txt").read_text(encoding="utf-8").splitlines()
