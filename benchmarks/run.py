"""All benchmarks in one table: `make bench`, or `make bench ARGS="add matmul"` for some."""

from __future__ import annotations

import sys

import digits_step
import matmul
import models
import op_overhead
from paired import run


def main(names: list[str]) -> int:
    """Measures the named cases, or all. A missed target is shown, not an error."""
    rows = [*op_overhead.ROWS, *matmul.ROWS, *digits_step.ROWS, *models.ROWS]
    unknown = set(names) - {row.case for row in rows}
    if unknown:
        print(f"expected some of {', '.join(row.case for row in rows)}, got {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    run("torch_tpu, strict eager", [row for row in rows if not names or row.case in names])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
