"""Tensors as a small model: elements in numpy, derivatives as whole matrices. See test_stateful.py.

Tensors that are views of each other are a family, which has one version and one history; those that are detached share memory and version alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class Refused(Exception):
    """What is an error; its text is a part of the sentence."""


class Memory:
    """Elements that tensors share."""

    def __init__(self, values: np.ndarray) -> None:
        self.elements = np.array(values, np.float64).ravel()
        self.size = self.elements.size


class Node:
    """One step of a history: what it needs as it was, and the steps before it."""

    def __init__(self, before: list[Node | None], kept: list[list[int]] = ()) -> None:  # type: ignore[assignment]
        self.before = [node for node in before if node is not None]
        self.kept = [(version, version[0]) for version in kept]

    def stale(self) -> bool:
        """Whether something that this step or one before it keeps has changed since."""
        seen: set[int] = set()
        todo = [self]
        while todo:
            node = todo.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if any(version[0] != at for version, at in node.kept):
                return True
            todo += node.before
        return False


class Family:
    """A tensor and its views: for each of their elements the derivatives by each leaf."""

    def __init__(self, size: int, version: list[int]) -> None:
        self.version = version
        self.node: Node | None = None
        self.rows: dict[int, np.ndarray] = {}
        self.size = size
        self.leaf = False
        self.replaced = False

    def of(self, leaf: int, width: int) -> np.ndarray:
        """The derivatives by one leaf, which are written to."""
        return self.rows.setdefault(leaf, np.zeros((self.size, width)))


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a tensor whose elements lie in order."""
    found = []
    step = 1
    for size in reversed(shape):
        found.append(step)
        step *= max(size, 1)
    return tuple(reversed(found))


class Made:
    """One tensor."""

    def __init__(self, memory: Memory, family: Family, shape: tuple, stride: tuple, offset: int, is_base: bool) -> None:
        self.memory = memory
        self.family = family
        self.shape = shape
        self.stride = stride
        self.offset = offset
        self.is_base = is_base

    @classmethod
    def leaf(cls, values: np.ndarray, grad: bool) -> Made:
        """A tensor of its own."""
        memory = Memory(values)
        family = Family(memory.size, [0])
        if grad:
            family.node = Node([])
            family.leaf = True
            family.rows[id(family)] = np.eye(memory.size)
        return cls(memory, family, values.shape, contiguous(values.shape), 0, True)

    # ----------------------------------------------------------------------------------------------------------- what it is

    @property
    def is_leaf(self) -> bool:
        return self.is_base and self.family.leaf

    @property
    def contiguous(self) -> bool:
        wanted = contiguous(self.shape)
        return 0 in self.shape or all(n == 1 or s == w for n, s, w in zip(self.shape, self.stride, wanted, strict=True))

    @property
    def overlaps(self) -> bool:
        return 0 not in self.shape and any(n > 1 and s == 0 for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def places(self) -> np.ndarray:
        """Where its elements lie."""
        found = np.full(self.shape, self.offset)
        for dim, (size, step) in enumerate(zip(self.shape, self.stride, strict=True)):
            found = found + (np.arange(size) * step).reshape([-1 if d == dim else 1 for d in range(len(self.shape))])
        return found.astype(np.int64)

    @property
    def values(self) -> np.ndarray:
        return self.memory.elements[self.places]

    def large(self, limit: float) -> bool:
        return bool((np.abs(self.values) > limit).any()) or any(
            (np.abs(rows) > limit).any() for rows in self.family.rows.values()
        )

    def rows(self, leaf: int) -> np.ndarray | None:
        """The derivatives of its elements by a leaf."""
        found = self.family.rows.get(leaf)
        return None if found is None else found[self.places.ravel()]

    def gradient(self, leaf: Made) -> np.ndarray | None:
        """What the backward pass of its sum gives a leaf."""
        rows = self.rows(id(leaf.family))
        return None if rows is None else rows.sum(0).reshape(leaf.shape)

    # ---------------------------------------------------------------------------------------------------------------- views

    def _view(self, shape: tuple, stride: tuple, offset: int) -> Made:
        return Made(self.memory, self.family, shape, stride, offset, False)

    def narrow(self, dim: int, start: int, length: int) -> Made:
        shape = (*self.shape[:dim], length, *self.shape[dim + 1 :])
        return self._view(shape, self.stride, self.offset + start * self.stride[dim])

    def every_second(self, dim: int) -> Made:
        shape = (*self.shape[:dim], (self.shape[dim] + 1) // 2, *self.shape[dim + 1 :])
        stride = (*self.stride[:dim], self.stride[dim] * 2, *self.stride[dim + 1 :])
        return self._view(shape, stride, self.offset)

    def select(self, dim: int, index: int) -> Made:
        return self._view(
            self.shape[:dim] + self.shape[dim + 1 :],
            self.stride[:dim] + self.stride[dim + 1 :],
            self.offset + index * self.stride[dim],
        )

    def transpose(self, a: int, b: int) -> Made:
        order = list(range(len(self.shape)))
        order[a], order[b] = order[b], order[a]
        return self._view(tuple(self.shape[d] for d in order), tuple(self.stride[d] for d in order), self.offset)

    def unsqueeze(self, dim: int) -> Made:
        step = 1 if dim == len(self.shape) else self.shape[dim] * self.stride[dim]
        return self._view(
            (*self.shape[:dim], 1, *self.shape[dim:]), (*self.stride[:dim], step, *self.stride[dim:]), self.offset
        )

    def expand(self, shape: tuple) -> Made:
        stride = tuple(
            0 if old == 1 and new != 1 else s for old, new, s in zip(self.shape, shape, self.stride, strict=True)
        )
        return self._view(shape, stride, self.offset)

    def flat(self) -> Made:
        # The innermost step, also where it is another than 1, of a dimension of size 1.
        step = self.stride[-1] if self.shape and (len(self.shape) == 1 or math.prod(self.shape)) else 1
        return self._view((math.prod(self.shape),), (step,), self.offset)

    def detach(self) -> Made:
        family = Family(self.memory.size, self.family.version)
        family.replaced = self.family.replaced
        return Made(self.memory, family, self.shape, self.stride, self.offset, True)

    def replace(self, values: np.ndarray) -> None:
        """Have other memory; its version goes on."""
        self.memory = Memory(values)
        self.family.replaced = True
        self.shape, self.stride, self.offset = values.shape, contiguous(values.shape), 0


def _combined(model: Made, other: Made, here: Any, there: Any) -> dict[int, np.ndarray]:
    """Derivatives of a function of two tensors, from its own by each of them."""
    found: dict[int, np.ndarray] = {}
    for each, factor in ((model, here), (other, there)):
        if factor is None or each.family.node is None:
            continue
        for leaf in each.family.rows:
            rows = each.rows(leaf)
            assert rows is not None
            scaled = rows * np.broadcast_to(factor, each.shape).reshape(-1, 1)
            found[leaf] = found[leaf] + scaled if leaf in found else scaled
    return found


def out_of_place(kind: str, model: Made, other: Made, grad: bool, stride: tuple[int, ...]) -> Made:
    """The result of an operator; its elements lie densely, in the order that the strides say."""
    a, b = model.values, other.values
    values, here, there = {
        "add": (a + b, 1.0, 1.0),
        "mul": (a * b, b, a),
        "tanh": (np.tanh(a), 1 - np.tanh(a) ** 2, None),
        "scale": (a * 0.5, 0.5, None),
        "clone": (a, 1.0, None),
        "sum": (a.sum(), 1.0, None),
    }[kind]
    result = Made.leaf(np.asarray(values), False)
    result.stride = stride
    result.memory = Memory(np.zeros(result.memory.size))
    assert sorted(result.places.ravel()) == list(range(result.memory.size))
    result.memory.elements[result.places.ravel()] = np.asarray(values).ravel()
    sources = [model] + ([other] if kind in ("add", "mul") else [])
    if not grad or all(each.family.node is None for each in sources):
        return result
    kept = []
    if kind == "mul":
        kept += [other.family.version] if model.family.node is not None else []
        kept += [model.family.version] if other.family.node is not None else []
    elif kind == "tanh":
        kept.append(result.family.version)
    result.family.node = Node([each.family.node for each in sources], kept)
    rows = _combined(model, other if len(sources) > 1 else model, here, there)
    for leaf, values in rows.items():
        values = values.sum(0, keepdims=True) if kind == "sum" else values
        mine = result.family.of(leaf, values.shape[1])
        mine[result.places.ravel()] = values
    return result


def in_place(kind: str, model: Made, other: Made, grad: bool) -> None:
    """Change elements, the version, and the history."""
    binary = kind in ("add_", "mul_", "copy_")
    if grad and model.family.leaf:
        raise Refused(
            "a leaf Variable that requires grad" if model.is_base else "a view of a leaf Variable that requires grad"
        )
    if model.overlaps and kind != "zero_":  # which may write an element twice
        raise Refused("single memory location")
    a, b = model.values, other.values
    values, here, there = {
        "add_": (a + b, 1.0, 1.0),
        "mul_": (a * b, b, a),
        "copy_": (b, 0.0, 1.0),
        "tanh_": (np.tanh(a), 1 - np.tanh(a) ** 2, None),
        "scale_": (a * -1.5, -1.5, None),
        "zero_": (a * 0, 0.0, None),
    }[kind]
    recorded = grad and (model.family.node is not None or (binary and other.family.node is not None))
    kept: list[list[int]] = []
    if recorded:
        rows = _combined(model, other if binary else model, here, there)
        if kind == "mul_" and model.family.node is not None:
            kept.append(other.family.version)
        places = model.places.ravel()
        for leaf in set(rows) | set(model.family.rows):
            width = (rows[leaf] if leaf in rows else model.family.rows[leaf]).shape[1]
            model.family.of(leaf, width)[places] = rows.get(leaf, 0.0)
    model.memory.elements[model.places] = values
    model.family.version[0] += 1
    if recorded:
        if kind == "tanh_":
            kept.append(model.family.version)
        model.family.node = Node([model.family.node, other.family.node if binary else None], kept)
