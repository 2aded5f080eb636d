"""How a tensor lies on the ranks of a mesh's dimension: in parts, whole, or as terms of a reduction."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """What Shard, Replicate and Partial are."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the ranks have parts, of this dimension if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each rank has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the ranks have terms, of this reduction if one is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


def part_of(size: int, count: int, number: int) -> tuple[int, int]:
    """(offset, length) of a part of `size` elements in `count` parts: of equal length, but the last ones, as `torch.chunk` has them."""
    length = -(-size // count)
    start = min(length * number, size)
    return start, min(length, size - start)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part of dimension `dim`: as many as there are ranks, of equal size, of which the last ones may be smaller or empty."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How many elements of the dimension a rank has when it is divided into `num_chunks`, and the first of them."""
        start, length = part_of(curr_local_size, num_chunks, rank)
        return length, start

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, repr=False)
class _StridedShard(Shard):
    """A part of a part: this dimension of the mesh divides what a later one, of `split_factor` ranks, has divided before it."""

    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has all of it."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a term; `reduce_op` ("sum", "avg", "product", "max", "min") over all gives the tensor."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True, repr=False)
class _NormPartial(Partial):
    """Each rank has the norm of its elements; that of these norms is the norm of all."""

    reduce_op: str = "norm"
    norm_type: float = 2.0

    def __repr__(self) -> str:
        return f"_NormPartial(reduce_op={self.reduce_op}, norm_type={self.norm_type})"
