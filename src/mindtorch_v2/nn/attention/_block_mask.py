"""Masks in blocks, and functions of single positions that make them; see `flex_attention.py`."""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30  # of the mask that stands for none: one block, whatever the lengths are

_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


# ------------------------------------------------------------------------------------------------- functions of a position
class _ModificationType(Enum):
    """What a function of positions is, by the number of its arguments."""

    SCORE_MOD = 1
    MASK_MOD = 2
    UNKNOWN = 3


def _get_mod_type(fn: Callable[..., Any]) -> _ModificationType:
    """A function of five arguments changes scores, one of four masks. AssertionError for another number."""
    if hasattr(fn, "__code__"):  # as PyTorch counts: `self` of a method that is bound as well
        count = fn.__code__.co_argcount - len(getattr(fn, "__defaults__", None) or ())
    else:
        count = sum(given.default is inspect.Parameter.empty for given in inspect.signature(fn).parameters.values())
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return _ModificationType.SCORE_MOD if count == 5 else _ModificationType.MASK_MOD


def _vmap_for_bhqkv(
    fn: Callable[..., Any],
    prefix: tuple[int | None, ...],
    suffix: tuple[int | None, ...] = (),
    out_dims: Any = 0,
    group_dim: bool = False,
) -> Callable[..., Any]:
    """`fn` of single positions mapped over batch, head (twice with groups of heads), query and key, each given as a vector.

    `prefix` and `suffix` are the dimensions of what comes before these four arguments and after them.
    """
    for place in (3, 2, *((1, 1) if group_dim else (1,)), 0):
        here = tuple(0 if i == place else None for i in range(4))
        fn = torch.vmap(fn, in_dims=prefix + here + suffix, out_dims=out_dims)
    return fn


def _positions(sizes: Any, device: Any) -> list[Tensor]:
    return [torch.arange(size, device=device) for size in sizes]


def _identity(score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    return score


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask function that allows everything."""
    return batch.new_ones(size=(), dtype=torch.bool, device=batch.device)


def _check_mask_mods(mask_mods: tuple[Any, ...]) -> None:
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """A mask function that allows what all of `mask_mods` allow. RuntimeError for what cannot be called."""
    _check_mask_mods(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=torch.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """A mask function that allows what any of `mask_mods` allows. RuntimeError for what cannot be called."""
    _check_mask_mods(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=torch.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _sliced_mask_mod_error(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask function of a part of a mask: which positions the part has is not known to the function of the whole."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. "
        "When you slice a BlockMask using [], the mask_mod attribute is reset. "
        "You must set it from the original BlockMask's mask_mod."
        "\n\nIncorrect usage:"
        "\n  base_mask = create_block_mask(my_mask_fn, ...)"
        "\n  sliced_mask = base_mask[:, :, block_idx]"
        "\n  sliced_mask.mask_mod = apply_offset(sliced_mask.mask_mod, offset)  # WRONG!"
        "\n\nCorrect usage:"
        "\n  base_mask = create_block_mask(my_mask_fn, ...)"
        "\n  sliced_mask = base_mask[:, :, block_idx]"
        "\n  sliced_mask.mask_mod = apply_offset(base_mask.mask_mod, offset)  # Use base_mask!"
    )


# ------------------------------------------------------------------------------------------------- blocks, dense and listed
def _round_up_to_multiple(x: int, multiple: int) -> int:
    return -(-x // multiple) * multiple


def _ordered_to_dense(num_blocks_in_row: Tensor, col_indices: Tensor, num_cols: int) -> Tensor:
    """Ones (int32) where a row lists a column, of (..., rows, `num_cols`)."""
    listed = torch.arange(col_indices.shape[-1], device=col_indices.device) < num_blocks_in_row.unsqueeze(-1)
    # what stands behind a row's count means nothing: it goes to a further column, which is cut off
    columns = torch.where(listed, col_indices, num_cols).to(torch.int64)
    dense = col_indices.new_zeros((*col_indices.shape[:-1], num_cols + 1), dtype=torch.int32)
    return dense.scatter_(-1, columns, 1)[..., :num_cols].contiguous()


def _dense_to_ordered(dense_mask: Tensor) -> tuple[Tensor, Tensor]:
    """(how many columns each row has, all columns with those of the row first), both int32."""
    dense_mask = dense_mask.to(dtype=torch.int32)
    columns = torch.argsort(dense_mask, dim=-1, descending=True, stable=True)
    counts = dense_mask.sum(dim=-1)
    flat = torch.contiguous_format
    return counts.to(torch.int32, memory_format=flat), columns.to(torch.int32, memory_format=flat)


def _transpose_ordered(num_blocks_in_row: Tensor, col_indices: Tensor) -> tuple[Tensor, Tensor]:
    dense = _ordered_to_dense(num_blocks_in_row, col_indices, col_indices.shape[-1])
    return _dense_to_ordered(dense.transpose(-2, -1))


def _adjust_num_blocks_and_indices(
    num_blocks: Tensor, indices: Tensor, new_num_rows: int, new_num_cols: int
) -> tuple[Tensor, Tensor]:
    indices = indices[:, :, :new_num_rows, :new_num_cols]
    num_blocks = num_blocks[:, :, :new_num_rows].clamp(max=new_num_cols)
    return (indices < num_blocks[..., None]).sum(dim=-1).to(torch.int32), indices


def _convert_mask_to_block_mask(
    mask: Tensor,
    Q_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
    KV_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
    separate_full_blocks: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """(blocks of which something is seen, None), or (blocks seen in part, blocks seen wholly); a block that juts out is never whole."""
    if mask.dtype != torch.bool:
        raise AssertionError(f"mask.dtype must be torch.bool, got {mask.dtype}")
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    rows, columns = (_round_up_to_multiple(n, by) for n, by in zip(mask.shape[-2:], (Q_BLOCK_SIZE, KV_BLOCK_SIZE)))
    mask = torch.nn.functional.pad(mask, (0, columns - mask.shape[-1], 0, rows - mask.shape[-2]))
    tiles = (rows // Q_BLOCK_SIZE, Q_BLOCK_SIZE, columns // KV_BLOCK_SIZE, KV_BLOCK_SIZE)
    seen = mask.view(*mask.shape[:2], *tiles).sum(dim=(-3, -1))
    if not separate_full_blocks:
        return (seen > 0).to(torch.int8), None
    full = seen == Q_BLOCK_SIZE * KV_BLOCK_SIZE
    return ((seen > 0) & ~full).to(torch.int8), full.to(torch.int8)


def _convert_block_mask_to_mask(
    block_mask: Tensor,
    KV_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
    Q_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
) -> Tensor:
    """Each block's value at all its positions."""
    if block_mask.dim() != 4:
        raise AssertionError(f"block_mask.dim() must be 4, got {block_mask.dim()}")
    return block_mask.repeat_interleave(Q_BLOCK_SIZE, dim=2).repeat_interleave(KV_BLOCK_SIZE, dim=3)


def _create_sparse_block_from_block_mask(
    block_mask: tuple[Tensor, Tensor | None],
    mask_mod: _mask_mod_signature | None,
    seq_lengths: tuple[int, int],
    Q_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
    KV_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
) -> BlockMask:
    partial, full = block_mask
    return BlockMask.from_kv_blocks(
        *_dense_to_ordered(partial),
        *((None, None) if full is None else _dense_to_ordered(full)),
        BLOCK_SIZE=(Q_BLOCK_SIZE, KV_BLOCK_SIZE),
        mask_mod=mask_mod,
        seq_lengths=seq_lengths,
    )


class BlockMask:
    """A mask in blocks: which blocks of keys each row of blocks of queries sees, in part (`kv_...`) and wholly (`full_kv_...`).

    `..._num_blocks` of (..., rows) counts the blocks of a row, `..._indices` of (..., rows, columns) lists them; what follows the counted ones
    means nothing. `q_...` and `full_q_...` are the same by columns. `mask_mod` says of single positions whether they are seen.
    """

    _TENSOR_ATTRS = [
        *("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"),
        *("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices"),
        *("dq_write_order", "dq_write_order_full", "dq_kv_order"),
    ]
    _CONTEXT_ATTRS = ["seq_lengths", "BLOCK_SIZE", "mask_mod", "dq_kv_order_spt"]

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: _mask_mod_signature = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        _check_blocks(kv_indices, full_kv_num_blocks, full_kv_indices)
        if kv_num_blocks is None:
            raise AssertionError("kv_num_blocks must be provided")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        if dq_write_order_full is not None and dq_write_order is None:
            raise ValueError("dq_write_order_full requires dq_write_order")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: _mask_mod_signature | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """The mask of these blocks by rows; those by columns are found, unless `compute_q_blocks` says not to.

        Raises:
            RuntimeError: for indices of fewer than two dimensions.
            AssertionError: when only one of the arguments `full_...` is given.
            ValueError: for a `dq_kv_order` of another kind.
        """
        _check_blocks(kv_indices, full_kv_num_blocks, full_kv_indices)
        by_column: tuple[Any, ...] = (None, None, None, None)
        if compute_q_blocks:
            by_column = _transpose_ordered(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is None or full_kv_indices is None:
                by_column += (None, None)
            else:
                by_column += _transpose_ordered(full_kv_num_blocks, full_kv_indices)
        if isinstance(BLOCK_SIZE, int):
            BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * BLOCK_SIZE[0], kv_indices.shape[-1] * BLOCK_SIZE[1])
        if dq_kv_order is not None and not isinstance(dq_kv_order, (bool, Tensor)):
            raise ValueError("dq_kv_order must be a bool, Tensor, or None")
        return cls(
            seq_lengths,
            *(kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices),
            *by_column,
            BLOCK_SIZE=BLOCK_SIZE,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order if isinstance(dq_kv_order, Tensor) else None,
            dq_kv_order_spt=dq_kv_order if isinstance(dq_kv_order, bool) else None,
        )

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The attributes in a row; the lengths and the sizes of blocks as two numbers each, as pairs without `flatten`."""
        lengths = tuple(self.seq_lengths[:2]) if flatten else (self.seq_lengths,)
        sizes = tuple(self.BLOCK_SIZE[:2]) if flatten else (self.BLOCK_SIZE,)
        tensors = (getattr(self, name) for name in self._TENSOR_ATTRS)
        return (*lengths, *tensors, self.dq_kv_order_spt, *sizes, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch's dimensions, and the two lengths."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many positions there are, seen or not."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many per cent of the positions lie in blocks of which nothing is seen."""
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Ones (int32) at the blocks of which something is seen."""
        dense = _ordered_to_dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return dense
        return dense | _ordered_to_dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """The blocks drawn, at most `grid_size` of rows and columns (blocks are drawn together for that) of the first `limit` masks."""
        dense = self.to_dense()
        *batch, rows, columns = dense.shape
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        # rounded up as PyTorch's own: with a grid of -1 every block is drawn, since no step is below one
        row_step, column_step = (max(1, (n + (by - 1)) // by) for n, by in zip((rows, columns), most))
        drawn: list[str] = []
        for number, index in enumerate(itertools.product(*map(range, batch))):
            if number == limit:
                drawn.append("...")
                drawn.append("To print out more, set BlockMask.to_string(limit=N)")
                drawn.append("You can also index (BlockMask[batch, head]) to choose a specific batch or head")
                break
            lines = [f"{index}"]
            for row in range(0, rows, row_step):
                parts = dense[index][row : row + row_step].float().split(column_step, dim=1)
                shares = [part.mean().item() for part in parts]
                lines.append("".join(("█" if share == 1 else " " if share == 0 else "░") * 2 for share in shares))
            drawn.append("\n".join(lines) + "\n")
        return "\n".join(drawn)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        shapes = {name: getattr(self, name) for name in self._TENSOR_ATTRS[:8]}
        lines = [f"{name}={None if t is None else t.shape}" for name, t in shapes.items()]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%"]
        lines.append(f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}")
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and rows of blocks (numbers keep their dimension); its `mask_mod` is to be set anew."""
        self._check_order("Slicing")
        padded = (*(index if isinstance(index, tuple) else (index,)), slice(None), slice(None), slice(None))[:3]
        places: list[Any] = []
        for one, size in zip(padded, self.kv_num_blocks.shape[:3], strict=True):
            if isinstance(one, int):
                start = one + size if -size <= one < 0 else one
                one = slice(start, start + 1)
            places.append(one)
        where = tuple(places)
        tensors = [getattr(self, name) for name in self._TENSOR_ATTRS[:4]]
        blocks: list[Any] = [None if tensor is None else tensor[where] for tensor in tensors]
        made = BlockMask.from_kv_blocks(
            *blocks,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )
        return self._ordered_alike(made)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask of the upper left corner, of these lengths."""
        self._check_order("Adjusting")
        rows, columns = (-(-n // by) for n, by in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        blocks: tuple[Any, ...] = _adjust_num_blocks_and_indices(self.kv_num_blocks, self.kv_indices, rows, columns)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            blocks += _adjust_num_blocks_and_indices(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)
        made = self.from_kv_blocks(
            *blocks,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
            compute_q_blocks=self.q_indices is not None,
        )
        return self._ordered_alike(made)

    def _check_order(self, doing: str) -> None:
        if self.dq_kv_order is not None:
            raise NotImplementedError(
                f"{doing} BlockMask with tensor dq_kv_order is not supported yet. "
                "Construct a new BlockMask with matching precomputed dq_write_order metadata."
            )

    def _ordered_alike(self, made: BlockMask) -> BlockMask:
        made.dq_kv_order_spt = self.dq_kv_order_spt
        if self.dq_write_order is not None:
            orders = _compute_dq_write_order_from_block_mask(made, dq_kv_order=made.dq_kv_order_spt)
            made.dq_write_order, made.dq_write_order_full = orders
        return made

    def to(self, device: Any) -> BlockMask:
        """The mask with its tensors on `device`."""
        tensors = [(name, getattr(self, name)) for name in self._TENSOR_ATTRS]
        moved: dict[str, Any] = {name: None if tensor is None else tensor.to(device) for name, tensor in tensors}
        return BlockMask(
            self.seq_lengths,
            **moved,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            dq_kv_order_spt=self.dq_kv_order_spt,
        )


def _check_blocks(kv_indices: Tensor, full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None) -> None:
    if kv_indices.dim() < 2:
        raise RuntimeError("BlockMask must have at least 2 dimensions")
    if (full_kv_num_blocks is None) != (full_kv_indices is None):
        raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")


def _compute_dq_write_order_from_block_mask(
    block_mask: BlockMask, dq_kv_order: bool | None = False
) -> tuple[Tensor, Tensor | None]:
    """For each block by columns, the how-manieth of its row it is (from the end with `dq_kv_order`): (seen in part, seen wholly)."""
    if block_mask.q_num_blocks is None or block_mask.q_indices is None:
        raise ValueError("BlockMask must have q_num_blocks and q_indices to compute dq_write_order")
    columns = block_mask.q_indices.shape[-2]
    dense = _ordered_to_dense(block_mask.kv_num_blocks, block_mask.kv_indices, columns)
    if block_mask.full_kv_num_blocks is not None and block_mask.full_kv_indices is not None:
        dense = dense | _ordered_to_dense(block_mask.full_kv_num_blocks, block_mask.full_kv_indices, columns)
    so_far = dense.cumsum(dim=-1)
    rank = so_far - dense
    if dq_kv_order:
        rank = so_far[..., -1:] - 1 - rank
    by_column = rank.to(torch.int32).transpose(-2, -1)

    def ordered(rows: Tensor) -> Tensor:
        batch = torch.broadcast_shapes(rows.shape[:2], by_column.shape[:2])
        rows = rows.long().clamp(0, by_column.shape[-1] - 1).expand(*batch, *rows.shape[2:])
        return by_column.expand(*batch, *by_column.shape[2:]).gather(-1, rows)

    full = block_mask.full_q_indices
    return ordered(block_mask.q_indices), None if full is None else ordered(full)


# ------------------------------------------------------------------------------------------------------------ making masks
def create_mask(
    mod_fn: _score_mod_signature | _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The mask of (B, H, Q_LEN, KV_LEN) that `mod_fn` makes: its results, or where the scores it makes of zero are not minus infinity."""
    device = _default_device(device)
    places = _positions((1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN), device)
    if _get_mod_type(mod_fn) is _ModificationType.MASK_MOD:
        return _vmap_for_bhqkv(mod_fn, prefix=())(*places)
    scores = torch.zeros([place.numel() for place in places], device=device)
    return ~torch.isneginf(_vmap_for_bhqkv(mod_fn, prefix=(0,))(scores, *places))


def _default_device(device: Any) -> Any:
    return device if device is not None else torch.accelerator.current_accelerator() or "cpu"


def create_block_mask(
    mask_mod: _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The mask in blocks of what `mask_mod(batch, head, query, key)` allows.

    Args:
        mask_mod: takes four numbers as tensors without dimensions, gives a truth value as a tensor.
        B, H: how many batches and heads; None for one mask that serves all.
        BLOCK_SIZE: of queries and keys.
        separate_full_blocks: list blocks that are seen wholly apart.
        compute_dq_write_order: find `dq_write_order` as well, in the order that `dq_kv_order` says (True: from the last block).

    Raises:
        AssertionError: for a function of another number of arguments, or one whose results are not truth values.
        ValueError: for a `dq_kv_order` of another kind.
    """
    if _get_mod_type(mask_mod) is not _ModificationType.MASK_MOD:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if _compile:
        warnings.warn(
            "_compile flag on create_block_mask was originally added to work around a torch.compile limitation. That limitation has since been "
            "addressed. So, to compile create_block_mask, we suggest doing torch.compile(create_block_mask). This still works for now, but will "
            "be removed in the future.",
            DeprecationWarning,
            stacklevel=2,
        )
    if not isinstance(dq_kv_order, bool):
        raise ValueError("dq_kv_order must be a bool when using create_block_mask")
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    blocks = _convert_mask_to_block_mask(mask, *sizes, separate_full_blocks=separate_full_blocks)
    made = _create_sparse_block_from_block_mask(blocks, mask_mod, (Q_LEN, KV_LEN), *sizes)
    if compute_dq_write_order:
        orders = _compute_dq_write_order_from_block_mask(made, dq_kv_order=dq_kv_order)
        made.dq_write_order, made.dq_write_order_full = orders
        made.dq_kv_order_spt = dq_kv_order
    return made


def _create_empty_block_mask(query: Tensor, key: Tensor) -> BlockMask:
    """The mask that stands for none."""
    return BlockMask.from_kv_blocks(
        kv_num_blocks=torch.ones([1, 1, 1], dtype=torch.int32, device=query.device),
        kv_indices=torch.zeros([1, 1, 1, 1], dtype=torch.int32, device=query.device),
        BLOCK_SIZE=_LARGE_SPARSE_BLOCK_SIZE,
        seq_lengths=(1, 1),
    )
