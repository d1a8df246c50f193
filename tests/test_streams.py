"""Streams, events and waiting."""

from __future__ import annotations

import signal
import threading
import time

import child
import pytest
import torch
from compare import same


def _work(size: int = 512) -> torch.Tensor:
    x = torch.full((size, size), 0.01, device="tpu")
    for _ in range(8):
        x = x @ x + 0.001
    return x


def test_current_and_default_stream() -> None:
    default = torch.accelerator.current_stream()
    assert default.stream_id == 0 and default.device == torch.device("tpu:0")
    stream = torch.Stream(device="tpu")
    assert stream.stream_id != 0 and stream != default
    with stream:
        assert torch.accelerator.current_stream() == stream
        x = torch.ones(3, device="tpu") * 2
    assert torch.accelerator.current_stream() == default
    same(x, torch.full((3,), 2.0))
    torch.accelerator.set_stream(stream)
    try:
        assert torch.tpu.current_stream() == stream
    finally:
        torch.accelerator.set_stream(default)


def test_current_stream_belongs_to_the_thread() -> None:
    seen = []
    with torch.Stream(device="tpu"):
        thread = threading.Thread(target=lambda: seen.append(torch.accelerator.current_stream().stream_id))
        thread.start()
        thread.join()
    assert seen == [0]


def test_streams_of_the_pool_differ() -> None:
    assert len({torch.Stream(device="tpu").stream_id for _ in range(8)}) == 8


def test_synchronize_waits_for_dropped_results() -> None:
    _work()  # compiled
    torch.accelerator.synchronize()
    start = time.perf_counter()
    _work(1024).sum().item()
    whole = time.perf_counter() - start
    assert whole > 0.002
    _work(1024)  # nobody holds the result
    torch.accelerator.synchronize()
    event = torch.Event(device="tpu")
    event.record()
    assert event.query(), "work was left after synchronize"
    assert torch.accelerator.current_stream().query()


def test_event_means_what_was_launched_before_it() -> None:
    x = _work()
    event = torch.Event(device="tpu")
    assert event.query(), "never recorded"
    event.record()
    event.synchronize()
    assert event.query()
    y = x + 1
    assert event.query(), "later work does not matter"
    event.record()
    event.synchronize()
    same(y, x + 1)


def test_stream_waits() -> None:
    first, second = torch.Stream(device="tpu"), torch.Stream(device="tpu")
    with first:
        x = _work()
        event = first.record_event()
    second.wait_event(event)
    second.wait_stream(first)
    with second:
        y = x * 2
    second.synchronize()
    assert second.query()
    same(y, x * 2)


def test_elapsed_time() -> None:
    start, end = (torch.Event(device="tpu", enable_timing=True) for _ in range(2))
    _work(1024)
    torch.accelerator.synchronize()
    start.record()
    before = time.perf_counter()
    x = _work(1024)
    end.record()
    x.cpu()
    took = (time.perf_counter() - before) * 1e3
    time.sleep(0.2)  # the question comes late, the answer is about the work
    end.synchronize()
    elapsed = start.elapsed_time(end)
    assert 0 < elapsed < took + 50
    assert end.elapsed_time(start) == -elapsed


def test_events_without_timing_have_no_elapsed_time() -> None:
    start, end = torch.Event(device="tpu"), torch.Event(device="tpu")
    start.record()
    end.record()
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(end)
    timed = torch.Event(device="tpu", enable_timing=True)
    with pytest.raises(ValueError, match="recorded"):
        timed.elapsed_time(torch.Event(device="tpu", enable_timing=True))


def test_torch_tpu_streams_and_events() -> None:
    stream = torch.tpu.Stream()
    with torch.tpu.stream(stream):
        assert torch.tpu.current_stream() == stream
        x = torch.ones(2, device="tpu") + 1
        event = torch.tpu.Event(enable_timing=True)
        event.record(stream)
    event.synchronize()
    x.record_stream(stream)
    assert event.query() and torch.tpu.default_stream().stream_id == 0
    torch.tpu.synchronize()
    same(x, torch.full((2,), 2.0))


def test_threads_share_a_device() -> None:
    x = torch.arange(64.0, device="tpu")
    failures: list[BaseException] = []

    def work(k: int) -> None:
        try:
            for _ in range(30):
                y = (x + k) * 2
                same(y, (torch.arange(64.0) + k) * 2)
                torch.accelerator.synchronize()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_interrupt_ends_a_wait() -> None:
    out = child.run(
        f"""
        import os, signal, threading, time, torch, torch_tpu
        def chain(n):
            x = torch.full((1024, 1024), 0.01, device="tpu")
            for _ in range(n):
                x = x @ x
            return x
        chain(2)
        torch.accelerator.synchronize()
        start = time.perf_counter()
        chain(8)
        torch.accelerator.synchronize()
        each = (time.perf_counter() - start) / 8
        results = [chain(8) for _ in range(max(1, int(1.5 / each / 8)))]
        pid = os.getpid()
        timer = threading.Timer(0.2, lambda: os.kill(pid, {int(signal.SIGINT)}))
        timer.start()
        try:
            # Should the work be done before the signal, waiting goes on: the signal must end it all the same.
            while True:
                torch.accelerator.synchronize()
        except KeyboardInterrupt:
            print("interrupted")
        torch.accelerator.synchronize()
        print(results[0].shape[0])
        """
    )
    assert out == "interrupted\n1024\n"
