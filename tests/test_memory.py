"""What the allocator counts, and pinned host memory."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
import torch
from compare import same

KIB = 1024


@pytest.fixture(autouse=True)
def _collect() -> None:
    gc.collect()


def test_allocated_follows_storages() -> None:
    before = torch.accelerator.memory_allocated()
    x = torch.empty(10 * KIB, device="tpu")
    assert torch.accelerator.memory_allocated() == before + 40 * KIB
    view = x[:10].view(2, 5)
    assert torch.accelerator.memory_allocated() == before + 40 * KIB
    del x
    assert torch.accelerator.memory_allocated() == before + 40 * KIB, "the view holds the storage"
    del view
    assert torch.accelerator.memory_allocated() == before


def test_results_are_counted_and_freed() -> None:
    x = torch.ones(KIB, device="tpu")
    x.add_(1)
    before = torch.accelerator.memory_allocated()
    y = x + 1
    assert torch.accelerator.memory_allocated() == before + 4 * KIB
    y.mul_(2)
    assert torch.accelerator.memory_allocated() == before + 4 * KIB
    del y
    assert torch.accelerator.memory_allocated() == before


def test_peaks() -> None:
    base = torch.accelerator.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == base
    x = torch.empty(1 << 20, device="tpu", dtype=torch.uint8)
    del x
    assert torch.accelerator.memory_allocated() == base
    assert torch.accelerator.max_memory_allocated() == base + (1 << 20)
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == base


def test_statistics() -> None:
    torch.accelerator.reset_accumulated_memory_stats()
    keep = [torch.empty(4 << 20, dtype=torch.uint8, device="tpu"), torch.empty(16, dtype=torch.uint8, device="tpu")]
    del keep[1]
    stats = torch.accelerator.memory_stats()
    assert stats["allocation.all.allocated"] == 2 and stats["allocation.all.freed"] == 1
    assert stats["allocated_bytes.all.allocated"] == (4 << 20) + 16 and stats["allocated_bytes.all.freed"] == 16
    assert stats["allocation.large_pool.allocated"] == 1 and stats["allocation.small_pool.allocated"] == 1
    assert stats["num_device_alloc"] == 2 and stats["num_device_free"] == 1 and stats["num_ooms"] == 0
    for name in ("active_bytes", "reserved_bytes", "requested_bytes"):
        assert stats[f"{name}.all.current"] == stats["allocated_bytes.all.current"], name
    assert torch.accelerator.memory_reserved() >= torch.accelerator.memory_allocated() > 0
    assert torch.tpu.memory_stats()["num_ooms"] == 0
    assert "allocated_bytes" in torch.tpu.memory_summary()
    torch.accelerator.empty_cache()


def test_memory_info() -> None:
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total and total > 1 << 28
    assert torch.tpu.mem_get_info()[1] == total


def test_untouched_memory_costs_nothing() -> None:
    # A loader may reserve a model's size before it fills it; what can never be there is refused at once.
    size = torch.tpu.mem_get_info()[0] * 3 // 4
    before = torch.accelerator.memory_allocated()
    x = [torch.empty(size, dtype=torch.uint8, device="tpu") for _ in range(4)]
    assert torch.accelerator.memory_allocated() == before + 4 * size
    del x
    assert torch.accelerator.memory_allocated() == before
    with pytest.raises(torch.OutOfMemoryError, match=r"GiB are free.*4096\.00 GiB"):
        torch.empty(1 << 42, dtype=torch.uint8, device="tpu")
    assert torch.accelerator.memory_allocated() == before


def test_resize_is_counted() -> None:
    x = torch.empty(4, dtype=torch.uint8, device="tpu")
    before = torch.accelerator.memory_allocated()
    x.untyped_storage().resize_(1000)
    assert torch.accelerator.memory_allocated() == before + 996
    x.untyped_storage().resize_(0)
    assert torch.accelerator.memory_allocated() == before - 4


def test_counts_hold_with_threads() -> None:
    before = torch.accelerator.memory_allocated()

    def work() -> None:
        for size in range(1, 300):
            torch.empty(size, device="tpu")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.accelerator.memory_allocated() == before


def test_the_profiler_sees_allocations() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        x = torch.empty(1 << 20, dtype=torch.uint8, device="tpu")
    assert x.numel() == 1 << 20
    assert any(e.device_memory_usage >= 1 << 20 for e in profile.events()), "no allocation was reported"


def test_out_of_memory() -> None:
    ooms = torch.accelerator.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError, match=r"(?i)out of memory"):
        torch.ones(1 << 45, dtype=torch.uint8, device="tpu").cpu()
    assert torch.accelerator.memory_stats()["num_ooms"] > ooms
    same(torch.ones(2, device="tpu") + 1, torch.full((2,), 2.0))


def _pinned(make: Any) -> torch.Tensor:
    x = make()
    assert x.is_pinned() and x.device.type == "cpu" and x.data_ptr() % 64 == 0
    return x


def test_pinned_memory() -> None:
    source = torch.arange(5.0)
    assert not source.is_pinned()
    x = _pinned(source.pin_memory)
    same(x, source)
    assert x[2:].is_pinned() and x.pin_memory() is x
    _pinned(lambda: torch.empty(3, pin_memory=True))
    assert not x.clone().is_pinned()
    address = x.data_ptr()
    y = x.to("tpu", non_blocking=True)
    x.fill_(-1)  # the value is the one at the time of the call
    same(y, source)
    del x
    gc.collect()
    assert not torch.empty(0).is_pinned() and address != 0
    back = torch.empty(5, pin_memory=True).copy_(y)
    same(back, source)
