"""`torch.distributed.launcher`: a function that several processes of this machine call, each with the variables of its rank."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .multiprocessing import ProcessException, get_context, start_processes


@dataclass
class LaunchConfig:
    """How processes are started. What is about several machines, logs and events is taken and means nothing here."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    virtual_local_rank: bool = False


class elastic_launch:
    """`elastic_launch(config, function)(*args)` calls the function in `config.nproc_per_node` processes, and gives what it gives by rank; see `launch_agent`."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any]) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def _call(index: int, function: Callable[..., Any], args: list[Any], environment: dict[str, str], results: Any) -> None:
    ranks = dict.fromkeys(("RANK", "LOCAL_RANK", "ROLE_RANK"), str(index))
    os.environ.update(environment | ranks)
    results.put((index, function(*args)))


def launch_agent(config: LaunchConfig, entrypoint: Any, args: list[Any]) -> dict[int, Any]:
    """Call a function in processes that find each other by a store of this one; what it gives, by rank. When one fails all are ended and, as often as the configuration says, started anew.

    Raises:
        NotImplementedError: for several machines, and for a command in place of a function, which `torchrun` runs.
        ProcessRaisedException, ProcessExitedException: of the first process that failed, when no restart is left.
    """
    if config.min_nodes != 1 or not callable(entrypoint):
        raise NotImplementedError(
            "elastic_launch calls a function on one machine; torchrun starts commands, and several machines"
        )
    from mindtorch_v2.distributed import TCPStore

    size = config.nproc_per_node
    for attempt in range(config.max_restarts + 1):
        store = TCPStore("localhost", 0, None, True)
        results = get_context(config.start_method).SimpleQueue()
        sizes = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"), str(size))
        environment = sizes | {
            "GROUP_RANK": "0",
            "GROUP_WORLD_SIZE": "1",
            "ROLE_NAME": config.role,
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(store.port),
            "TORCHELASTIC_RESTART_COUNT": str(attempt),
            "TORCHELASTIC_MAX_RESTARTS": str(config.max_restarts),
            "TORCHELASTIC_RUN_ID": config.run_id or uuid.uuid4().hex,
            "TORCHELASTIC_USE_AGENT_STORE": str(True),
        }
        found: dict[int, Any] = {}
        try:
            given = (entrypoint, args, environment, results)
            running = start_processes(_call, given, size, join=False, start_method=config.start_method)
            assert running is not None
            while not running.join(0.05):
                _take(results, found)
            _take(results, found)
            return dict(sorted(found.items()))
        except ProcessException:
            if attempt == config.max_restarts:
                raise
    raise AssertionError("unreachable")


def _take(results: Any, found: dict[int, Any]) -> None:
    while not results.empty():
        rank, value = results.get()
        found[rank] = value
