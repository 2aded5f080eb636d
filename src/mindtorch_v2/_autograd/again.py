"""What is computed again in the backward pass in place of being kept.

Note [Results computed again]
A linear layer saves its input. Where that is what an activation or a normalization made, and nobody else refers to it once the forward pass has gone on, it can
be had from what the activation's own node keeps anyway, at the cost of a pass over it: a third of what a decoder keeps for its backward pass. So operators that
the schema tags `recomputed` say of their nodes that they are cheap, the extension looks at large tensors that come from one and are saved
(`native/runtime/again.c`), and once nodes alone refer to such a tensor, its entry becomes a `Recomputed`.

Nothing of it may be seen. A tensor that was written in place has another version, and one whose memory was handed out (`numpy()`, `data`, a storage) a `Rare`,
which `given_away` makes: both are kept. So are views, and what is computed of a large tensor that anybody but its node refers to. Small operands, a
normalization's weight, are copied, so that an optimizer may change them before the pass. The kernel that runs again is the one that ran, and its results have the
same bits.
"""

from __future__ import annotations

from .._device import CPU
from .._dispatch.backends import backend_of
from .._tensor import Tensor, version, wrap
from .keeping import Kept
from .node import Node

LARGE = 1 << 20
"""Bytes from which on a result is computed again."""
SMALL = 1 << 16
"""Bytes up to which an operand is copied, so that later changes of it do not matter."""


class Recomputed(Kept):
    """A saved result of a node that is computed again, from what that node saved, for each of those that read it."""

    __slots__ = ("source", "saved", "consts", "copies", "readers", "left", "made")

    def __init__(self, source: Node, copies: dict[int, Tensor], readers: int):
        self.source, self.saved, self.consts = source, source.saved, source.consts
        self.copies = copies
        self.readers = self.left = readers
        self.made: Tensor | None = None  # for those of the readers that have not had it in this pass

    def unpack(self, node: Node) -> Tensor:
        """The result, at its place in the graph."""
        made = self._compute() if self.made is None else self.made
        self.left -= 1
        self.made = made if self.left else None
        self.left = self.left or self.readers
        return made

    def _compute(self) -> Tensor:
        op = type(self.source).layout.op
        args = self._arguments()
        spec = op.meta(*args)
        made = wrap(backend_of(CPU).run(op, spec, args, CPU), spec.dtype)
        made._node = self.source
        return made

    def _arguments(self) -> tuple:
        """Those of the call that the node was made for. What its derivative does not read makes no difference to the result either."""
        layout = type(self.source).layout
        args = [param.default for param in layout.op.params]
        for place, (number, _) in enumerate(layout.saved):
            args[number] = self.copies[place] if place in self.copies else self.source._unpack_one(self.saved[place])
        for place, (number, attribute) in enumerate(layout.consts):
            if attribute is None:
                args[number] = self.consts[place]
        return tuple(args)


def put_away(entries: list[tuple[Node, int]]) -> None:
    """Put what a saved result is computed of in its place, in all nodes that save it."""
    first, place = entries[0]
    source = first.saved[place][0]._node
    copies = {}
    for number, (entry, (_, needs)) in enumerate(zip(source.saved, type(source).layout.saved)):
        if entry is None and needs:  # the derivative has no use for it, but the result had
            return
        if entry.__class__ is tuple:
            tensor, before = entry
            if version(tensor) != before:
                return
            if tensor._payload.nbytes <= SMALL:
                copies[number] = wrap(tensor._payload.copy(), tensor._dtype)
    made = Recomputed(source, copies, len(entries))
    for node, place in entries:
        node.saved[place] = made
