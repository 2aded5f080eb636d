"""Stores: what PyTorch's say, for each kind."""

import datetime
import os
import threading

import pytest

import mindtorch_v2.distributed as dist

SOON = datetime.timedelta(milliseconds=60)


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    made = {
        "hash": dist.HashStore,
        "file": lambda: dist.FileStore(str(tmp_path / "store"), 1),
        "tcp": lambda: dist.TCPStore("localhost", 0, 1, True),
        "prefix": lambda: dist.PrefixStore("some", dist.HashStore()),
    }[request.param]()
    assert made.timeout == datetime.timedelta(minutes=5)
    return made


def test_keys_and_values(store):
    before = store.num_keys()
    store.set("a", "1")
    store.set("b", b"\x00\xff\n 3")
    assert store.get("a") == b"1" and store.get("b") == b"\x00\xff\n 3" and store.num_keys() == before + 2
    assert store.add("n", 3) == 3 and store.add("n", -1) == 2 and store.get("n") == b"2"
    assert store.compare_set("a", "1", "2") == b"2" and store.compare_set("a", "1", "3") == b"2"
    assert store.compare_set("new", "", "3") == b"3" and store.compare_set("newer", "x", "3") == b"x"
    assert store.check(["a", "n"]) and not store.check(["a", "newer"])
    store.append("a", "4")
    store.append("c", "5")
    assert store.get("a") == b"24" and store.get("c") == b"5"
    store.multi_set(["x", "y"], ["6", "7"])
    assert store.multi_get(["x", "y", "a"]) == [b"6", b"7", b"24"]
    assert store.delete_key("x") and not store.check(["x"]) and "y" in store.list_keys()


def test_what_does_not_come_in_time(store):
    store.set_timeout(SOON)
    assert store.timeout == SOON
    for call in (lambda: store.get("no"), lambda: store.wait(["no"]), lambda: store.wait(["no", "nor"], SOON)):
        with pytest.raises(dist.DistStoreError, match="(?i)timeout"):
            call()
    threading.Timer(0.05, store.clone().set, ("late", "1")).start()
    store.wait(["late"], datetime.timedelta(seconds=30))
    assert store.get("late") == b"1"


def test_wrong_arguments(store):
    for call in (lambda: store.set(1, 2), lambda: store.add("a", "x"), lambda: store.check("a")):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call()
    store.set("a", "no number")
    with pytest.raises(ValueError, match="stoll"):
        store.add("a", 1)


def test_queues():
    for store in (dist.HashStore(), dist.TCPStore("localhost", 0, 1, True)):
        store.queue_push("q", "1")
        store.queue_push("q", "2")
        assert store.queue_len("q") == 2 and store.queue_pop("q") == b"1" and store.queue_pop("q") == b"2"
        with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
            store.queue_pop("q", False)


def test_tcp_errors_and_clients():
    store = dist.TCPStore("localhost", 0, None, True)
    client = dist.TCPStore("localhost", store.port)
    client.set("a", "1")
    assert store.get("a") == b"1" and store.num_keys() == 2  # one counts the stores
    with pytest.raises(dist.DistNetworkError, match="EADDRINUSE"):
        dist.TCPStore("localhost", store.port, 1, True)
    with pytest.raises(
        dist.DistNetworkError, match=r"timed out after 60ms while trying to connect to \(localhost, 1\)"
    ):
        dist.TCPStore("localhost", 1, timeout=SOON)
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("localhost", 0, 2, True, timeout=SOON)
    del store
    with pytest.raises(dist.DistNetworkError):
        client.get("a")


def test_the_last_user_removes_the_file(tmp_path):
    path = str(tmp_path / "store")
    one, two = dist.FileStore(path, 2), dist.FileStore(path, 2)
    one.set("a", "1")
    assert two.get("a") == b"1" and two.path == path
    one._finalizer()
    assert os.path.exists(path)
    two._finalizer()
    assert not os.path.exists(path)


def test_prefixes_and_stores_of_programs():
    class Mine(dist.Store):
        def __init__(self):
            super().__init__()
            self.kept = {}

        def set(self, key, value):
            self.kept[key] = value

        def get(self, key):
            return self.kept[key]

    inner = Mine()
    outer = dist.PrefixStore("a", dist.PrefixStore("b", inner))
    outer.set("k", "v")
    assert inner.kept == {"b/a/k": "v"} and outer.get("k") == "v" and outer._underlying_non_prefix_store is inner
