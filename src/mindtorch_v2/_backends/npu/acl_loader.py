"""Finding CANN and opening its libraries, or the emulator's.

Note [Which libraries]
`libascendcl.so` has the runtime, `libnnopbase.so` descriptors and executors. Operators are in one `libopapi.so` up to CANN 8.3 and in
`libopapi_{math,nn,...}.so` from 8.5 on; an installation may hold both, which must not be mixed: the split ones win. Custom operators
(`libcust_opapi.so`) come before either. All of CANN's libraries are taken from one installation. A symbol is looked up when it is first
called, in the order in which torch_npu looks, so what a version lacks is an error only of who calls it. A library of operators that cannot be opened is
a warning.

cffi (its part for run time, `_cffi_backend`) is imported by `load`, not before, and ctypes by what looks into the emulator: where neither can be had there is no NPU, which
programs that ask for one are told.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import _forks
from .errors import CannNotFound, SymbolNotFound

RUNTIME = "libascendcl.so"
BASE = "libnnopbase.so"
HCCL = "libhccl.so"
MONOLITHIC = "libopapi.so"
SPLIT = tuple(f"libopapi_{part}.so" for part in ("math", "nn", "cv", "transformer", "oam", "legacy"))
CUSTOM = "libcust_opapi.so"
DRIVER = "libascend_hal.so"
EMULATOR = Path(__file__).parent / "emulator" / "build" / "libascend_emulator.so"

HOME_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
USUAL_PARENTS = ("/usr/local/Ascend", "~/Ascend")
DRIVER_FOLDERS = ("/usr/local/Ascend/driver/lib64/driver", "/usr/local/Ascend/driver/lib64")
_USUAL_NAMES = ("cann", "cann-*", "ascend-toolkit/latest", "nnrt/latest", "latest")
_MACHINES = ("aarch64-linux", "x86_64-linux")


@dataclass(frozen=True)
class Cann:
    """An installation: its folder, the libraries to open, and its version (empty when nothing says it)."""

    home: Path
    runtime: Path
    base: Path | None
    operators: tuple[Path, ...]
    custom: tuple[Path, ...]
    version: str


def emulated() -> bool:
    """Whether `MINDTORCH_NPU_EMULATOR` asks for the emulator."""
    return os.environ.get("MINDTORCH_NPU_EMULATOR", "") not in ("", "0")


def homes() -> list[tuple[Path, str]]:
    """The folders in which CANN may be, first choice first, each with what named it."""
    found: dict[Path, str] = {}
    for name in HOME_VARIABLES:
        value = os.environ.get(name)
        if value:
            found.setdefault(Path(value), name)
    opp = os.environ.get("ASCEND_OPP_PATH")
    if opp:
        found.setdefault(Path(opp).parent, "ASCEND_OPP_PATH")
    for parent in USUAL_PARENTS:
        folder = Path(parent).expanduser()
        for name in _USUAL_NAMES:
            for path in sorted(folder.glob(name), reverse=True) if "*" in name else [folder / name]:
                found.setdefault(path, "usual folder")
    return list(found.items())


def _folders_of(home: Path) -> list[Path]:
    """Where an installation keeps its libraries."""
    return [home / "lib64", *(home / machine / "lib64" for machine in _MACHINES)]


def _names() -> str:
    return ", ".join(str(folder) for folder in _folders_of(Path()))


def _search_path() -> list[Path]:
    return [Path(entry) for entry in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if entry]


def find_cann() -> Cann | None:
    """The first installation that has the runtime library; nothing is opened."""
    candidates = [(folder, home) for home, _ in homes() for folder in _folders_of(home)]
    candidates += [(folder, folder.parent) for folder in _search_path()]
    for folder, home in candidates:
        if (folder / RUNTIME).exists():
            return _cann(folder, home)
    return None


def find_runtime() -> Path | None:
    """The runtime library that would be opened, or None."""
    cann = find_cann()
    return None if cann is None else cann.runtime


def find_driver() -> Path | None:
    """The driver's library, which the runtime needs for a device; it is installed apart from CANN."""
    folders = [Path(folder) for folder in DRIVER_FOLDERS]
    folders += _search_path()
    return next((folder / DRIVER for folder in folders if (folder / DRIVER).exists()), None)


def driver_version() -> str:
    """The driver's version, or nothing."""
    return _read_version(Path("/usr/local/Ascend/driver/version.info"))


def where() -> list[str]:
    """What was looked for and where: one line a folder, with what named it and what is there."""
    if emulated():
        return [f"{EMULATOR} (MINDTORCH_NPU_EMULATOR): {'found' if EMULATOR.exists() else 'not built'}"]
    return places()


def places() -> list[str]:
    """Where CANN is looked for: one line a folder, with what named it and what is there; and the variables that are not set."""
    lines = []
    for home, origin in homes():
        if not home.is_dir():
            lines.append(f"{home} ({origin}): no such folder")
            continue
        folders = [folder for folder in _folders_of(home) if (folder / RUNTIME).exists()]
        lines.append(f"{home} ({origin}): {f'found in {folders[0]}' if folders else f'no {RUNTIME} in {_names()}'}")
    for folder in _search_path():
        lines.append(f"{folder} (LD_LIBRARY_PATH): {'found' if (folder / RUNTIME).exists() else f'no {RUNTIME}'}")
    for name in (*HOME_VARIABLES, "ASCEND_OPP_PATH", "LD_LIBRARY_PATH"):
        if not os.environ.get(name):
            lines.append(f"{name}: not set")
    return lines


def not_found() -> str:
    """The sentence of a machine without CANN (or without a built emulator)."""
    if emulated():
        return f"the emulator of the NPU is asked for (MINDTORCH_NPU_EMULATOR) but {EMULATOR} is not built: run `make emulator`"
    looked = "\n".join(f"  {line}" for line in where())
    return (
        f"CANN's runtime library ({RUNTIME}) was not found on this machine. Looked in:\n{looked}\n"
        "Install the Ascend driver and the CANN toolkit (from 8.5 on with the operator package of the chip, before with its kernels), then "
        "`source /usr/local/Ascend/ascend-toolkit/set_env.sh` (newer: /usr/local/Ascend/cann/set_env.sh), or set ASCEND_HOME_PATH to the "
        "installation. Without hardware, `make emulator` and MINDTORCH_NPU_EMULATOR=1 give an emulated NPU."
    )


def _cann(folder: Path, home: Path) -> Cann:
    split = tuple(folder / name for name in SPLIT if (folder / name).exists())
    whole = (folder / MONOLITHIC,) if (folder / MONOLITHIC).exists() else ()
    base = folder / BASE
    return Cann(
        home=home,
        runtime=folder / RUNTIME,
        base=base if base.exists() else None,
        operators=split or whole,  # see Note [Which libraries]
        custom=tuple(_custom(home)),
        version=cann_version(home),
    )


def _custom(home: Path) -> Iterator[Path]:
    """Custom operator libraries: those of ASCEND_CUSTOM_OPP_PATH, then the vendors of ASCEND_OPP_PATH in their configured order."""
    for entry in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(os.pathsep):
        path = Path(entry) / "op_api" / "lib" / CUSTOM
        if entry and path.exists():
            yield path
    vendors = Path(os.environ.get("ASCEND_OPP_PATH") or home / "opp") / "vendors"
    config = vendors / "config.ini"
    if config.exists():
        match = re.search(r"^\s*load_priority\s*=\s*(.*)$", config.read_text(encoding="utf-8"), re.MULTILINE)
        for name in match[1].split(",") if match else ():
            path = vendors / name.strip() / "op_api" / "lib" / CUSTOM
            if name.strip() and path.exists():
                yield path


def cann_version(home: Path) -> str:
    """The version of an installation, by its information files, else by its folder's name; empty when neither says it."""
    files = [home / machine / "ascend_toolkit_install.info" for machine in _MACHINES]
    files += [home / "version.cfg", home / "version.info", home / "compiler" / "version.info"]
    for file in files:
        version = _read_version(file)
        if version:
            return version
    match = re.search(r"(\d+\.\d+(?:\.\w+)*)$", home.resolve().name)
    return match[1] if match else ""


def _read_version(file: Path) -> str:
    if not file.is_file():
        return ""
    text = file.read_text(encoding="utf-8", errors="replace")
    match = re.search(
        r"^\s*(?:version|\w*running_version|package_version)\s*=\s*\[?(?:[\d.]+:)?([\w.]+)",
        text,
        re.MULTILINE | re.IGNORECASE,
    )
    return match[1] if match else ""


def _bindings() -> tuple[Any, dict[str, str]]:
    """cffi's declarations of CANN's functions, and the versions that brought those which CANN 8.1 does not have."""
    try:
        from ..._generated.npu import abi
    except ImportError as error:
        if error.name != "_cffi_backend":
            raise
        raise CannNotFound("the NPU backend needs cffi: `pip install cffi`, or mindtorch_v2[npu]") from error
    return abi.ffi, abi.SINCE


class Libraries:
    """The opened libraries.

    ffi: cffi's declarations. version: CANN's. where: what was looked at. emulator: whether these are the emulator's.
    """

    def __init__(self, cann: Cann | None) -> None:
        self.ffi, self.since = _bindings()
        self.where = where()
        self.emulator = cann is None
        self._symbols: dict[str, Any] = {}
        self._hccl: tuple | None = None
        if cann is None:
            self.home = EMULATOR.parent
            self._runtime = self._operators = (self._open(EMULATOR),)
            self.version = os.environ.get("MINDTORCH_NPU_EMULATOR_CANN", "8.5")
            return
        self.home = cann.home
        self.version = cann.version
        runtime = self._open(cann.runtime)
        base = () if cann.base is None else (self._open(cann.base),)
        self._runtime = (runtime, *base)
        opened = (self._try_open(path) for path in (*cann.custom, *cann.operators))
        self._operators = tuple(library for library in opened if library is not None) + base

    def _open(self, path: Path) -> tuple[Path, Any]:
        try:
            # Bound lazily: a function that another library lacks is an error of who calls it.
            return path, self.ffi.dlopen(str(path), self.ffi.RTLD_LAZY)
        except OSError as error:
            hint = f"source {self.home}/set_env.sh, which names the folders of the libraries that it needs"
            if path.name == RUNTIME and find_driver() is None:
                hint += "; the Ascend driver was not found either"
            raise CannNotFound(f"{path} was found but cannot be opened: {error} ({hint})") from error

    def _try_open(self, path: Path) -> tuple[Path, Any] | None:
        """A library of operators; None, with a warning, where it cannot be opened: what it has is missing then, and the others work."""
        try:
            return self._open(path)
        except CannNotFound as error:
            warnings.warn(f"npu: operators of {path.name} are missing: {error}", UserWarning, stacklevel=2)
            return None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are open, in the order in which symbols are looked up."""
        return tuple(dict.fromkeys(path for path, _ in (*self._runtime, *self._operators)))

    def constant(self, name: str) -> int:
        """The value of an enum's member or a macro of CANN's headers."""
        return getattr(self._runtime[0][1], name)

    def error_names(self) -> dict[int, str]:
        """Names of status codes."""
        lib = self._runtime[0][1]
        names = [name for name in dir(lib) if name.startswith(("ACL_ERROR_", "ACLNN_ERR_"))]
        return {getattr(lib, name): name for name in names}

    def has(self, name: str) -> bool:
        """Whether a function exists in this installation."""
        return self._find(name) is not None

    def symbol(self, name: str) -> Any:
        """A C function. SymbolNotFound names the function, the version and where it was looked for."""
        function = self._symbols.get(name)
        if function is None:
            function = self._find(name)
            if function is None:
                raise SymbolNotFound(self._missing(name), operation=name)
            self._symbols[name] = function
        return function

    def _find(self, name: str) -> Any:
        if name in self._symbols:
            return self._symbols[name]
        if self.emulator and self._emulator_lacks(name):
            return None
        for _, lib in (
            self._collectives()
            if name.startswith("Hccl")
            else self._operators
            if name.startswith("aclnn")
            else self._runtime
        ):
            try:
                return getattr(lib, name)
            except self.ffi.error:
                continue  # the next library may have it
        return None

    def _collectives(self) -> tuple:
        """HCCL's library, which is opened with the first of its functions; nothing where it is not installed."""
        if self._hccl is None:
            path = self._runtime[0][0].with_name(HCCL)
            self._hccl = self._runtime[:1] if self.emulator else (self._open(path),) if path.exists() else ()
        return self._hccl

    def _emulator_lacks(self, name: str) -> str:
        """The profile that lacks a function, or nothing."""
        if name.startswith("em"):
            return ""
        import ctypes

        missing = self.own("emMissing", ctypes.c_char_p, ctypes.c_char_p)(name.encode())
        return "" if missing is None else missing.decode()

    def own(self, name: str, result: Any, *parameters: Any) -> Any:
        """A function of the emulator that is not CANN's (faults, inspection), by ctypes: types of its result and parameters."""
        if not self.emulator:
            raise RuntimeError(f"{name} is a function of the emulator, which is not in use")
        import ctypes

        function = getattr(ctypes.CDLL(str(EMULATOR)), name)
        function.restype, function.argtypes = result, parameters
        return function

    def _missing(self, name: str) -> str:
        version = f"CANN {self.version}" if self.version else "this version of CANN"
        chosen = self._operators if name.startswith("aclnn") else self._runtime
        text = f"{name} is not in {version} ({', '.join(str(path) for path, _ in chosen)})"
        if name in self.since:
            text += f"; CANN {self.since[name]} brought it"
        elif name.startswith("aclnn") and not self.emulator and len(chosen) <= 1:
            text += f"; no operator library ({MONOLITHIC} or {SPLIT[0]}, ...) was found: install the operator package of the chip"
        return text


_libraries: Libraries | None = None
_lock = _forks.lock()


def load() -> Libraries:
    """The libraries, opened with the first call. CannNotFound (a RuntimeError) when there are none, or cffi is missing."""
    global _libraries
    if _libraries is None:
        with _lock:
            if _libraries is None:
                if emulated():
                    if not EMULATOR.exists():
                        raise CannNotFound(not_found())
                    _libraries = Libraries(None)
                else:
                    cann = find_cann()
                    if cann is None:
                        raise CannNotFound(not_found())
                    _libraries = Libraries(cann)
    return _libraries
