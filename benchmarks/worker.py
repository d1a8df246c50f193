"""One side of a comparison, in its own process: `worker.py SIDE`, with SIDE `tpu`, `cpu` or `peer`.

Reads lines `{"case": ..., "n": ..., "mode": ..., "loop": ...}`, does the work, answers `{"seconds": ...}` per repetition. With
`loop` (ours only, strict) the executables that the work launches are launched again by a C++ loop instead. In fused mode each
repetition ends with a read, so that it is one program however many follow. The peer's process is the same file in the peer's
environment, where device `tpu` is the peer's and its mode is the environment's.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import torch


def _replayed(work: Any, n: int) -> float:
    from torch_tpu import _C

    work(1)
    _C.start_recording()
    work(1)
    _C.stop_recording()
    return _C.replay(0, n)


def _measure(work: Any, n: int, device: str, fused: bool) -> float:
    begin = time.perf_counter()
    if fused:
        for _ in range(n):
            work(1).cpu()
    else:
        result = work(n)
        if device != "cpu":
            torch.accelerator.synchronize()
        del result
    return (time.perf_counter() - begin) / n


def main() -> None:
    """Serves until its input ends."""
    side = sys.argv[1]
    warnings.simplefilter("ignore")
    answers = sys.stdout
    sys.stdout = sys.stderr  # libraries that print must not break the protocol
    if side == "peer":
        import run_peer  # noqa: F401
    elif side == "tpu":
        import torch_tpu
    import figures
    from cases import CASES

    device = "cpu" if side == "cpu" else "tpu"
    ready: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        fused = request.get("mode") == "fused"
        if side == "tpu":
            torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE if fused else torch.tpu.EagerMode.DEFER_NEVER
        answer: dict[str, Any]
        try:
            case = request["case"]
            if "figure" in request:
                answer = {"value": getattr(figures, request["figure"])(CASES[case], device)}
            else:
                if case not in ready:
                    ready[case] = CASES[case](device)
                measure = _replayed if request.get("loop") else lambda work, n: _measure(work, n, device, fused)  # noqa: B023
                answer = {"seconds": measure(ready[case], request["n"])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
        if side == "tpu":
            torch_tpu.explain()  # forgets the records
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
