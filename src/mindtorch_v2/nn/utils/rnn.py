"""Sequences of different lengths in one tensor: padded, or packed step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from ..._tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    """The fields of a packed sequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences sorted by length, their first elements, then their second ones, and so on.

    ``data`` (sum of lengths, *), ``batch_sizes`` (longest length, on the CPU): how many sequences have each step. The
    indices sort the batch and undo that.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """Make one of its fields, or of the pair of the first two."""
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        sizes: Any = batch_sizes
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move or cast ``data``; the indices follow to its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [
            None if indices is None else indices.to(data.device)
            for indices in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def pin_memory(self) -> PackedSequence:
        """All tensors in pinned memory."""
        moved = [
            None if indices is None else indices.pin_memory()
            for indices in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *moved)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to the CPU."""
        return self.to(*args, **{**kwargs, "device": "cpu"})

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to CUDA."""
        return self.to(*args, **{"device": "cuda", **kwargs})

    def double(self) -> PackedSequence:
        """Cast to float64."""
        return self.to(dtype=torch.double)

    def float(self) -> PackedSequence:
        """Cast to float32."""
        return self.to(dtype=torch.float)

    def half(self) -> PackedSequence:
        """Cast to float16."""
        return self.to(dtype=torch.half)

    def long(self) -> PackedSequence:
        """Cast to int64."""
        return self.to(dtype=torch.long)

    def int(self) -> PackedSequence:
        """Cast to int32."""
        return self.to(dtype=torch.int)

    def short(self) -> PackedSequence:
        """Cast to int16."""
        return self.to(dtype=torch.short)

    def char(self) -> PackedSequence:
        """Cast to int8."""
        return self.to(dtype=torch.int8)

    def byte(self) -> PackedSequence:
        """Cast to uint8."""
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on CUDA."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes ``permutation``."""
    if permutation is None:
        return None
    inverse = torch.empty_like(permutation, memory_format=torch.contiguous_format)
    return inverse.scatter_(0, permutation, torch.arange(0, permutation.numel(), device=permutation.device))


def _check_lengths(lengths: Tensor, batch: int) -> list[int]:
    if lengths.dim() != 1 or lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D "
            f"{lengths.device} {str(lengths.dtype).rsplit('.', 1)[-1]} tensor"
        )
    values = lengths.tolist()
    if len(values) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(values)} (batch_size={batch})"
        )
    if any(value <= 0 for value in values):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(values[i] < values[i + 1] for i in range(len(values) - 1)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    return values


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack ``input`` (T, N, *), or (N, T, *) with ``batch_first``, of which each sequence has its own length.

    Raises RuntimeError for lengths that are not positive or, with ``enforce_sorted``, not in decreasing order.
    """
    if isinstance(lengths, Tensor):
        steps = lengths.to(dtype=torch.int64)
    else:
        steps = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        steps, sorted_indices = torch.sort(steps, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    values = _check_lengths(steps, input.size(1))
    if values[0] > input.size(0):
        raise RuntimeError(
            f"Expected a length of at most {input.size(0)}, the padded length, but got {values[0]} in 'lengths'"
        )
    sizes = [sum(value > step for value in values) for step in range(values[0])]
    data = torch.cat([input[step, :size] for step, size in enumerate(sizes)], 0)
    return PackedSequence(data, torch.tensor(sizes, dtype=torch.int64, device="cpu"), sorted_indices, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded tensor and the lengths of a packed sequence. Raises ValueError for a ``total_length`` that is too short."""
    sizes = sequence.batch_sizes.tolist()
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    data = sequence.data
    batch = sizes[0]
    trailing = tuple(data.shape[1:])
    steps = []
    for part in data.split(sizes, 0):
        missing = batch - part.size(0)
        steps.append(torch.cat([part, part.new_full((missing, *trailing), padding_value)], 0) if missing else part)
    steps += [data.new_full((batch, *trailing), padding_value)] * (length - len(sizes))
    padded = torch.stack(steps, 1 if batch_first else 0)
    lengths = torch.tensor([sum(size > row for size in sizes) for row in range(batch)], dtype=torch.int64, device="cpu")
    if sequence.unsorted_indices is not None:
        order = sequence.unsorted_indices
        return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (L, *) as one tensor (T, N, *), or (N, T, *) with ``batch_first``, filled up on ``padding_side``."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(sequence.size(0) for sequence in sequences)
    trailing = tuple(sequences[0].shape[1:])
    first = sequences[0]
    padded = []
    for sequence in sequences:
        if tuple(sequence.shape[1:]) != trailing:  # broadcasts, or is refused
            sequence = first.new_empty((sequence.size(0), *trailing)).copy_(sequence)
        missing = longest - sequence.size(0)
        if missing:
            filler = first.new_full((missing, *trailing), padding_value)
            sequence = torch.cat([sequence, filler] if padding_side == "right" else [filler, sequence], 0)
        padded.append(sequence)
    return torch.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    positions = torch.arange(padded_sequences.shape[1], device=lengths.device)
    return [sequence[positions < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L, *); with ``enforce_sorted`` they come in order of decreasing length."""
    lengths = torch.as_tensor([sequence.size(0) for sequence in sequences], device="cpu")
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed sequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
