"""`x[...]` to read and to write: what is a view and what is a copy, shapes, and errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mindtorch_v2 as torch

t = torch.tensor
CUBE = np.arange(24).reshape(2, 3, 4)

INDICES = [
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(None, None, 2),
    slice(5, 9),
    slice(-2, None),
    Ellipsis,
    None,
    (0, 1),
    (0, 1, 2),
    (slice(None), 1),
    (Ellipsis, 0),
    (0, Ellipsis),
    (None, 0, Ellipsis, None),
    (slice(None), slice(0, 2), slice(1, None, 2)),
    [0, 1],
    ([0, 1], [2, 0]),
    ([0, 1], slice(None), [3, 0]),
    (slice(None), [2, 0]),
    (slice(None), [0, 1], [1, 2]),
    (0, [2, 0]),
    ([1, 0], 2),
    (None, [0, 1]),
    (Ellipsis, [3, 3]),
    np.array([1, 0]),
    (slice(None), np.array([[0, 2]])),
    (np.array([True, False]),),
    (slice(None), np.array([True, False, True])),
    (0, np.array([True, False, True])),
    CUBE > 11,
    (CUBE > 11)[..., 0],
    True,
    False,
    (0, True),
    np.int64(1),
    (),
]


def torched(index):
    """The same index with tensors in place of arrays."""
    if isinstance(index, np.ndarray):
        return torch.from_numpy(index)
    return tuple(torched(item) for item in index) if isinstance(index, tuple) else index


@pytest.mark.parametrize("index", INDICES, ids=[str(i).replace("\n", "")[:40] for i in INDICES])
def test_reading_is_numpys(index) -> None:
    expected = CUBE[index]
    found = torch.from_numpy(CUBE)[torched(index)]
    assert tuple(found.shape) == expected.shape
    assert found.tolist() == expected.tolist()
    if not isinstance(index, (bool, np.ndarray)):
        assert torch.from_numpy(CUBE)[index].tolist() == expected.tolist()


@pytest.mark.parametrize("index", INDICES, ids=[str(i).replace("\n", "")[:40] for i in INDICES])
def test_writing_is_numpys(index) -> None:
    expected = CUBE.copy()
    expected[index] = -7
    found = torch.from_numpy(CUBE.copy())
    found[torched(index)] = -7
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("index", INDICES, ids=[str(i).replace("\n", "")[:40] for i in INDICES])
def test_writing_a_tensor(index) -> None:
    shape = CUBE[index].shape
    values = np.arange(100, 100 + int(np.prod(shape))).reshape(shape)
    if len({*CUBE[index].ravel().tolist()}) < values.size:
        pytest.skip("an element is written twice")
    expected = CUBE.copy()
    expected[index] = values
    found = torch.from_numpy(CUBE.copy())
    found[torched(index)] = torch.from_numpy(values)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("index", INDICES, ids=[str(i).replace("\n", "")[:40] for i in INDICES])
def test_meta_gives_the_same_geometry(index) -> None:
    index = torched(index)
    cpu = torch.from_numpy(CUBE)[index]
    masks = [
        i
        for i in (index if isinstance(index, tuple) else (index,))
        if isinstance(i, torch.Tensor) and i.dtype is torch.bool
    ]
    if masks:
        pytest.skip("the shape depends on the mask")
    meta = torch.empty(2, 3, 4, dtype=torch.int64, device="meta")[index]
    assert (meta.shape, meta.stride()) == (cpu.shape, cpu.stride())


def test_a_list_of_lists_is_a_tuple() -> None:
    x = torch.from_numpy(CUBE)
    assert x[[[0, 1], [1, 0]]].tolist() == x[[0, 1], [1, 0]].tolist()
    assert x[[slice(0, 1), [1, 0]]].tolist() == x[0:1, [1, 0]].tolist()
    assert x[[t([0, 1]), t([1, 0])]].tolist() == x[[0, 1], [1, 0]].tolist()


def test_masks_are_unknown_to_meta() -> None:
    with pytest.raises(NotImplementedError):
        torch.empty(3, device="meta")[torch.empty(3, dtype=torch.bool, device="meta")]


@pytest.mark.parametrize("index", [0, slice(1, 2), (Ellipsis, 1), None, (slice(None), 0), ()])
def test_basic_indices_are_views(index) -> None:
    x = torch.zeros(2, 3)
    y = x[index]
    assert y._base is x
    y.fill_(5)
    assert (x == 5).any()


@pytest.mark.parametrize("index", [[0], t([0]), (slice(None), [0, 1]), t([True, False])])
def test_advanced_indices_are_copies(index) -> None:
    x = torch.zeros(2, 3)
    y = x[index]
    assert y._base is None
    y.fill_(5)
    assert not (x == 5).any()


def test_a_zero_dim_tensor_is_an_int() -> None:
    x = torch.arange(6).view(2, 3)
    assert x[t(1)].tolist() == [3, 4, 5] and x[t(1), t(2)].item() == 5
    assert x[t(1)]._base is x or x[t(1)]._base is x._base


def test_uint8_masks_warn() -> None:
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert torch.arange(3)[t([1, 0, 1], dtype=torch.uint8)].tolist() == [0, 2]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8])
def test_index_dtypes(dtype) -> None:
    if dtype in (torch.int64, torch.int32):
        assert torch.arange(3)[t([2, -1], dtype=dtype)].tolist() == [2, 2]
    else:
        with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
            torch.arange(3)[t([2], dtype=dtype)]


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        ((0, 5), IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (t([2]), IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (t([-3]), IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
        ((t([0, 1]), t([0, 1, 2])), IndexError, "shape mismatch: indexing tensors could not be broadcast together"),
        (
            t([True, False, True]),
            IndexError,
            "The shape of the mask \\[3\\] at index 0 does not match the shape of the indexed tensor",
        ),
        (1.0, (IndexError, TypeError), "."),
        ("a", (IndexError, TypeError), "."),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "step must be greater than zero|slice step cannot be zero"),
        (t([1.0]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    ],
)
def test_errors(index, error, message) -> None:
    with pytest.raises(error, match=message):
        torch.arange(6).view(2, 3)[index]


def test_a_scalar_has_no_dimension_to_index() -> None:
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        t(1)[0]
    assert t(1)[None].shape == (1,) and t(1)[...].shape == () and t(1)[True].shape == (1,)


def test_writing_promotes_nothing() -> None:
    x = torch.zeros(3, dtype=torch.int64)
    x[0] = 2.9
    x[1:] = t([1.5, 2.5])
    assert x.tolist() == [2, 1, 2]
    y = torch.zeros(2)
    y[0] = t(3, dtype=torch.int64)
    y[t([1])] = t([4.0])
    assert y.tolist() == [3.0, 4.0]


def test_index_put_wants_one_dtype() -> None:
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        torch.zeros(3)[t([0])] = t([1], dtype=torch.int64)


def test_writing_what_does_not_fit() -> None:
    with pytest.raises(
        RuntimeError, match="The expanded size of the tensor \\(3\\) must match the existing size \\(2\\)"
    ):
        torch.zeros(2, 3)[0] = t([1.0, 2.0])
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape \\[2\\]"):
        torch.zeros(4)[t([0, 1, 2])] = t([1.0, 2.0])


EMPTY = torch.zeros(0)
OUTSIDE = {
    "gather": (
        lambda: torch.gather(EMPTY, 0, t(0)),
        RuntimeError,
        "index 0 is out of bounds for dimension 0 with size 0",
    ),
    "put": (
        lambda: torch.put(EMPTY, t([0]), t([1.0])),
        IndexError,
        "put_(): Tried to put elements into an empty tensor",
    ),
    "embedding": (
        lambda: torch.nn.functional.embedding(t([0]), torch.zeros(0, 3)),
        RuntimeError,
        "index_select(): self indexing axis dim should be positive",
    ),
    "masks": (
        lambda: torch.zeros(3, 0)[t([True, False, True]), t([0])],
        IndexError,
        "index is out of bounds for dimension with size 0",
    ),
    "_unsafe_index": (
        lambda: torch._unsafe_index(torch.zeros(2), [t([True, False])]),
        RuntimeError,
        "_unsafe_index found unexpected index type Bool",
    ),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_tensors_without_elements_and_wrong_indices_say(case: str) -> None:
    call, error, message = OUTSIDE[case]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("accumulate", [False, True])
def test_masks_that_do_not_broadcast(accumulate: bool) -> None:
    indices = t([[True, False], [True, True]]), t([0, 1])
    message = "shape mismatch: indexing tensors could not be broadcast together with shapes \\[3\\], \\[3\\], \\[2\\]"
    x = torch.zeros(2, 2, 3)
    with pytest.raises(IndexError, match=message):
        x[indices]
    with pytest.raises(IndexError, match=message):
        x.index_put_(indices, t(1.0), accumulate)
    with pytest.raises(IndexError, match="with shapes \\[2\\], \\[0\\]"):
        x[t([0, 1]), t(False)]


def test_leading_ones_are_dropped() -> None:
    x = torch.zeros(3)
    x[...] = torch.ones(1, 1, 3)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_augmented_assignment() -> None:
    x = torch.zeros(2, 3)
    x[0] += 1
    x[:, t([1])] *= 2
    x[x == 2] -= 5
    assert x.tolist() == [[1.0, -3.0, 1.0], [0.0, 0.0, 0.0]]


def test_writing_bumps_the_version() -> None:
    x = torch.zeros(3)
    versions = []
    for index in (0, slice(1), t([0]), x == 0):
        x[index] = 1
        versions.append(x._version)
    assert versions == sorted(set(versions)) and versions[0] >= 1


def test_gradients_of_reading() -> None:
    for index in (0, slice(1), (Ellipsis, 1), t([0, 0]), ([0, 1], [1, 1]), t([True, False])):
        x = torch.ones(2, 3, requires_grad=True)
        x[index].sum().backward()
        counts = np.zeros((2, 3))
        raw = index.numpy() if isinstance(index, torch.Tensor) else index
        np.add.at(counts, raw, 1)
        assert x.grad.tolist() == counts.tolist()


def test_gradients_of_writing() -> None:
    for index in (0, slice(1), t([0]), t([True, False])):
        x = torch.ones(2, 3, requires_grad=True)
        value = torch.full((3,), 2.0, requires_grad=True)
        y = x * 1
        y[index] = value
        (y * 3).sum().backward()
        assert x.grad.tolist() == [[0.0] * 3, [3.0] * 3]
        assert value.grad.tolist() == [3.0] * 3


def test_iteration_and_membership() -> None:
    x = torch.arange(6).view(3, 2)
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    first, *_rest = x
    first[0] = 9
    assert x[0, 0] == 9
    assert list(itertools.chain(*x.tolist())) == [9, 1, 2, 3, 4, 5]


def test_large_and_negative_ends() -> None:
    x = torch.arange(5)
    for start, end in itertools.product((None, -9, -2, 0, 2, 9), repeat=2):
        assert x[start:end].tolist() == list(range(5))[start:end]


def test_take_and_put_along() -> None:
    x = t([[3, 1, 2], [6, 5, 4]])
    order = x.argsort(1)
    assert x.gather(1, order).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert torch.take_along_dim(x, order, 1).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert torch.zeros_like(x).scatter_(1, order, x.gather(1, order)).tolist() == x.tolist()


def test_index_add_of_bytes_wraps_its_factor() -> None:
    one, two = torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([0, 1])
    assert torch.zeros(3, dtype=torch.uint8).index_add(0, two, one, alpha=-1).tolist() == [255, 254, 0]
