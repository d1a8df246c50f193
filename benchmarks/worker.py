"""One side of a comparison, in its own process: `worker.py SIDE`, with SIDE `tpu`, `cpu` or `peer`.

Reads lines `{"case": ..., "n": ..., "loop": ...}`, does the work, answers `{"seconds": ...}` per repetition. With `loop` (ours
only) the executables that the work launches are launched again by a C++ loop instead. The peer's process is the same file
in the peer's environment, where device `tpu` is the peer's.
"""

from __future__ import annotations

import json
import sys
import time
import warnings


def main() -> None:
    """Serves until its input ends."""
    side = sys.argv[1]
    warnings.simplefilter("ignore")
    answers = sys.stdout
    sys.stdout = sys.stderr  # libraries that print must not break the protocol
    import torch

    if side == "peer":
        import run_peer  # noqa: F401
    elif side == "tpu":
        import torch_tpu  # noqa: F401
    from cases import CASES

    device = "cpu" if side == "cpu" else "tpu"
    ready: dict[str, object] = {}
    recorded = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["case"] not in ready:
                ready[request["case"]] = CASES[request["case"]](device)
            work = ready[request["case"]]
            if request.get("loop"):
                from torch_tpu import _C

                if recorded != request["case"]:
                    recorded = request["case"]
                    work(1)
                    _C.start_recording()
                    work(1)
                    _C.stop_recording()
                answer = {"seconds": _C.replay(0, request["n"])}
            else:
                begin = time.perf_counter()
                result = work(request["n"])
                if device != "cpu":
                    torch.accelerator.synchronize()
                answer = {"seconds": (time.perf_counter() - begin) / request["n"]}
                del result
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
