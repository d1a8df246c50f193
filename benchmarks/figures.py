"""Figures that are not times: memory of a step, growth over a long loop. Each takes a case's maker and a device."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable
from typing import Any

import torch

Maker = Callable[[str], Callable[[int], Any]]


def _live_bytes() -> int:
    """Of all tensors that Python can reach, each storage once."""
    storages = {}
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, torch.nn.Parameter):
            for tensor in (thing, thing.grad if thing.is_leaf else None):
                if tensor is not None and tensor.device.type == "cpu":
                    storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    return sum(storages.values())


def _peak_of_cpu(work: Callable[[int], Any]) -> int:
    from torch._C._profiler import _EventType

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work(1)
    changes = []

    def visit(node: Any) -> None:
        if node.tag == _EventType.Allocation:
            changes.append((node.start_time_ns, node.extra_fields.alloc_size))
        for child in node.children:
            visit(child)

    assert profile.profiler is not None and profile.profiler.kineto_results is not None
    for root in profile.profiler.kineto_results.experimental_event_tree():
        visit(root)
    now = peak = 0
    for _, size in sorted(changes):
        now += size
        peak = max(peak, now)
    return peak


def peak_bytes(make: Maker, device: str) -> int:
    """The most bytes that a step's tensors hold at once; on tpu, in fused mode, with the program's temporaries.

    On CPU: what is there before a step, and the highest sum of the allocator's changes within it (gradients of the step before
    are freed in it). On tpu: the largest program's arguments, results and temporaries as the plugin states them, and what
    else is allocated.
    """
    work = make(device)
    for _ in range(3):
        work(1).cpu()
    gc.collect()
    if device == "cpu":
        return _live_bytes() + _peak_of_cpu(work)
    from torch_tpu import _C

    _C.take_flush_records(0)
    work(1).cpu()
    return max(record[7] for record in _C.take_flush_records(0))


def growth(make: Maker, device: str, steps: int = 20000) -> float:
    """How many MiB the process and the device's tensors grow over the second half of `steps` repetitions without reads."""
    work = make(device)

    def held() -> int:
        gc.collect()
        if device == "cpu":
            return 0
        torch.accelerator.synchronize()
        with open("/proc/self/statm") as statm:
            pages = int(statm.read().split()[1])
        return pages * resource.getpagesize() + torch.accelerator.memory_allocated()

    work(steps // 2)
    before = held()
    work(steps // 2)
    return (held() - before) / 2**20
