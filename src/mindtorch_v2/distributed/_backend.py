"""The names of backends, and which of them serves which devices."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any, ClassVar

import mindtorch_v2 as torch

from .._device import STANDS_FOR, placed
from ._process_group import ProcessGroup


class Backend(str):
    """The name of a backend in lower case; `Backend(name)` takes any. gloo, mpi, hccl of NPUs and what serves no device at all are here; `fake` exchanges nothing."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    HCCL = "hccl"

    _BackendPlugin = namedtuple("_BackendPlugin", ["creator_fn", "extended_api"])
    _plugins: ClassVar[dict[str, Any]] = {}

    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE, HCCL]
    default_device_backend_map: ClassVar[dict[str, str]] = {
        "cpu": GLOO,
        "cuda": NCCL,
        "xpu": XCCL,
        "mps": GLOO,
        "npu": HCCL,
    }
    backend_capability: ClassVar[dict[str, list[str]]] = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu"],
        HCCL: ["npu"],
    }
    backend_type_map: ClassVar[dict[str, int]] = {
        name: getattr(ProcessGroup.BackendType, name.upper(), ProcessGroup.BackendType.CUSTOM) for name in backend_list
    }

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        name = standing(name)
        value = getattr(Backend, name.upper(), Backend.UNDEFINED)
        return name.lower() if value == Backend.UNDEFINED else value

    @classmethod
    def register_backend(
        cls, name: str, func: Callable[..., Any], extended_api: bool = False, devices: str | list[str] | None = None
    ) -> None:
        """Serve a name by `func(store, rank, size, timeout)`, which makes what has ProcessGroup's methods."""
        if not hasattr(Backend, name.upper()):
            setattr(Backend, name.upper(), name.lower())
        if name.lower() not in Backend.backend_list:
            Backend.backend_list.append(name.lower())
        named = [devices] if isinstance(devices, str) else devices
        for device in named or ():
            if Backend.default_device_backend_map.get(device) in (None, "fake"):
                Backend.default_device_backend_map[device] = name.lower()
        Backend.backend_type_map[name.lower()] = ProcessGroup.BackendType.CUSTOM
        if named is None:
            warnings.warn(
                f"Device capability of {name} unspecified, assuming `cpu` and `cuda` or `xpu`. Please specify it via the `devices` argument of `register_backend`."
            )
            named = ["cpu", "cuda"]
        Backend.backend_capability[name.lower()] = list(named)
        Backend._plugins[name.upper()] = Backend._BackendPlugin(func, extended_api)


def standing(text: str) -> str:
    """The name of a backend, or of backends by device, with the devices that stand for others and their backends in place of these."""
    for kind, other in STANDS_FOR.items():
        backends = Backend.default_device_backend_map
        text = text.lower().replace(kind, other).replace(backends[kind], backends[other])
    return text


class BackendConfig:
    """Which backend serves which devices, of a name or of `device:name,device:name`. ValueError for another text."""

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, str] = {}
        text = standing(str(backend))
        if text == Backend.UNDEFINED:
            self.device_backend_map["cpu"] = Backend.default_device_backend_map["cpu"]
        elif text.lower() in Backend.backend_list:
            self.device_backend_map = dict.fromkeys(Backend.backend_capability[text.lower()], str(Backend(text)))
        elif ":" in text:
            for pair in text.lower().split(","):
                parts = pair.split(":")
                if len(parts) != 2:
                    raise ValueError(
                        f"Invalid device:backend pairing: {pair}. The custom backend string argument is invalid: {text}."
                    )
                if parts[0] in self.device_backend_map:
                    raise ValueError(
                        f"Duplicate device type {parts[0]} in backend string: {text}. The custom backend string argument is invalid: {text}."
                    )
                self.device_backend_map[parts[0]] = Backend(parts[1])
        else:
            warnings.warn(
                f"Device capability of {text} unknown, assuming `cpu` and `cuda`. You can specify it in `device:backend` format in `init_process_group` call."
            )
            self.device_backend_map = dict.fromkeys(("cpu", "cuda", "xpu"), Backend(text))

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """The backend of each device."""
        return self.device_backend_map


def get_default_backend_for_device(device: Any) -> str:
    """The name of the backend that programs use for a device. ValueError for a device that has none."""
    kind = placed(device).type
    backend = Backend.default_device_backend_map.get(kind)
    if backend is None:
        raise ValueError(f"Default backend not registered for device : {device}")
    return backend


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    from importlib.util import find_spec

    return find_spec("mpi4py") is not None


def is_gloo_available() -> bool:
    """Always: what programs call gloo are the engines that are here."""
    return True


def is_nccl_available() -> bool:
    """Never, but where another device stands for CUDA's: as its backend is."""
    return standing(Backend.NCCL) != Backend.NCCL and is_backend_available(standing(Backend.NCCL))


def is_hccl_available() -> bool:
    """Whether there is an NPU."""
    return torch.npu.is_available()


def is_xccl_available() -> bool:
    """Never."""
    return False


is_ucc_available = is_xccl_available


def is_backend_available(backend: str) -> bool:
    """Whether a backend of that name is here."""
    known = {
        "mpi": is_mpi_available,
        "gloo": is_gloo_available,
        "nccl": is_nccl_available,
        "ucc": is_ucc_available,
        "xccl": is_xccl_available,
        "hccl": is_hccl_available,
    }
    if backend.lower() in known:
        return known[backend.lower()]()
    return backend.lower() in Backend.backend_list
