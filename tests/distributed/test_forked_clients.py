"""Stores of forked processes."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

import mindtorch_v2 as torch


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_asks_by_a_connection_of_its_own() -> None:
    store = torch.distributed.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=20), wait_for_workers=False)
    store.set("a", "1")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            store.set("b", store.get("a") + b"2")
            del store
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert store.get("b") == b"12"  # the parent's connection is what it was
