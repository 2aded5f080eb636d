"""`python -m codegen new NAME`: an entry to start from."""

from __future__ import annotations

_TEMPLATES = {
    "pointwise": """\
- func: {name}(Tensor self) -> Tensor
  variants: [function, method, inplace, out]
  meta: elementwise(self)
  grad: {{self: grad * {function}_derivative(self)}}
  kernels:
    cpu: pointwise.{function}
  tags: [pointwise]
""",
    "reduction": """\
- func: {name}(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
  variants: [function, method, out]
  meta: reduction(self, dim, keepdim, dtype=dtype, kind='sum')
  grad: {{self: "{function}_backward(grad, self.shape, dim, keepdim)"}}
  kernels:
    cpu: reduction.{function}
""",
    "view": """\
- func: {name}(Tensor(a) self, int dim) -> Tensor(a)
  variants: [function, method]
  meta: {function}(self, dim)
  grad: {{self: "{function}_backward(grad, self.shape, dim)"}}
""",
    "composite": """\
- func: {name}(Tensor self) -> Tensor
  variants: [function, method]
  composite: module.{function}
""",
}
KINDS = tuple(_TEMPLATES)


def skeleton(name: str, kind: str) -> str:
    """The text of an entry of one kind; `name` may have an overload."""
    return _TEMPLATES[kind].format(name=name, function=name.partition(".")[0])
