"""Lists of many tensors, whose plans know runs of what is alike; places that are found and filled in arrays of any layout."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mindtorch_v2 as torch


def pieces(widths: list[int], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    at = [0, *itertools.accumulate(widths)]
    whole = torch.arange(3 * at[-1]).reshape(3, -1).to(dtype)
    return [whole[:, i:j] for i, j in itertools.pairwise(at)]


@pytest.mark.parametrize(
    "widths",
    [[6] * 70, [1] * 200, [2, 3] * 40, [4] * 40 + [5] * 40, [5] * 40 + [4] * 40, [7] * 39 + [1], [0, 3] * 30, [17] * 9],
)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.int64, torch.complex128], ids=str)
def test_pieces_are_put_together(widths: list[int], dtype: torch.dtype) -> None:
    whole = torch.arange(3 * sum(widths)).reshape(3, -1).to(dtype)
    for _ in range(3):
        assert torch.equal(torch.cat(pieces(widths, dtype), 1), whole)
        copies = [piece.clone() for piece in pieces(widths, dtype)]
        assert torch.equal(torch.cat(copies, 1), whole)


def test_lists_of_one_length_are_told_apart() -> None:
    for widths in ([3] * 30 + [2] * 30, [2] * 30 + [3] * 30, [3, 2] * 30, [2, 3] * 30, [3] * 29 + [2] * 31):
        made = torch.cat(pieces(widths), 1)
        assert made.shape == (3, sum(widths)) and made[0].tolist() == list(range(sum(widths)))
    rows = [torch.full((4,), i) for i in range(50)]
    turned = [torch.arange(8)[::2] + i for i in range(50)]
    assert torch.stack(rows)[:, 1].tolist() == list(range(50))
    assert torch.stack(turned)[:, 3].tolist() == [i + 6 for i in range(50)]
    assert torch.stack(rows[:49] + turned[:1]).shape == (50, 4)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        torch.stack([*rows[:49], torch.zeros(5, dtype=torch.int64)])


@pytest.mark.parametrize("shape", [(40,), (7, 9), (5, 1, 6), (3, 4, 1), (2, 3, 4, 5), (1, 1, 30)])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_places_of_what_is_not_zero(shape: tuple[int, ...], share: float) -> None:
    x = (np.random.default_rng(0).uniform(size=shape) < share).astype(np.float32)
    wanted = np.stack(np.nonzero(x), 1)
    assert torch.nonzero(torch.from_numpy(x)).tolist() == wanted.tolist()
    assert torch.nonzero(torch.from_numpy(x > 0)).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.int16, torch.float32, torch.float64, torch.bfloat16, torch.complex128], ids=str
)
def test_places_with_gaps_are_filled(dtype: torch.dtype) -> None:
    for pick in (
        (slice(None), slice(None, None, 2)),
        (slice(None, None, 3), slice(1, None, 4)),
        (slice(2, 3), slice(3, 4)),
    ):
        x = torch.zeros(9, 14, dtype=dtype)
        x[pick].fill_(1)
        wanted = np.zeros((9, 14))
        wanted[pick] = 1
        assert (x != 0).tolist() == (wanted != 0).tolist() and (x[pick] == 1).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("keys", [3, 16, 40, 150])
def test_masks_of_half_precision_are_added(dtype: torch.dtype, keys: int) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 2, length, 16).to(dtype) for length in (20, keys, keys))
    mask = torch.randn(2, 1, 20, keys).to(dtype)
    mask[:, :, 3, : keys // 2] = -torch.inf
    attend = torch.nn.functional.scaled_dot_product_attention
    wide = attend(q.float(), k.float(), v.float(), mask.float())
    assert torch.equal(attend(q, k, v, mask), wide.to(dtype))
    with torch.enable_grad():
        leaf = q.clone().requires_grad_()
        attend(leaf, k, v, mask).float().sum().backward()
        wide_leaf = q.float().requires_grad_()
        attend(wide_leaf, k.float(), v.float(), mask.float()).sum().backward()
    assert torch.allclose(leaf.grad.float(), wide_leaf.grad, 2e-2, 2e-2)


@pytest.mark.parametrize("keys", [5, 16, 33, 150])
def test_what_a_mask_hides_has_no_weight(keys: int) -> None:
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, 3, length, 8) for length in (30, keys, keys))
    seen = torch.rand(30, keys) < 0.4
    seen[4] = False
    seen[5:, 0] = True
    made = torch.nn.functional.scaled_dot_product_attention(q, k, v, seen)
    scores = (q.double() @ k.double().mT / 8**0.5).masked_fill(~seen, -torch.inf)
    wanted = torch.softmax(scores, -1).nan_to_num(0) @ v.double()
    assert torch.allclose(made.double(), wanted, 1e-5, 1e-6)
    assert torch.exp(torch.tensor([-torch.inf, -200.0, -104.1, -103.0])).tolist()[:3] == [0, 0, 0]
