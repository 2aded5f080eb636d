"""`torch.testing.assert_close`: which pairs it takes, and what it says of them, as recorded from PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.testing import assert_close

T = torch.tensor
P = torch.nn.Parameter
ONE, TWO = T([1.0]), T([2.0])


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (1, 2, {"rtol": 0.5, "atol": 0}),
        (math.nan, math.nan, {"equal_nan": True}),
        (math.inf, math.inf, {}),
        (np.float32(1), 1.0, {}),
        (np.bool_(1), True, {}),
        ([1], (1,), {}),
        ([], [], {}),
        (T([1.0, 2]), T([1, 2]), {"check_dtype": False}),
        (ONE, P(T([1.0])), {}),
        (np.array([1.0]), np.array([1.0]), {}),
        ({1: ONE, "a": [2]}, {"a": [2], 1: ONE}, {}),
        (torch.ones(2, device="meta"), torch.zeros(2, device="meta"), {}),
        (torch.ones(2, device="meta"), torch.zeros(2), {"check_device": False}),
        (ONE, TWO, {"rtol": 0, "atol": 1}),
    ],
)
def test_close(actual, expected, options):
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (1, 1.0, "The (d)types do not match: <class 'int'> != <class 'float'>."),
        (1, 2, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
        (
            1.0,
            1.25,
            "Scalars are not close!\n\nExpected 1.25 but got 1.0.\nAbsolute difference: 0.25 (up to 1e-07 allowed)\n"
            "Relative difference: 0.2 (up to 1e-07 allowed)",
        ),
        (True, False, "Booleans mismatch: True is not False"),
        (None, 0, "None mismatch: None is not 0"),
        (T(2.0), None, "None mismatch: 2.0 is not None"),
        (
            T([1, 255], dtype=torch.uint8),
            T([255, 1], dtype=torch.uint8),
            "Tensor-likes are not equal!\n\nMismatched elements: 2 / 2 (100.0%)\nGreatest absolute difference: 254 at index (0,)\n"
            "Greatest relative difference: 254.0 at index (1,)",
        ),
        (
            T([[True, False]]),
            T([[True, True]]),
            "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 1 at index (0, 1)\n"
            "Greatest relative difference: 1.0 at index (0, 1)",
        ),
        (
            T([math.nan, 1.0]),
            T([1.0, 2.0]),
            "Tensor-likes are not close!\n\nMismatched elements: 2 / 2 (100.0%)\nGreatest absolute difference: nan at index (0,) "
            "(up to 1e-05 allowed)\nGreatest relative difference: nan at index (0,) (up to 1.3e-06 allowed)",
        ),
        (
            ONE.to(torch.float8_e5m2),
            TWO.to(torch.float8_e5m2),
            "Tensor-likes are not 'equal'!\n\nMismatched elements: 1 / 1 (100.0%)\nThe first mismatched element is at index (0,).",
        ),
        (ONE, T([[1.0]]), "The values for attribute 'shape' do not match: torch.Size([1]) != torch.Size([1, 1])."),
        (ONE, T([1]), "The values for attribute 'dtype' do not match: torch.float32 != torch.int64."),
        ([1, 2], [1], "The length of the sequences mismatch: 2 != 1"),
        (
            {"a": 1, "b": 2},
            {"a": 1, "c": 2},
            "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['c']\n"
            "Additional keys in the actual mapping: ['b']",
        ),
        (
            [1, {"b": [True, 3]}],
            [1, {"b": [True, 4]}],
            "Scalars are not equal!\n\nExpected 4 but got 3.\nAbsolute difference: 1\nRelative difference: 0.25\n\n"
            "The failure occurred for item [1]['b'][1]",
        ),
    ],
)
def test_what_is_said_of_a_difference(actual, expected, words):
    with pytest.raises(AssertionError) as error:
        assert_close(actual, expected)
    assert str(error.value) == words


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (True, T(1), {}),
        ("a", "a", {}),
        (ONE, P(ONE), {"allow_subclasses": False}),
        (ONE, np.array([1.0]), {}),
        (1.0, T(1.0), {}),
        (torch.float32, torch.float32, {"msg": "never said"}),
    ],
)
def test_pairs_that_cannot_be_compared(actual, expected, options):
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type <class .*> and <class"):
        assert_close(actual, expected, **options)


def test_words_of_the_caller_and_half_a_tolerance():
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(ONE, TWO, msg="mine")
    with pytest.raises(AssertionError, match="^mine: Tensor-likes are not equal"):
        assert_close(ONE, TWO, rtol=0, atol=0, msg=lambda words: f"mine: {words}")
    with pytest.raises(
        ValueError, match="^Both 'rtol' and 'atol' must be either specified or omitted, but got no atol.$"
    ):
        assert_close(ONE, ONE, rtol=1)


def coordinates(indices, values, size=(2, 2)):
    return torch.sparse_coo_tensor(T(indices), T(values), size)


def rows(starts, columns, values):
    return torch.sparse_csr_tensor(T(starts), T(columns), T(values), (2, 2))


SPARSE = coordinates([[0, 1], [1, 0]], [1.0, 2.0])
ROWS = rows([0, 1, 2], [1, 0], [1.0, 2.0])
FAR = "Mismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 2.0 at index (1,) (up to 1e-05 allowed)\n"


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (SPARSE, coordinates([[0, 1], [1, 0]], [1.0, 4.0]), f"Sparse COO values are not close!\n\n{FAR}"),
        (SPARSE, coordinates([[0, 1], [1, 1]], [1.0, 2.0]), "Sparse COO indices are not equal!"),
        (
            SPARSE,
            coordinates([[0], [1]], [1.0]),
            "The number of specified values in sparse COO tensors does not match: 2 != 1",
        ),
        (
            coordinates([[0, 1]], [[0.0, 1.0], [2.0, 0.0]]),
            SPARSE,
            "The number of sparse dimensions in sparse COO tensors does not match: 1 != 2",
        ),
        (
            SPARSE,
            SPARSE.to_dense(),
            "The values for attribute 'layout' do not match: torch.sparse_coo != torch.strided.",
        ),
        (ROWS, rows([0, 1, 2], [1, 0], [1.0, 4.0]), f"Sparse CSR values are not close!\n\n{FAR}"),
        (ROWS, rows([0, 2, 2], [0, 1], [1.0, 2.0]), "Sparse CSR crow_indices are not equal!"),
        (ROWS, rows([0, 1, 2], [1, 1], [1.0, 2.0]), "Sparse CSR col_indices are not equal!"),
        (
            ROWS,
            rows([0, 1, 1], [1], [1.0]),
            "The number of specified values in sparse CSR tensors does not match: 2 != 1",
        ),
    ],
)
def test_sparse_tensors_that_differ(actual, expected, words):
    assert_close(actual, actual.clone())
    with pytest.raises(AssertionError) as error:
        assert_close(actual, expected)
    assert str(error.value).startswith(words)


def test_layouts_may_be_let_be():
    assert_close(SPARSE, SPARSE.to_dense(), check_layout=False)
    assert_close(ROWS, SPARSE, check_layout=False)
