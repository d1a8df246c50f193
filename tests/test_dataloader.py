"""DataLoader with workers and pinned memory beside a used device."""

from __future__ import annotations

import gc
from collections import namedtuple
from typing import Any

import pytest
import torch
from compare import same
from torch.utils.data import DataLoader, Dataset, TensorDataset

Pair = namedtuple("Pair", "image label")


class Squares(Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        return Pair(torch.full((3,), float(index)), index * index)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pin", [False, True])
def test_batches_arrive(workers: int, pin: bool) -> None:
    torch.ones(1, device="tpu").add_(1)  # the client runs before the workers are forked
    loader = DataLoader(Squares(), batch_size=4, num_workers=workers, pin_memory=pin)
    seen = []
    for batch in loader:
        assert batch.image.is_pinned() is pin and batch.label.is_pinned() is pin
        image = batch.image.to("tpu", non_blocking=True)
        label = batch.label.to("tpu", non_blocking=True)
        same(image[:, 0] * image[:, 0], label.float())
        seen += label.tolist()
    assert seen == [n * n for n in range(16)]


def test_host_memory_may_be_reused_at_once() -> None:
    source = TensorDataset(torch.arange(4000.0).view(40, 100))
    kept = [batch[0].to("tpu", non_blocking=True) for batch in DataLoader(source, batch_size=4, pin_memory=True)]
    gc.collect()
    torch.full((40, 100), -1.0).pin_memory()
    same(torch.cat(kept), source.tensors[0])


def test_persistent_workers_and_shuffle() -> None:
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(
        Squares(), batch_size=4, num_workers=2, persistent_workers=True, pin_memory=True, shuffle=True, generator=generator
    )
    for _ in range(2):
        total = torch.zeros((), dtype=torch.int64, device="tpu")
        for batch in loader:
            total += batch.label.to("tpu").sum()
        assert total.item() == sum(n * n for n in range(16))


def test_pin_memory_to_the_named_device() -> None:
    loader = DataLoader(TensorDataset(torch.ones(4, 2)), batch_size=2, pin_memory=True)
    assert all(batch[0].is_pinned() for batch in loader)
    assert torch.ones(2).pin_memory("tpu").is_pinned("tpu")


class OnDevice(Dataset):
    def __init__(self) -> None:
        self.table = torch.arange(4.0, device="tpu")

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.table[index] + 1


def test_a_worker_that_touches_the_device_is_told() -> None:
    with pytest.raises(RuntimeError, match="Cannot re-initialize TPU in forked subprocess"):
        list(DataLoader(OnDevice(), num_workers=1))
    assert [b.item() for b in DataLoader(OnDevice())] == [1, 2, 3, 4]
