"""What all tests share: the eager modes, and the rule that a skip is a failure unless the test is marked optional."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# The tests' own cache of programs, kept between runs: a program's text is its key, so an older build's entries do no harm.
os.environ.setdefault("TORCH_TPU_CACHE_DIR", str(Path(__file__).resolve().parent.parent / "build" / "test_cache"))

import pytest
import torch
import torch_tpu  # noqa: F401 - for runs from a build tree, where `import torch` does not find it

MODES = {
    "strict": torch.tpu.EagerMode.DEFER_NEVER,
    "debug": torch.tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING,
    "fused": torch.tpu.EagerMode.DEFER_AND_FUSE,
}


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test once in each eager mode; its value is the mode's name."""
    before = torch.tpu.eager_mode
    torch.tpu.eager_mode = MODES[request.param]  # of the process: autograd's threads too
    yield request.param
    torch.tpu.eager_mode = before


@pytest.fixture(autouse=True)
def _same_start() -> Iterator[None]:
    torch.manual_seed(0)
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.get_closest_marker("optional") is None:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a test that must run was skipped: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid}: a file that must run was skipped: {report.longrepr}"
    return report

