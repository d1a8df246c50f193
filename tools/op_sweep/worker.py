"""The process that runs entries: reads jobs on standard input, writes records on standard output, one JSON line each."""

from __future__ import annotations

import argparse
import json
import os
import sys


def main() -> int:
    """Before a job a line {"begin": ...} is written, so that whoever reads knows what a dead worker was at."""
    parser = argparse.ArgumentParser()
    parser.add_argument("options", help="check.Options as JSON")
    arguments = parser.parse_args()
    # Nothing that a library prints may come between the records.
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ.setdefault("TORCH_TPU_FALLBACK", "silent")

    import torch

    torch.set_num_threads(1)
    from torch.testing._internal.common_methods_invocations import op_db

    from . import check
    from .samples import entry_name

    options = check.Options(**json.loads(arguments.options))
    if options.device == "tpu":
        import torch_tpu  # noqa: F401 - for a build tree, which `import torch` does not find
    entries = {entry_name(op): op for op in op_db}
    for line in sys.stdin:
        job = json.loads(line)
        channel.write(json.dumps({"begin": job}) + "\n")
        record = check.run(entries[job["entry"]], getattr(torch, job["dtype"]), job["kind"], options)
        channel.write(record.to_json() + "\n")
    # Not through the interpreter's shutdown: a result is never lost to one.
    channel.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
