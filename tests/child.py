"""Python in a process of its own: for what a process can do only once (start, fork, end, another environment)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run(code: str, expect: int = 0, timeout: float = 300, **env: str | None) -> str:
    """Runs `code` and gives what it printed; its standard error is in the failure's text. None removes a variable."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    for name, value in env.items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=variables, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == expect, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    run.stderr = done.stderr  # type: ignore[attr-defined]
    return done.stdout


def errors() -> str:
    """The standard error of the last `run`."""
    return run.stderr  # type: ignore[attr-defined]
