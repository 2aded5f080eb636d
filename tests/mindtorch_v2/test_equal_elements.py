"""Which of several equal elements is chosen by rank: those of PyTorch, whose indices were recorded for rows of 7, 20, 100 and 400."""

import pytest

import mindtorch_v2 as torch

CALLS = {
    "topk": lambda x, dim: x.topk(6, dim)[1],
    "smallest": lambda x, dim: x.topk(7, dim, largest=False)[1],
    "unsorted": lambda x, dim: x.topk(x.shape[dim] // 2, dim, sorted=False)[1].narrow(
        dim, 0, min(8, x.shape[dim] // 2)
    ),
    "kthvalue": lambda x, dim: x.kthvalue(5, dim, True)[1],
    "mode": lambda x, dim: x.mode(dim, True)[1],
}
FOUND = {
    "topk": [[1, 6, 2, 3, 4, 5], [11, 6, 16, 1, 7, 12], [86, 81, 36, 31, 21, 91], [11, 1, 21, 26, 16, 6]],
    "smallest": [
        [0, 5, 4, 3, 2, 6, 1],
        [0, 15, 10, 5, 9, 19, 14],
        [65, 55, 20, 60, 50, 15, 70],
        [75, 80, 240, 245, 235, 250, 255],
    ],
    "unsorted": [
        [1, 6, 2],
        [7, 1, 12, 11, 16, 6, 2, 17],
        [1, 66, 61, 71, 56, 51, 76, 46],
        [1, 266, 261, 271, 256, 251, 276, 246],
    ],
    "kthvalue": [[2], [14], [20], [80]],
    "mode": [[5], [5], [5], [40]],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.int16, torch.uint8])
@pytest.mark.parametrize("call", CALLS)
def test_the_element_is_pytorchs(call, dtype):
    for n, found in zip((7, 20, 100, 400), FOUND[call], strict=True):
        row = (torch.arange(n) * 7919 % 5).to(dtype)
        assert CALLS[call](row, 0).tolist() == found
        rows = torch.stack([row + 1, row])
        assert CALLS[call](rows, 1).tolist() == [found, found]
        assert CALLS[call](rows.T, 0).T.tolist() == [found, found]


def test_nan_counts_as_largest():
    x = torch.tensor([1.0, float("nan"), 2.0, float("nan"), float("inf")])
    assert x.topk(3)[1].tolist() == [1, 3, 4] and x.topk(3, largest=False)[1].tolist() == [0, 2, 4]
    assert x.kthvalue(4)[1].item() == 1 and x.kthvalue(3)[1].item() == 4


@pytest.mark.parametrize("n", [20, 300, 3000])
def test_rows_on_which_parting_fails(n):
    """Rows that make every part one-sided, so that a heap takes over; the values are in order all the same."""
    row = torch.cat([torch.arange(n // 2) * 2, torch.arange(n // 2) * 2 + 1]).flip(0)
    for x in (row, row.float(), row // 7):
        for k in (1, n // 70 + 1, n // 2, n):
            values, places = x.topk(k)
            assert torch.equal(values, x.sort(descending=True)[0][:k]) and torch.equal(x[places], values)
            assert x.kthvalue(k)[0] == x.sort()[0][k - 1]
