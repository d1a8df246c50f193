"""One side of a comparison, in its own process: `worker.py SIDE`, with SIDE `tpu`, `cpu` or `peer`.

Reads lines `{"case": ..., "n": ...}`, does the work, answers `{"seconds": ...}` per repetition. The peer's process is the
same file in the peer's environment, where device `tpu` is the peer's.
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
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["case"] not in ready:
                ready[request["case"]] = CASES[request["case"]](device)
            work = ready[request["case"]]
            begin = time.perf_counter()
            result = work(request["n"])
            if device != "cpu":
                torch.accelerator.synchronize()
            seconds = (time.perf_counter() - begin) / request["n"]
            del result
            answer = {"seconds": seconds}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
