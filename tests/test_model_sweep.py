"""The sweep over Transformers finds what is wrong, and only that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.model_sweep import check, families, pool
from tools.model_sweep.__main__ import jobs_of
from tools.model_sweep.record import KINDS, Record, read_records
from tools.model_sweep.report import models_text

pytestmark = pytest.mark.timeout(600)


def run(family: str, kinds: tuple[str, ...] = KINDS, fault: str | None = None) -> dict[str, Record]:
    """In this process; the device's mode is put back."""
    before = torch.tpu.eager_mode
    try:
        records = list(check.run_family(family, kinds, check.Options(fault=fault), lambda kind: None))
    finally:
        torch.tpu.eager_mode = before
    return {record.kind: record for record in records}


def test_a_good_model_passes() -> None:
    found = run("gpt2")
    assert {kind: record.status for kind, record in found.items()} == dict.fromkeys(KINDS, "pass")
    assert found["build"].parameters < 1_000_000 and 0 < found["forward"].error < 1e-4


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_planted_fault_is_found(kind: str) -> None:
    assert run("gpt2", (kind,), fault=kind)[kind].status == "fail"


@pytest.mark.parametrize(("fault", "status"), [("abort", "abort"), ("hang", "hang"), ("memory", "abort")])
def test_a_process_that_dies_is_a_result(fault: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IMPORTS", 60.0 if fault != "hang" else 0.0)
    records: list[Record] = []
    options = check.Options(device="cpu", fault=fault)
    pool.run_jobs(
        [("gpt2", ("build", "forward"))], options, records.append, limit=20 if fault != "hang" else 4, memory=2**30
    )
    assert [(r.kind, r.status) for r in records] == [("build", status), ("forward", status)]
    assert ("GiB" in records[0].message) == (fault == "memory")


def test_a_family_without_a_model_is_left_out() -> None:
    found = run("layoutxlm", ("build", "forward"))
    assert {record.status for record in found.values()} == {"skip"} and found["forward"].message


def test_distance() -> None:
    x = torch.tensor([1.0, -2.0, float("inf")])
    assert check.distance(x, x) == 0
    assert check.distance(x + torch.tensor([0.0, 0.02, 0.0]), x) == pytest.approx(0.01, rel=1e-3)
    for other in (
        x.double(),
        x[:2],
        torch.tensor([1.0, -2.0, float("-inf")]),
        torch.tensor([1.0, float("nan"), float("inf")]),
    ):
        assert check.distance(other, x) == float("inf")
    assert check.distance(torch.tensor([1, 2]), torch.tensor([1, 3])) == float("inf")


def test_ties_are_seen() -> None:
    model = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    assert check.ties(model) == set()
    model["b"].weight = model["a"].weight
    assert check.ties(model) == {frozenset({"a.weight", "b.weight"})}


def test_parts_of_models_are_families_too() -> None:
    found, causal = families.model_class("clip_vision_model")
    assert found.__name__ == "CLIPVisionModel" and not causal
    assert families.model_class("llama")[0].__name__ == "LlamaForCausalLM"


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    lines = [
        Record("a", "build", "pass"),
        Record("a", "forward", "fail", "off"),
        Record("b", "build", "skip", "too big"),
    ]
    path.write_text("\n".join(r.to_json() for r in lines) + "\n" + lines[0].to_json()[:20])
    records = read_records(path)
    assert len(records) == 3
    kinds, names = ("build", "forward"), ["a", "b", "c"]

    def jobs(**how: bool) -> list:
        return jobs_of(names, kinds, records, **{"failed": False, "again": False, "skipped": False, **how})

    assert jobs() == [("b", ("forward",)), ("c", kinds)]
    assert jobs(failed=True) == [("a", ("forward",))]
    assert jobs(skipped=True) == [("b", kinds)]
    assert len(jobs(again=True)) == 3

    text = models_text(records.values(), names, "strict", "")
    assert "| values equal (1e-3 of the output's scale) | 1 | 0 | 0.0 | 0 |" in text
    assert "- `a`, forward: off" in text and "Not run" in text and "`c`" in text
