"""Calls with a slip in them: the class and the sentence of the error are PyTorch's. The calls and the answers are recorded: see tests/record_wrong_calls.py."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import _wrong_calls
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import native

RECORDED = json.loads((Path(__file__).parent / "data" / "wrong_calls.json").read_text())
OTHER_CLASS = {
    "T.stft(T.ones(2,3), 1, True, True, True, 1.5, 'a')": "bools are no lengths before the signal is padded",
    "T.ones(2,3).clamp(True, T.ones(2,3))": "one limit may be a number where the other is a tensor",
}
"""The calls whose errors are of another class, with the reason."""


def answer(call: str) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(call, {"T": torch})
        except Exception as error:  # noqa: BLE001 - which one it is is what is tested
            return type(error).__name__, str(error).replace("mindtorch_v2", "torch")
    return "no error", ""


@pytest.fixture(scope="module")
def answers():
    return {call: answer(call) for call in RECORDED}


def test_the_class_is_pytorchs(answers):
    other = {call: answers[call] for call, (kind, _) in RECORDED.items() if answers[call][0] != kind}
    assert other.keys() == OTHER_CLASS.keys(), other


def test_nineteen_sentences_of_twenty_are_pytorchs(answers):
    other = {call: (answers[call][1], text) for call, (_, text) in RECORDED.items() if answers[call][1] != text}
    assert len(other) <= 0.05 * len(RECORDED), other


NO_LAZY = "conjugates are computed at once, so that there is no bit for them"
REFUSED_SAFELY = "what is no file of weights is refused by the reader, in its own words"
NO_SUCH_BACKEND = "the devices that are there are cpu, meta and npu"
OTHER_CLASS_BY_HAND = {
    "C(2).conj().numpy()": NO_LAZY,
    "C(2).conj().view(T.float32)": NO_LAZY,
    "F.adaptive_avg_pool3d(X(2,2),1)": "dimensions are counted before they are looked at",
    "T.bartlett_window(5,layout=T.sparse_coo)": "no window is sparse, and all say so alike",
    "T.func.linearize(lambda x:x,5)": "a number is its own derivative",
    "T.load(io.BytesIO(b'\\x80\\x02.'))": REFUSED_SAFELY,
    "T.load(io.BytesIO(b'abcdefgh'))": REFUSED_SAFELY,
    "T.load(io.StringIO('abc'))": REFUSED_SAFELY,
    "T.nested.nested_tensor([X(2),X(3)]).view(2)": "nested tensors take what works on each part alone",
    "T.nested.to_padded_tensor(X(2),0.)": "what is no nested tensor is refused before there are backends",
    "T.ones(2).cuda(0)": NO_SUCH_BACKEND,
    "T.ones(2).to('hpu')": NO_SUCH_BACKEND,
    "X(2).__dlpack__(copy='a')": "numpy makes the capsule",
    "X(2).device(5)": "devices decorate",
    "X(2).is_pinned(5)": NO_SUCH_BACKEND,
    "X(2).to_mkldnn(1)": "there is no layout of MKL-DNN",
    "X(2).to_sparse_csr()": "a vector is refused for what it is",
    "x=L(3);(x*2).sum().backward(T.ones((),device='meta'))": "the device of a gradient is looked at first",
    "x=X(3);x._base=5": "the base is the library's to set",
}
"""The calls of the list by hand whose errors are of another class, with the reason."""


@pytest.fixture(scope="module")
def answers_by_hand():
    _wrong_calls.prepare(torch)
    recorded = json.loads(_wrong_calls.RECORD.read_text())
    return {call: (_wrong_calls.answer(torch, call), tuple(expected)) for call, expected in recorded.items()}


def test_the_class_is_pytorchs_of_calls_by_hand(answers_by_hand):
    other = {call: both for call, both in answers_by_hand.items() if both[0][0] != both[1][0]}
    assert other.keys() <= OTHER_CLASS_BY_HAND.keys(), {c: b for c, b in other.items() if c not in OTHER_CLASS_BY_HAND}


def test_nineteen_sentences_of_twenty_are_pytorchs_of_calls_by_hand(answers_by_hand):
    other = {call: both for call, both in answers_by_hand.items() if both[0] != both[1]}
    # Without the extension some members are functions of Python, whose sentences about how many arguments there are name them otherwise.
    share = 0.06 if native.extension is None else 0.05
    assert len(other) <= share * len(answers_by_hand), other


TOO_LONG = "Overflow when unpacking long long"
LONG = {
    "T.ones(2).sum(2**63)": ("ValueError", TOO_LONG),
    "T.ones(2).transpose(0, -2**64)": ("ValueError", TOO_LONG),
    "T.ones(2).size(2**64)": ("ValueError", TOO_LONG),
    "T.ones(2)[2**63]": ("ValueError", TOO_LONG),
    "T.eye(2**64)": ("ValueError", TOO_LONG),
    "T.zeros(2, 2**64)": ("TypeError", f"zeros(): argument 'size' failed to unpack the object at pos 2 with error \"{TOO_LONG}\""),
    "T.ones(2).sum((0, 2**70))": ("TypeError", f"sum(): argument 'dim' failed to unpack the object at pos 2 with error \"{TOO_LONG}\""),
    "T.ones(2).view(2**64)": ("TypeError", f"view(): argument 'size' failed to unpack the object at pos 1 with error \"{TOO_LONG}\""),
    "T.ones(2).add(2**64)": ("OverflowError", "int too big to convert"),
    "T.ones(2).add_(2**64)": ("OverflowError", "int too big to convert"),
    "T.ones(2) == 2**64": ("OverflowError", "int too big to convert"),
    "T.ones(2).fill_(-2**64)": ("OverflowError", "can't convert negative int to unsigned"),
    "T.add(T.ones(2), T.ones(2), alpha=2**64)": ("OverflowError", "int too big to convert"),
    "T.max_pool2d(T.ones(2, 3), [1], [1], [1], 2**70, 5)": ("TypeError", "max_pool2d(): argument 'ceil_mode' (position 6) must be bool, not int"),
    "T.ones(2).add(2**64 - 1)": ("no error", ""),
    "T.ones(2, dtype=T.int64) + 2**63": ("no error", ""),
    "T.tril(T.Generator())": ("TypeError", "tril(): argument 'input' (position 1) must be Tensor, not torch._C.Generator"),
}  # fmt: skip


@pytest.mark.parametrize("call", LONG)
def test_numbers_that_have_no_place_in_64_bits(call):
    """PyTorch's sentences, without the frames of C++ that it adds."""
    assert answer(call) == LONG[call]
