"""What a report of a problem should say of the machine: `python -m mindtorch_v2 collect-env`."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["get_env_info", "get_pretty_env_info", "main"]

_ALLOCATOR_VARIABLES = ("PYTORCH_NPU_ALLOC_CONF",)
_PACKAGES = ("numpy", "ml_dtypes", "scipy", "cffi", "transformers", "safetensors")


def get_env_info() -> dict[str, dict[str, Any]]:
    """Sections with names and values. It opens CANN's libraries when they are found, and asks them for devices; a failure of that is a value."""
    return {
        "versions": _versions(),
        "platform": _platform(),
        "CANN": _cann(),
        "NPU": _npu(),
    }


def _versions() -> dict[str, Any]:
    import mindtorch_v2

    found: dict[str, Any] = {
        "mindtorch_v2": _version_of("mindtorch_v2") or "from its source tree",
        "compatible with torch": str(mindtorch_v2.__version__),
        "C extension": _extension(),
        "Python": sys.version.replace("\n", " "),
    }
    for name in _PACKAGES:
        found[name] = _version_of(name) or "not installed"
    return found


def _version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _extension() -> str:
    if os.environ.get("MINDTORCH_V2_NATIVE") == "0":
        return "left out by MINDTORCH_V2_NATIVE=0"
    try:
        module = importlib.import_module("mindtorch_v2._native")
    except ImportError as error:
        return f"not built ({error})"
    return f"built ({module.__file__})"


def _platform() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
    }


def _cann() -> dict[str, Any]:
    from .._backends.npu import acl_loader

    cann = acl_loader.find_cann()
    driver = acl_loader.find_driver()
    found: dict[str, Any] = {
        "CANN": "not found" if cann is None else f"{cann.version or 'unknown version'} in {cann.home}"
    }
    if cann is not None:
        found["runtime"] = str(cann.runtime)
        found["descriptors"] = str(cann.base or f"{acl_loader.BASE} not found")
        found["operators"] = [
            str(path) for path in cann.operators
        ] or "not found: install the operator package of the chip"
        found["custom operators"] = [str(path) for path in cann.custom] or "none"
    found["driver"] = "not found" if driver is None else f"{acl_loader.driver_version() or 'unknown version'}, {driver}"
    found["looked in"] = acl_loader.places()
    emulator = "asked for by MINDTORCH_NPU_EMULATOR" if acl_loader.emulated() else "not asked for"
    state = "built" if acl_loader.EMULATOR.exists() else "not built (make emulator)"
    found["emulator"] = f"{emulator}, {state}"
    return found


def _npu() -> dict[str, Any]:
    from .. import npu
    from .._backends.npu import runtime

    found: dict[str, Any] = {"available": npu.is_available(), "devices": npu.device_count()}
    if not npu.is_available():
        found["reason"] = _tried(lambda: runtime.unavailable_reason().split(". Looked in:")[0])
    for index in range(npu.device_count()):
        found[f"npu:{index}"] = _tried(lambda index=index: _device(index))
    for name in _ALLOCATOR_VARIABLES:
        found[name] = os.environ.get(name, "not set")
    found["memory fraction"] = _tried(npu.get_per_process_memory_fraction)
    return found


def _device(index: int) -> str:
    from .. import npu

    properties = npu.get_device_properties(index)
    free, total = npu.mem_get_info(index)
    cores = "unknown" if properties.multi_processor_count is None else properties.multi_processor_count
    return (
        f"{properties.name}, {total} bytes of memory, {free} free, cores: {cores}, bfloat16: {npu.is_bf16_supported()}"
    )


def _tried(question: Callable[[], Any]) -> Any:
    """The answer, or the sentence of the error: a report must tell of what is broken, not break."""
    try:
        return question()
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def get_pretty_env_info() -> str:
    """The information as text."""
    lines = []
    for section, values in get_env_info().items():
        lines += [section, "-" * len(section)]
        for name, value in values.items():
            if isinstance(value, list):
                lines.append(f"{name}:")
                lines += [f"  {item}" for item in value]
            else:
                lines.append(f"{name}: {value}")
        lines.append("")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        "python -m mindtorch_v2 collect-env",
        description="Versions, platform, CANN, and NPUs of this machine, for reports of problems.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    print(json.dumps(get_env_info(), indent=2) if options.json else get_pretty_env_info())
    return 0


if __name__ == "__main__":
    sys.exit(main())
