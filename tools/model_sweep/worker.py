"""The process that runs families: reads jobs on standard input, writes records on standard output, one JSON line
each."""

from __future__ import annotations

import argparse
import json
import os
import sys


def main() -> int:
    """Before each kind a line {"begin": kind} is written, so that whoever reads knows what a dead worker was at; after
    a job a line {"end": family}."""
    parser = argparse.ArgumentParser()
    parser.add_argument("options", help="check.Options as JSON")
    arguments = parser.parse_args()
    # Nothing that a library prints may come between the records.
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TORCH_TPU_FALLBACK", "silent")
    from . import check

    options = check.Options(**json.loads(arguments.options))
    if options.device == "tpu":
        import torch_tpu  # noqa: F401 - for a build tree, which `import torch` does not find
    check.quiet()

    def begin(kind: str) -> None:
        channel.write(json.dumps({"begin": kind}) + "\n")

    for line in sys.stdin:
        job = json.loads(line)
        for record in check.run_family(job["family"], tuple(job["kinds"]), options, begin):
            channel.write(record.to_json() + "\n")
        channel.write(json.dumps({"end": job["family"]}) + "\n")
    # Not through the interpreter's shutdown: a result is never lost to one.
    channel.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
