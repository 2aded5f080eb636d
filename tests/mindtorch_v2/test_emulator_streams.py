"""The emulator's streams and events, at the level of CANN's C functions."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
from _emulator import D2D, H2D, H2H
from _emulator_runtime import HANDLE, PARAM, STREAM_CONTEXT, UNSUPPORTED, Slow

# streams and events


def test_streams_run_beside_each_other(lib):
    one, two = lib.stream(), lib.stream()
    start = time.monotonic()
    slow = Slow(lib, one, 0.4)
    quick = Slow(lib, two, 0)
    lib.ok("aclrtSynchronizeStream", two)
    assert time.monotonic() - start < 0.3
    assert (lib.query("aclrtStreamQuery", one), lib.query("aclrtStreamQuery", two)) == (1, 0)
    assert lib.aclrtSynchronizeStreamWithTimeout(one, 10) == 507046
    assert lib.emLive(b"threads") == 2
    lib.ok("aclrtSynchronizeDevice")
    assert time.monotonic() - start >= 0.4
    assert (lib.download(slow.result, (4,), np.float32) == np.arange(4)).all()
    for made in (slow, quick):
        made.release()
    for stream in (one, two):
        lib.ok("aclrtDestroyStream", stream)
    assert (lib.emLive(b"threads"), lib.emLive(b"streams")) == (0, 0)


def test_an_event_orders_two_streams(lib):
    one, two, event = lib.stream(), lib.stream(), lib.event()
    slow = Slow(lib, one, 0.2)
    lib.ok("aclrtRecordEvent", event, one)
    after = Slow(lib, one, 0.2)  # the event does not wait for what comes behind it
    copied = lib.malloc(16)
    lib.ok("aclrtStreamWaitEvent", two, event)
    lib.ok("aclrtMemcpyAsync", copied, 16, slow.result, 16, D2D, two)
    assert lib.query("aclrtQueryEventStatus", event) == 0
    lib.ok("aclrtSynchronizeStream", two)
    assert lib.query("aclrtQueryEventStatus", event) == 1
    assert lib.query("aclrtStreamQuery", one) == 1
    assert (lib.download(copied, (4,), np.float32) == np.arange(4)).all()
    lib.ok("aclrtDestroyEvent", event)
    lib.ok("aclrtSynchronizeStream", one)
    for made in (slow, after):
        made.release()
    lib.ok("aclrtFree", copied)
    for stream in (one, two):
        lib.ok("aclrtDestroyStream", stream)


def test_events(lib):
    stream = lib.stream()
    event, timing = lib.event(), [lib.event(11), lib.event(11)]
    assert lib.query("aclrtQueryEventStatus", event) == 1  # never recorded
    lib.ok("aclrtSynchronizeEvent", event)
    lib.ok("aclrtStreamWaitEvent", stream, event)
    ms, plain, cell = ctypes.c_float(), lib.event(2), ctypes.c_int()
    assert lib.aclrtEventElapsedTime(ctypes.byref(ms), *timing) == 107006
    lib.ok("aclrtRecordEvent", timing[0], stream)
    slow = Slow(lib, stream, 0.1)
    lib.ok("aclrtRecordEvent", timing[1], stream)
    assert lib.aclrtEventElapsedTime(ctypes.byref(ms), *timing) == 507006
    assert lib.aclrtSynchronizeEventWithTimeout(timing[1], 5) == 507047
    lib.ok("aclrtSynchronizeEvent", timing[1])
    lib.ok("aclrtEventElapsedTime", ctypes.byref(ms), *timing)
    assert 100 <= ms.value < 1000
    assert lib.aclrtEventElapsedTime(ctypes.byref(ms), *timing[::-1]) == 107007
    lib.ok("aclrtRecordEvent", plain, stream)
    assert lib.aclrtStreamWaitEvent(stream, plain) == PARAM and "ACL_EVENT_SYNC" in lib.message()
    assert lib.aclrtEventElapsedTime(ctypes.byref(ms), plain, timing[1]) == 107006
    for name in ("aclrtQueryEvent", "aclrtQueryEventWaitStatus"):
        assert getattr(lib, name)(event, ctypes.byref(cell)) == UNSUPPORTED
    assert lib.aclrtResetEvent(event, stream) == UNSUPPORTED
    old = lib.make("aclrtCreateEvent")
    lib.ok("aclrtRecordEvent", old, stream)
    lib.ok("aclrtSynchronizeStream", stream)
    assert lib.query("aclrtQueryEvent", old) == 0  # the old enum: 0 is complete
    lib.ok("aclrtResetEvent", old, stream)
    for handle in (event, plain, old, *timing):
        lib.ok("aclrtDestroyEvent", handle)
    assert lib.aclrtDestroyEvent(old) == HANDLE
    slow.release()
    lib.ok("aclrtDestroyStream", stream)


def test_a_stream_belongs_to_a_device(lib):
    stream = lib.stream()
    lib.ok("aclrtSetDevice", 1)
    assert lib.aclrtSynchronizeStream(stream) == STREAM_CONTEXT
    assert lib.aclrtSynchronizeStream(stream + 8) == HANDLE
    lib.ok("aclrtDestroyStream", stream)
    assert lib.aclrtDestroyStream(stream) == HANDLE
    assert lib.aclrtCreateStreamWithConfig(ctypes.byref(ctypes.c_void_p()), 8, 0) == PARAM


def test_an_aborted_stream_drops_its_work(lib):
    stream, event = lib.stream(), lib.event()
    slow = Slow(lib, stream, 0.1)
    target = lib.upload(np.zeros(4, np.uint8))
    lib.ok("aclrtMemsetAsync", target, 4, 1, 4, stream)
    lib.ok("aclrtRecordEvent", event, stream)
    lib.ok("aclrtStreamAbort", stream)
    lib.ok("aclrtSynchronizeEvent", event)
    assert not lib.download(target, (4,), np.uint8).any()
    lib.ok("aclrtMemsetAsync", target, 4, 2, 4, stream)
    lib.ok("aclrtDestroyStream", stream)  # waits
    assert (lib.download(target, (4,), np.uint8) == 2).all()
    lib.ok("aclrtDestroyEvent", event)
    lib.ok("aclrtFree", target)
    slow.release()


def test_copies_on_a_stream_wait_for_pageable_memory_only(lib):
    stream = lib.stream()
    pinned, device = lib.make("aclrtMallocHost", 64), lib.malloc(64)
    pageable = np.full(64, 3, np.uint8)
    ctypes.memset(pinned, 5, 64)
    slow = Slow(lib, stream, 0.2)
    start = time.monotonic()
    lib.ok("aclrtMemcpyAsync", device, 64, pinned, 64, H2D, stream)
    assert time.monotonic() - start < 0.1 and lib.query("aclrtStreamQuery", stream) == 1
    lib.ok("aclrtMemcpyAsync", device, 32, pageable.ctypes.data, 32, H2D, stream)
    assert time.monotonic() - start >= 0.15
    assert lib.download(device, (64,), np.uint8).tolist() == [3] * 32 + [5] * 32
    assert lib.aclrtMemcpyAsync(pinned, 64, pageable.ctypes.data, 64, H2H, stream) == UNSUPPORTED
    lib.ok("aclrtFreeHost", pinned)
    lib.ok("aclrtFree", device)
    slow.release()
    lib.ok("aclrtDestroyStream", stream)


def test_functions_of_the_host_run_in_order(lib):
    stream, seen = lib.stream(), []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    slow = Slow(lib, stream, 0.05)
    address = ctypes.cast(callback, ctypes.c_void_p)
    lib.ok("aclrtLaunchHostFunc", stream, address, 7)
    lib.ok("aclrtSynchronizeStream", stream)
    assert seen == [7]
    assert lib.aclrtLaunchCallback(address, 8, 1, stream) == 107015
    lib.ok("aclrtSubscribeReport", threading.get_ident(), stream)
    lib.ok("aclrtLaunchCallback", address, 9, 1, stream)
    assert lib.aclrtSynchronizeStreamWithTimeout(stream, 20) == 507046  # it waits for the callback
    lib.ok("aclrtProcessReport", 1000)
    lib.ok("aclrtSynchronizeStream", stream)
    assert seen == [7, 9]
    assert lib.aclrtProcessReport(1) == 507012
    lib.ok("aclrtUnSubscribeReport", threading.get_ident(), stream)
    slow.release()
    lib.ok("aclrtDestroyStream", stream)
