"""PyTorch's fake process group: one process that stands for one rank of many."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def ranks(count: int, rank: int = 0) -> Iterator[None]:
    """This process is rank `rank` of `count` while the block runs: `init_device_mesh("tpu", (count,))`, DTensor and
    functional collectives work, and `aot.capture` records them. Nothing is sent.

    Raises RuntimeError where a process group exists already.
    """
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if dist.is_initialized():
        raise RuntimeError("aot.ranks: this process has a process group already; call it before init_process_group")
    dist.init_process_group("fake", rank=rank, world_size=count, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def ranks_if_many(count: int) -> contextlib.AbstractContextManager[None]:
    """`ranks(count)`, or nothing for one."""
    return ranks(count) if count > 1 else contextlib.nullcontext()
