"""Devices, memory, streams, events and random states on the emulator (`make emulator`), each test in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
from _fresh import SOURCE

from mindtorch_v2._backends.npu import acl_loader

pytestmark = pytest.mark.skipif(
    not acl_loader.EMULATOR.exists(), reason="the emulator is not built: run `make emulator`"
)

PRELUDE = """
import ctypes, gc, json, os, threading, time
import numpy as np
import mindtorch_v2 as torch
from mindtorch_v2 import npu
from mindtorch_v2._backends.npu.runtime import D2D, D2H, H2D, NpuError, NpuOutOfMemory, get_runtime
runtime = get_runtime()
fault = runtime.libraries.own("emFault", None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
live = runtime.libraries.own("emLive", ctypes.c_int64, ctypes.c_char_p)
found = {}
"""


def emulated(code: str, **settings: str) -> dict:
    """What a program leaves in `found`. It must end well and leave nothing behind."""
    environment = dict(os.environ, PYTHONPATH=str(SOURCE), OMP_NUM_THREADS="1", MINDTORCH_NPU_EMULATOR="1", **settings)
    code = PRELUDE + textwrap.dedent(code) + "\nprint(json.dumps(found))\n"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "nothing leaked, nothing complained"
    return json.loads(done.stdout.splitlines()[-1])


def test_devices():
    found = emulated(
        """
        found["count"] = npu.device_count()
        npu.set_device(1)
        other = []
        worker = threading.Thread(target=lambda: other.append(npu.current_device())); worker.start(); worker.join()
        with npu.device(2): inside = npu.current_device()
        found["current"] = [npu.current_device(), other[0], inside]
        p = npu.get_device_properties(0)
        found["properties"] = [p.name, p.total_memory, p.vector_core_num, p.cube_core_num]
        found["names"] = [npu.get_device_name(1), npu.is_bf16_supported(), npu.get_device_capability()]
        found["range"] = npu.stream_priority_range()
        try: npu.set_device(3)
        except RuntimeError as error: found["error"] = str(error)
        try: npu.get_device_name(3)
        except AssertionError as error: found["assertion"] = str(error)
        npu.synchronize(); npu.synchronize("npu:1")
        """,
        MINDTORCH_NPU_EMULATOR_DEVICES="3",
        MINDTORCH_NPU_EMULATOR_MEMORY=str(1 << 26),
    )
    assert found["count"] == 3 and found["current"] == [1, 0, 2] and found["range"] == [7, 0]
    assert found["properties"] == ["Ascend910B1", 1 << 26, 48, 24] and found["names"] == ["Ascend910B1", True, [0, 0]]
    assert "invalid device ordinal 3" in found["error"] and found["assertion"] == "Invalid device id"


def test_an_older_version_and_chip():
    found = emulated(
        """
        found["range"] = npu.stream_priority_range()
        p = npu.get_device_properties()
        found["cores"] = [p.multi_processor_count, p.vector_core_num, p.cube_core_num]
        found["bf16"] = npu.is_bf16_supported()
        try: runtime.symbol("aclrtGetDeviceInfo")
        except NpuError as error: found["error"] = str(error)
        """,
        MINDTORCH_NPU_EMULATOR_CANN="8.1",
        MINDTORCH_NPU_EMULATOR_SOC="Ascend310P3",
    )
    assert found["range"] == [0, 0] and found["cores"] == [24, 48, None] and found["bf16"] is False
    assert "aclrtGetDeviceInfo is not in CANN 8.1" in found["error"] and "CANN 8.5 brought it" in found["error"]


def test_memory_and_copies():
    found = emulated(
        """
        before = runtime.mem_get_info(0)
        a, b = runtime.malloc(0, 256), runtime.malloc(0, 256)
        source, back = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
        runtime.memcpy(a, source.ctypes.data, 256, H2D)
        stream = npu.Stream()
        runtime.memcpy_async(b, a, 256, D2D, stream.handle)
        runtime.memset_async(b, 7, 16, stream.handle)
        stream.synchronize()
        runtime.memcpy(back.ctypes.data, b, 256, D2H)
        found["copied"] = back[:16].tolist() == [7] * 16 and back[16:].tolist() == source[16:].tolist()
        runtime.memset(a, 1, 256)
        runtime.memcpy(back.ctypes.data, a, 256, D2H)
        found["filled"] = back.tolist() == [1] * 256
        host = runtime.malloc_host(256); found["pinned"] = live(b"host_blocks"); runtime.free_host(host)
        runtime.free(0, a); runtime.free(0, b)
        found["after"] = [runtime.mem_get_info(0) == before, live(b"device_blocks"), live(b"host_blocks")]
        try: runtime.free(0, a)
        except NpuError as error: found["twice"] = error.operation
        fault(b"malloc", 1, 0)
        try: runtime.malloc(1, 64)
        except NpuOutOfMemory as error: found["full"] = [error.code, error.name, str(error).splitlines()[0]]
        runtime.free(1, runtime.malloc(1, 64))
        t = torch.arange(4.0).pin_memory()
        found["tensor"] = [t.is_pinned(), live(b"host_blocks"), npu.host_memory_stats()["num_host_alloc"]]
        view = t[1:]; del t
        found["view"] = [view.tolist(), live(b"host_blocks")]
        del view
        found["freed"] = live(b"host_blocks")
        """
    )
    assert found["copied"] and found["filled"] and found["pinned"] == 1 and found["after"] == [True, 0, 0]
    assert found["twice"] == "aclrtFree"
    assert found["full"][:2] == [207001, "ACL_ERROR_RT_MEMORY_ALLOCATION"] and "64 bytes on npu:1" in found["full"][2]
    assert found["tensor"] == [True, 1, 1] and found["view"] == [[1.0, 2.0, 3.0], 1] and found["freed"] == 0


def test_streams():
    found = emulated(
        """
        s, urgent = npu.Stream(), npu.Stream(device="npu:1", priority=-5)
        found["what"] = [str(s.device), s.device_index, s.device_type, urgent.device_index, urgent.priority, npu.Stream(priority=99).priority]
        same = npu.Stream(stream_id=s.stream_id, device_index=0)
        found["equal"] = [same == s, hash(same) == hash(s), s == urgent, s != 3, len({s, same, urgent})]
        default = npu.default_stream()
        found["default"] = [npu.current_stream() == default, default.stream_id, npu.current_stream(1) == npu.default_stream("npu:1")]
        with npu.stream(urgent):
            found["inside"] = [npu.current_device(), npu.current_stream() == urgent, npu.current_stream(0) == default]
            with s: found["nested"] = [npu.current_device(), npu.current_stream() == s]
            other = []
            worker = threading.Thread(target=lambda: other.append(npu.current_stream(1) == urgent)); worker.start(); worker.join()
            found["thread"] = other
        found["outside"] = [npu.current_device(), npu.current_stream() == default]
        @npu.stream(s)
        def inside(): return npu.current_stream() == s
        found["decorated"] = [inside(), npu.current_stream() == default]
        npu.set_stream(urgent); found["set"] = [npu.current_device(), npu.current_stream() == urgent]
        npu.set_stream(default); found["reset"] = [npu.current_device(), npu.current_stream() == default]
        found["pool"] = [len({npu.Stream().handle for _ in range(70)}), npu.Stream() in {npu.Stream() for _ in range(32)}]
        try: npu.Stream(stream_id=12345)
        except RuntimeError as error: found["error"] = str(error)
        """
    )
    assert found["what"] == ["npu:0", 0, "npu", 1, 0, 7] and found["equal"] == [True, True, False, True, 2]
    assert found["default"] == [True, 0, True]
    assert found["inside"] == [1, True, True] and found["nested"] == [0, True] and found["thread"] == [False]
    assert found["outside"] == [0, True] and found["decorated"] == [True, True]
    assert found["set"] == [1, True] and found["reset"] == [0, True] and found["pool"] == [32, True]
    assert "no stream with the id 12345" in found["error"]


def test_events_order_streams():
    """A slow stream writes, another one waits for its event and reads: without the event the result would be old."""
    found = emulated(
        """
        size = 1 << 24
        a, b = runtime.malloc(0, size), runtime.malloc(0, size)
        runtime.memset(a, 0, size); runtime.memset(b, 0, size)
        first, second = npu.Stream(), npu.Stream()
        last = np.zeros(1, np.uint8)
        right = 0
        for turn in range(1, 31):
            for _ in range(3): runtime.memset_async(a, 100, size, first.handle)
            runtime.memset_async(a, turn, size, first.handle)
            if turn % 2: second.wait_stream(first)
            else: second.wait_event(first.record_event())
            runtime.memcpy_async(b, a, size, D2D, second.handle)
            first.wait_stream(second)
            second.synchronize()
            runtime.memcpy(last.ctypes.data, b + size - 1, 1, D2H)
            right += int(last[0]) == turn
        found["right"] = right
        start, end = npu.Event(enable_timing=True), npu.Event(enable_timing=True)
        found["before"] = [start.query(), start.device is None]
        start.record(first); runtime.memset_async(a, 1, size, first.handle); end.record(first)
        end.synchronize()
        found["time"] = start.elapsed_time(end) > 0 and end.query()
        first.synchronize(); found["idle"] = first.query()
        try: start.record(npu.Stream(1))
        except RuntimeError as error: found["device"] = str(error)
        try: npu.current_stream().record_event().elapsed_time(end)
        except ValueError as error: found["timing"] = str(error)
        for _ in range(500): first.record_event()
        npu.synchronize(); gc.collect(); npu.current_stream().record_event()
        found["few"] = live(b"events") < 10
        runtime.free(0, a); runtime.free(0, b)
        """
    )
    assert found["right"] == 30 and found["before"] == [True, True]
    assert found["time"] is True and found["idle"] is True and found["few"] is True
    assert "does not match" in found["device"] and "enable_timing=True" in found["timing"]


def test_random_states():
    found = emulated(
        """
        npu.manual_seed_all(5)
        found["seeds"] = [g.initial_seed() for g in npu.default_generators]
        npu.set_device(1); npu.manual_seed(9)
        found["one"] = [npu.initial_seed(), npu.get_rng_state(0).tolist()[:1], npu.get_rng_state().tolist()[:1]]
        states = npu.get_rng_state_all()
        npu.seed_all()
        npu.set_rng_state_all(states)
        found["back"] = [g.initial_seed() for g in npu.default_generators]
        torch.manual_seed(11)
        found["all"] = [g.initial_seed() for g in npu.default_generators]
        """
    )
    assert found["seeds"] == [5, 5] and found["one"] == [9, [5], [9]] and found["back"] == [5, 9]
    assert found["all"] == [11, 11]


def test_peers():
    found = emulated(
        """
        found["can"] = [npu.can_device_access_peer(0, 1), npu.can_device_access_peer(1, 1)]
        npu.enable_peer_access(1); npu.disable_peer_access(1)
        try: npu.can_device_access_peer(0, 9)
        except AssertionError as error: found["error"] = str(error)
        """
    )
    assert found["can"] == [True, False] and found["error"] == "Invalid device id"


def test_a_forked_child_gets_an_error_at_once():
    found = emulated(
        """
        t = npu.Stream()
        event = t.record_event()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            for call in (npu.init, npu.synchronize, t.synchronize, event.query, lambda: runtime.malloc(0, 64), lambda: torch.ones(2, device="npu")):
                try: call()
                except RuntimeError as error: said.append("'spawn' start method" in str(error))
            del event, t
            os.write(write, json.dumps(said).encode())
            os._exit(0)
        os.waitpid(child, 0)
        found["said"] = json.loads(os.read(read, 1000))
        npu.synchronize()
        """
    )
    assert found["said"] == [True] * 6


def test_what_lives_to_the_end_is_no_leak():
    """Kept tensors, cached memory, streams, and events of the allocator: each is released once."""
    found = emulated(
        """
        kept = torch.ones(100, device="npu:1")
        big = torch.ones(1 << 20, device="npu:1")
        stream = npu.Stream(1)
        big.record_stream(stream); event = stream.record_event()
        del big
        found["sum"] = kept.sum().item()
        """
    )
    assert found == {"sum": 100.0}


def test_a_failure_that_nobody_waited_for_shows_at_the_end():
    code = PRELUDE + "a = torch.ones(3, device='npu')\nfault(b'kernel:aclnnAdd', 1, 0)\nb = a + a\n"
    environment = dict(os.environ, PYTHONPATH=str(SOURCE), MINDTORCH_NPU_EMULATOR="1")
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "507015" in done.stderr and "aclnnAdd" in done.stderr and "leaked" not in done.stderr


def test_collect_env():
    environment = dict(os.environ, PYTHONPATH=str(SOURCE), MINDTORCH_NPU_EMULATOR="1")
    done = subprocess.run(
        [sys.executable, "-m", "mindtorch_v2", "collect-env"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "npu:1: Ascend910B1" in done.stdout and "asked for by MINDTORCH_NPU_EMULATOR, built" in done.stdout
