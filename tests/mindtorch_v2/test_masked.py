"""`torch.masked` and `torch.signal.windows`, on values that PyTorch 2.13 gives."""

from __future__ import annotations

import math

import pytest

import mindtorch_v2 as torch

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
MASK = [[True, False, True], [False, False, False]]
NAN, INF = math.nan, math.inf


def values(tensor: torch.Tensor) -> list:
    return [round(v, 4) for v in tensor.flatten().tolist()]


def same(found: list, expected: list) -> bool:
    return len(found) == len(expected) and all(a == b or a != a and b != b for a, b in zip(found, expected))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [4, 0]),
        ("prod", [3, 1]),
        ("mean", [2, NAN]),
        ("amax", [3, -INF]),
        ("amin", [1, INF]),
        ("argmax", [2, 0]),
        ("argmin", [0, 0]),
        ("median", [1, NAN]),
        ("var", [2, NAN]),
        ("std", [1.4142, NAN]),
        ("logsumexp", [3.1269, -INF]),
        ("softmax", [0.1192, 0, 0.8808, NAN, NAN, NAN]),
        ("log_softmax", [-2.1269, -INF, -0.1269, NAN, NAN, NAN]),
        ("softmin", [0.8808, 0, 0.1192, NAN, NAN, NAN]),
        ("cumsum", [1, 1, 4, 0, 0, 0]),
        ("cumprod", [1, 1, 3, 1, 1, 1]),
    ],
)
def test_along_a_dimension(name: str, expected: list) -> None:
    found = getattr(torch.masked, name)(torch.tensor(X), 1, mask=torch.tensor(MASK))
    assert found.dtype == torch.float32
    assert same(values(found), expected)


def test_norms() -> None:
    x, mask = torch.tensor(X), torch.tensor(MASK)
    assert values(torch.masked.norm(x, 2, 1, mask=mask)) == [3.1623, 0.0]
    assert values(torch.masked.norm(x, -INF, 1, mask=mask)) == [1.0, INF]
    assert values(torch.masked.normalize(x, 2, 1, mask=mask)) == [0.3162, 0.0, 0.9487, 0.0, 0.0, 0.0]
    assert values(torch.masked.logaddexp(x, x, input_mask=mask)) == [1.6931, 2.0, 3.6931, 4.0, 5.0, 6.0]


def test_integers() -> None:
    x, mask = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor(MASK)
    assert torch.masked.sum(x, mask=mask).item() == 4
    assert torch.masked.amax(x, 1, mask=mask).tolist() == [3, -(2**63)]
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        torch.masked.mean(x, 1)
    with pytest.raises(ValueError, match="expects no fully masked out rows"):
        torch.masked.median(x, 1, mask=mask)
    with pytest.raises(NotImplementedError, match="identity of amax on torch.bool input"):
        torch.masked.amax(x > 2, 1, mask=mask)


def test_masks_of_results() -> None:
    x, mask = torch.tensor(X), torch.tensor(MASK)
    masked = torch.masked
    assert masked._input_mask(x, mask=mask[:, :1]).tolist() == [[True] * 3, [False] * 3]
    assert masked._output_mask(masked.sum, x, 1, mask=mask).tolist() == [True, False]
    assert masked._output_mask(masked.norm, x, 2.0, 0, mask=mask).tolist() == [True, False, True]
    assert masked._output_mask(masked.median, x, mask=mask).tolist() == [True, False]
    assert masked._output_mask(masked.mean, x, dim=(0, 1), keepdim=True, mask=mask).tolist() == [[True]]
    assert masked._output_mask(masked.softmax, x, 1, mask=mask).tolist() == MASK
    assert masked._output_mask(masked.sum, x, 1).tolist() == [True, True]
    with pytest.raises(ValueError, match="_input_mask requires explicit mask"):
        masked._input_mask(x)
    with pytest.raises(ValueError, match="_output_mask expected masked operation"):
        masked._output_mask(torch.add, x)


def test_dimensions_and_neutral_elements() -> None:
    masked, x = torch.masked, torch.tensor(X)
    found = [masked._canonical_dim(*call) for call in [(None, 0), (None, 2), ((2, -3), 3), (-1, 0), ((), 2)]]
    assert found == [(), (0, 1), (0, 2), (0,), (0, 1)]
    with pytest.raises(RuntimeError, match="dim=1 appears multiple times"):
        masked._canonical_dim((1, -1), 2)
    identity = masked._reduction_identity
    assert [identity(name, x).item() for name in ("sum", "prod", "amax", "argmin", "norm")] == [0, 1, -INF, INF, 0]
    assert identity("masked.amin", x.int()).item() == 2**31 - 1 and identity("sum", x.int()).dtype == torch.int32
    assert identity("norm", x, -INF).item() == INF and identity("mean", x) is None
    assert math.isnan(identity("median", x).item())
    with pytest.raises(NotImplementedError, match="identity of softmax on torch.float32 input"):
        identity("softmax", x)


def test_sparse_mask_of_a_dense_input() -> None:
    x, mask = torch.tensor(X), torch.tensor(MASK)
    assert torch.masked.sum(x, 1, mask=mask.to_sparse()).tolist() == [4.0, 0.0]
    assert torch.masked.sum(x, 1, mask=mask.to_sparse_csr()).tolist() == [4.0, 0.0]


def test_only_what_counts_has_a_gradient() -> None:
    x = torch.tensor(X, requires_grad=True)
    torch.masked.std(x, mask=torch.tensor(MASK)).backward()
    assert values(x.grad) == [-0.7071, 0.0, 0.7071, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("hann", {}, [0.0, 0.75, 0.75, 0.0]),
        ("hann", {"sym": False}, [0.0, 0.5, 1.0, 0.5]),
        ("hamming", {}, [0.08, 0.77, 0.77, 0.08]),
        ("blackman", {}, [0.0, 0.63, 0.63, 0.0]),
        ("bartlett", {"sym": False}, [0.0, 0.5, 1.0, 0.5]),
        ("cosine", {}, [0.3827, 0.9239, 0.9239, 0.3827]),
        ("exponential", {}, [0.2231, 0.6065, 0.6065, 0.2231]),
        ("gaussian", {}, [0.3247, 0.8825, 0.8825, 0.3247]),
        ("kaiser", {"beta": 2.0}, [0.4387, 0.9243, 0.9243, 0.4387]),
    ],
)
def test_windows(name: str, options: dict, expected: list) -> None:
    found = getattr(torch.signal.windows, name)(4, **options)
    assert [abs(v) for v in values(found)] == expected
    assert found.dtype == torch.float32


def test_windows_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="general_cosine requires non-negative window length, got M=-1"):
        torch.signal.windows.hann(-1)
    with pytest.raises(ValueError, match="expects float32 or float64 dtypes, got: torch.int32"):
        torch.signal.windows.hann(3, dtype=torch.int32)
    with pytest.raises(TypeError, match="Coefficients must be a list/tuple"):
        torch.signal.windows.general_cosine(3, a=3)
