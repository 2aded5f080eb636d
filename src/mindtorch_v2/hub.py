"""`torch.hub`: models that a repository's `hubconf.py` offers, and files that are fetched once and kept.

A repository is a folder (`source="local"`) or a name on GitHub, `owner/name[:branch or tag]`, whose archive is fetched with Python's own `urllib` and unpacked below
`get_dir()`. Loading runs the repository's code: `trust_repo` says whether one is asked first.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from . import serialization

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
_TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")

_hub_dir: str | None = None


def _get_torch_home() -> str:
    """The folder of cached files: `$TORCH_HOME`, or `torch` below `$XDG_CACHE_HOME` or `~/.cache`."""
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder in which repositories and weights are kept."""
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep repositories and weights in the folder `d`."""
    global _hub_dir
    _hub_dir = os.path.expanduser(os.fspath(d))


# --------------------------------------------------------------------------------------------------------- repositories


@contextmanager
def _importable(folder: str) -> Iterator[None]:
    """Modules of `folder` can be imported within the block."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _import_hubconf(folder: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} has no {MODULE_HUBCONF}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _entry_points(module: ModuleType) -> dict[str, Callable[..., Any]]:
    return {name: value for name, value in vars(module).items() if callable(value) and not name.startswith("_")}


def _entry_point(module: ModuleType, name: Any) -> Callable[..., Any]:
    """A function of a `hubconf.py`, whose dependencies are there.

    Raises:
        ValueError: if `name` is no string.
        RuntimeError: if a package that the file names is missing, or the function is.
    """
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needed = getattr(module, VAR_DEPENDENCY, None) or ()
    absent = [package for package in needed if package not in sys.modules and importlib.util.find_spec(package) is None]
    if absent:
        raise RuntimeError(f"Missing dependencies: {', '.join(absent)}")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def _parse_repo(github: str) -> tuple[str, str, str]:
    """Owner, name and branch or tag of `owner/name[:ref]`; `main` where none is said.

    Raises:
        ValueError: if it is not of that form.
    """
    path, _, ref = github.partition(":")
    owner, slash, name = path.partition("/")
    if not slash or not owner or not name or "/" in name:
        raise ValueError(f"a repository is said as owner/name[:branch or tag], not {github!r}")
    return owner, name, ref or "main"


def _check_trust(owner: str, name: str, trust_repo: Any, calling_fn: str) -> None:
    """Ask, or refuse, before code of a repository that nobody has vouched for is run.

    Raises:
        ValueError: if it is not trusted.
    """
    listed = Path(get_dir(), "trusted_list")
    entry = f"{owner}_{name}"
    known = listed.read_text(encoding="utf-8").split() if listed.exists() else []
    if trust_repo is True or owner in _TRUSTED_OWNERS or entry in known:
        trusted = True
    elif trust_repo in (None, "check"):
        answer = input(
            f"The repository {owner}/{name} does not belong to the list of trusted repositories. Run it? (y/N)"
        )
        trusted = answer.strip().lower() in ("y", "yes")
    else:
        trusted = False
    if not trusted:
        raise ValueError(f"torch.hub.{calling_fn}: the repository {owner}/{name} is not trusted")
    if entry not in known:
        listed.parent.mkdir(parents=True, exist_ok=True)
        with listed.open("a", encoding="utf-8") as f:
            f.write(f"{entry}\n")


def _fetched(github: str, force_reload: bool, trust_repo: Any, calling_fn: str, verbose: bool) -> str:
    """The folder of a repository of GitHub, fetched unless it is there."""
    owner, name, ref = _parse_repo(github)
    os.makedirs(get_dir(), exist_ok=True)
    _check_trust(owner, name, trust_repo, calling_fn)
    folder = os.path.join(get_dir(), "_".join((owner, name, ref.replace("/", "_"))))
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    archive = f"{folder}.zip"
    download_url_to_file(f"https://github.com/{owner}/{name}/zipball/{ref}", archive, progress=False)
    with zipfile.ZipFile(archive) as packed, tempfile.TemporaryDirectory(dir=get_dir()) as unpacked:
        packed.extractall(unpacked)
        (inner,) = os.listdir(unpacked)  # archives of GitHub have one folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(os.path.join(unpacked, inner), folder)
    os.remove(archive)
    return folder


def list(github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None, verbose: bool = True) -> Any:  # fmt: skip
    """The names of the functions that the `hubconf.py` of a repository of GitHub offers."""
    folder = _fetched(github, force_reload, trust_repo, "list", verbose)
    with _importable(folder):
        return [*_entry_points(_import_hubconf(folder))]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
) -> str | None:
    """The docstring of a function of a repository's `hubconf.py`."""
    folder = _fetched(github, force_reload, trust_repo, "help", verbose=True)
    with _importable(folder):
        return _entry_point(_import_hubconf(folder), model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What the function `model` of a repository's `hubconf.py` returns for the remaining arguments.

    Args:
        repo_or_dir: a folder (`source="local"`) or `owner/name[:branch or tag]` on GitHub.
        trust_repo: True runs the code of a repository that nobody has vouched for, False refuses, "check" and None ask.
        force_reload: fetch it again.

    Raises:
        ValueError: for an unknown source, or a repository that is not trusted.
        RuntimeError: if there is no such function, or a package that the file names is missing.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = repo_or_dir if source == "local" else _fetched(repo_or_dir, force_reload, trust_repo, "load", verbose)
    return _load_local(folder, model, *args, **kwargs)


def _load_local(hubconf_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    with _importable(hubconf_dir):
        return _entry_point(_import_hubconf(hubconf_dir), model)(*args, **kwargs)


# ---------------------------------------------------------------------------------------------------------------- files


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch `url` into the file `dst`, which is there only when all of it is.

    Args:
        hash_prefix: what the SHA-256 of the content must begin with.
        progress: say on stderr what is fetched.

    Raises:
        RuntimeError: if the content has another hash.
    """
    target = os.path.expanduser(dst)
    if progress:
        sys.stderr.write(f'Downloading: "{url}" to {target}\n')
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(target) or ".", suffix=".partial", delete=False) as partial:
        try:
            with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as answer:
                while chunk := answer.read(READ_DATA_CHUNK):
                    partial.write(chunk)
                    digest.update(chunk)
            partial.close()
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            shutil.move(partial.name, target)
        finally:
            partial.close()
            if os.path.exists(partial.name):
                os.remove(partial.name)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """What the file at `url` holds, read by `torch.load`; it is fetched once and kept.

    Args:
        model_dir: where it is kept, `checkpoints` below `get_dir()` unless said.
        check_hash: the file's name ends in the beginning of its SHA-256, `-<hash>.<extension>`, which must be right.
        file_name: its name there, that of the URL unless said.

    Raises:
        RuntimeError: if the hash is wrong.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    kept = os.path.join(folder, name)
    if not os.path.exists(kept):
        said = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, kept, said.group(1) if said else None, progress=progress)
    return serialization.load(kept, map_location=map_location, weights_only=weights_only)
