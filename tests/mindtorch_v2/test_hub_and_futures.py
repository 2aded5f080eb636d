"""`torch.hub`, `torch.futures` and `torch.jit.fork`."""

from __future__ import annotations

import hashlib
import threading
import zipfile

import pytest
from _fresh import python

import mindtorch_v2 as torch
from mindtorch_v2.futures import Future, collect_all, wait_all

HUBCONF = '''
dependencies = ["numpy"]
from helper_of_hub_test import scale

def model(factor, offset=0):
    """A model."""
    return lambda x: scale(x, factor) + offset

def _hidden():
    pass
'''


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "hubconf.py").write_text(HUBCONF)
    (folder / "helper_of_hub_test.py").write_text("def scale(x, factor):\n    return x * factor\n")
    return folder


@pytest.fixture
def hub_folder(tmp_path):
    before = torch.hub.get_dir()
    torch.hub.set_dir(tmp_path / "hub")
    yield tmp_path / "hub"
    torch.hub.set_dir(before)


def test_a_local_repository(repository):
    made = torch.hub.load(str(repository), "model", 3, source="local", offset=1)
    assert made(torch.ones(2)).tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="Cannot find callable absent in hubconf"):
        torch.hub.load(str(repository), "absent", source="local")
    with pytest.raises(ValueError, match='Unknown source: "elsewhere"'):
        torch.hub.load(str(repository), "model", source="elsewhere")
    (repository / "hubconf.py").write_text("dependencies = ['no_such_package_anywhere']\ndef model(): pass\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_anywhere"):
        torch.hub.load(str(repository), "model", source="local")


def test_a_repository_of_github_is_fetched_once(repository, hub_folder, tmp_path, monkeypatch):
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in repository.iterdir():
            packed.write(file, f"owner-name-1234/{file.name}")
    asked = []

    def urlopen(request):
        asked.append(request.full_url)
        return archive.open("rb")

    monkeypatch.setattr(torch.hub, "urlopen", urlopen)
    with pytest.raises(ValueError, match="not trusted"):
        torch.hub.load("owner/name:v1", "model", 2, trust_repo=False)
    made = torch.hub.load("owner/name:v1", "model", 2, trust_repo=True, verbose=False)
    assert made(torch.ones(1)).item() == 2
    assert torch.hub.list("owner/name:v1", verbose=False) == ["scale", "model"]  # trusted by now
    assert torch.hub.help("owner/name:v1", "model") == "A model."
    assert asked == ["https://github.com/owner/name/zipball/v1"]
    assert (hub_folder / "owner_name_v1" / "hubconf.py").exists()


def test_weights_are_fetched_once_and_checked(hub_folder, tmp_path):
    source = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(2)}, source)
    url = source.as_uri()
    assert torch.hub.load_state_dict_from_url(url, progress=False, weights_only=True)["w"].tolist() == [1, 1]
    source.unlink()
    assert torch.hub.load_state_dict_from_url(url, progress=False)["w"].tolist() == [1, 1]
    source.write_bytes(b"content")
    begins = hashlib.sha256(b"content").hexdigest()[:8]
    torch.hub.download_url_to_file(url, str(tmp_path / "copy"), hash_prefix=begins, progress=False)
    assert (tmp_path / "copy").read_bytes() == b"content"
    with pytest.raises(RuntimeError, match='invalid hash value \\(expected "00000000"'):
        torch.hub.download_url_to_file(url, str(tmp_path / "other"), hash_prefix="00000000", progress=False)
    assert not (tmp_path / "other").exists()


def test_a_future_is_completed_once():
    future: Future[int] = Future()
    assert not future.done()
    after = future.then(lambda f: f.value() + 1)
    seen = []
    future.add_done_callback(lambda f: seen.append(f.value()))
    threading.Timer(0.01, future.set_result, (3,)).start()
    assert future.wait() == 3 and after.wait() == 4 and seen == [3]
    with pytest.raises(RuntimeError, match="a completed Future as complete again"):
        future.set_result(4)


def test_exceptions_of_futures(capsys):
    failed: Future[int] = Future()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception"):
        failed.set_exception(3)  # type: ignore[arg-type]
    failed.set_exception(ValueError("why"))
    done: Future[int] = Future()
    done.set_result(1)
    for wait in (failed.wait, failed.value, collect_all([done, failed]).wait, lambda: wait_all([done, failed])):
        with pytest.raises(ValueError, match="why"):
            wait()

    def bad(future):
        raise KeyError("z")

    with pytest.raises(RuntimeError, match="Got the following error when running the callback: KeyError: 'z'"):
        done.then(bad).wait()
    done.add_done_callback(bad)
    assert "KeyError: 'z'" in capsys.readouterr().err
    assert wait_all([]) == [] and [f.value() for f in collect_all([done]).wait()] == [1]


def test_fork_and_wait():
    python("""
        future = torch.jit.fork(lambda x, y: x + y, 1, y=2)
        assert torch.jit._fork is torch.jit.fork and torch.jit._wait(torch.jit._fork(int, 4)) == 4
        assert torch.jit.wait(future) == 3 and isinstance(future, torch.futures.Future) and torch.Future is torch.jit.Future
    """)
