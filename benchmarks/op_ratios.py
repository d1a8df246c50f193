"""Single programs against CPU PyTorch at about a million elements: prints each op's ratio, the slowest first.

    python benchmarks/op_ratios.py [--rounds N] [--ops REGEX] [--no-host-kernels]

Rounds of both sides alternate in one process; a ratio is the median of the rounds' ratios. Strict mode, results waited for.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
import torch_tpu

SIDE = 1024
Case = tuple[tuple[torch.Tensor, ...], Callable[..., object]]


def embedding_backward(weight: torch.Tensor, index: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.embedding_dense_backward(grad, index, weight.shape[0], -1, False)


def cases() -> dict[str, Case]:
    """Each op's operands, on the CPU, and what is done with them."""
    x, y = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    cube, rows = torch.randn(64, 128, 128), torch.randint(0, SIDE, (SIDE,))
    places = torch.randint(0, SIDE, (SIDE, SIDE))
    eight = torch.randint(-128, 127, (SIDE, SIDE), dtype=torch.int8)
    image, filters = torch.randn(16, 64, 32, 32), torch.randn(64, 64, 3, 3)
    square = torch.randn(128, 128)
    definite = square @ square.T + 128 * torch.eye(128)
    scale, half = torch.randn(SIDE), x.bfloat16()
    return {
        "add": ((x, y), torch.add),
        "exp": ((x,), torch.exp),
        "gelu": ((x,), F.gelu),
        "where": ((x, y), lambda a, b: torch.where(a > 0, a, b)),
        "sum": ((x,), torch.sum),
        "sum dim 0": ((x,), lambda a: a.sum(0)),
        "sum dim 1": ((x,), lambda a: a.sum(1)),
        "amax dim 1": ((x,), lambda a: a.amax(1)),
        "argmax dim 0": ((x,), lambda a: a.argmax(0)),
        "argmax dim 1": ((x,), lambda a: a.argmax(1)),
        "var dim 1": ((x,), lambda a: a.var(1)),
        "norm": ((x,), torch.linalg.vector_norm),
        "cumsum dim 0": ((x,), lambda a: a.cumsum(0)),
        "cumsum dim 1": ((x,), lambda a: a.cumsum(1)),
        "cumprod dim 1": ((x,), lambda a: a.cumprod(1)),
        "logsumexp": ((x,), lambda a: a.logsumexp(1)),
        "softmax dim 1": ((x,), lambda a: a.softmax(1)),
        "softmax dim 0": ((x,), lambda a: a.softmax(0)),
        "log_softmax": ((x,), lambda a: a.log_softmax(1)),
        "layer_norm": ((x, scale), lambda a, s: F.layer_norm(a, (SIDE,), s, s)),
        "batch_norm": ((image,), lambda a: F.batch_norm(a, None, None, training=True)),
        "sort dim 1": ((x,), lambda a: a.sort(1).values),
        "sort flat": ((x.flatten(),), lambda a: a.sort().values),
        "topk 10": ((x,), lambda a: a.topk(10, 1).values),
        "median": ((x,), lambda a: a.median(1).values),
        "index_select": ((x, rows), lambda a, i: a.index_select(0, i)),
        "gather": ((x, places), lambda a, i: a.gather(1, i)),
        "scatter": ((x, places, y), lambda a, i, s: a.scatter(1, i, s)),
        "scatter_add": ((x, places, y), lambda a, i, s: a.scatter_add(1, i, s)),
        "index_put": ((x, rows, y), lambda a, i, s: a.index_put((i,), s)),
        "index_add": ((x, rows, y), lambda a, i, s: a.index_add(0, i, s)),
        "embedding backward": ((x, rows, y), embedding_backward),
        "cat": ((x, y), lambda a, b: torch.cat([a, b], 1)),
        "transpose copy": ((x,), lambda a: a.t().contiguous()),
        "flip": ((x,), lambda a: a.flip(1)),
        "roll": ((x,), lambda a: a.roll(7, 1)),
        "tril": ((x,), torch.tril),
        "matmul": ((x, y), torch.matmul),
        "matmul bfloat16": ((half, half), torch.matmul),
        "bmm 64x128x128": ((cube, cube), torch.bmm),
        "int8 matmul": ((eight, eight), torch._int_mm),
        "conv2d": ((image, filters), lambda a, w: F.conv2d(a, w, padding=1)),
        "max_pool2d": ((image,), lambda a: F.max_pool2d(a, 2)),
        "avg_pool2d": ((image,), lambda a: F.avg_pool2d(a, 2)),
        "interpolate": ((image,), lambda a: F.interpolate(a, scale_factor=2, mode="bilinear")),
        "cross_entropy": ((x, rows), F.cross_entropy),
        "qr 128": ((square,), lambda a: torch.linalg.qr(a).R),
        "svd 128": ((square,), torch.linalg.svdvals),
        "eigh 128": ((definite,), torch.linalg.eigvalsh),
        "cholesky 128": ((definite,), torch.linalg.cholesky),
        "solve 128": ((definite, square), torch.linalg.solve),
        "solve_triangular 128": ((definite, square), lambda a, b: torch.linalg.solve_triangular(a, b, upper=True)),
        "fft": ((x,), torch.fft.fft),
        "randn": ((x,), torch.randn_like),
    }


def seconds(work: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    torch.tpu.synchronize()
    return time.perf_counter() - start


def ratio(case: Case, rounds: int) -> float:
    """tpu over CPU."""
    operands, function = case
    there = tuple(t.to("tpu") for t in operands)
    for _ in range(2):
        seconds(lambda: function(*operands), 1)
        seconds(lambda: function(*there), 1)
    times = max(1, min(20, int(0.02 / max(seconds(lambda: function(*operands), 1), 1e-5))))
    found = []
    for _ in range(rounds):
        cpu = seconds(lambda: function(*operands), times)
        found.append(seconds(lambda: function(*there), times) / cpu)
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ops", default="")
    parser.add_argument("--no-host-kernels", action="store_true")
    arguments = parser.parse_args()
    if arguments.no_host_kernels:
        torch_tpu.set_host_kernels(False)
    rows = []
    with torch.no_grad():
        for name, case in cases().items():
            if re.search(arguments.ops, name):
                rows.append((ratio(case, arguments.rounds), name))
    for value, name in sorted(rows, reverse=True):
        print(f"{name:24}{value:8.2f}{'  over 2' if value > 2 else ''}", flush=True)


if __name__ == "__main__":
    main()
