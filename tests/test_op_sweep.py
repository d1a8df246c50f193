"""The sweep itself: it passes on the device that it compares with, and finds every kind of fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from tools.op_sweep import faults, pool  # noqa: E402
from tools.op_sweep.check import Options, run  # noqa: E402
from tools.op_sweep.compare import Reference, Tolerance, difference  # noqa: E402
from tools.op_sweep.measures import DTYPES, MEASURES, wanted  # noqa: E402
from tools.op_sweep.record import Record, read_records  # noqa: E402
from tools.op_sweep.samples import entry_name, move  # noqa: E402
from tools.op_sweep.summary import measure_rows  # noqa: E402
from tools.op_sweep.support import support_text  # noqa: E402

ENTRIES = {entry_name(op): op for op in op_db}


def record_of(entry: str, kind: str, fault: str | None = None, dtype: torch.dtype = torch.float32) -> Record:
    return run(ENTRIES[entry], dtype, kind, Options(device="cpu", samples=3, fault=fault))


@pytest.mark.parametrize("entry", ["add", "matmul", "linalg.svd", "nn.functional.dropout", "uniform", "empty", "split", "to"])
def test_cpu_agrees_with_itself(entry: str) -> None:
    for kind in ("forward", "backward", "inplace", "out", "errors"):
        record = record_of(entry, kind)
        assert record.status in ("pass", "skip"), record


@pytest.mark.parametrize("fault", faults.NAMES)
def test_a_planted_fault_is_found(fault: str) -> None:
    kind = "backward" if fault == "gradient" else "forward"
    record = record_of("matmul" if fault == "stride" else "mul", kind, fault)
    assert record.status == "fail" and record.samples > 0, record
    word = {"value": "values", "stride": "strides"}.get(fault, fault)
    assert word in record.message


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool, torch.complex64]
)
def test_a_wrong_value_is_found_in_every_dtype(dtype: torch.dtype) -> None:
    assert record_of("mul", "forward", dtype=dtype).status == "pass"
    assert record_of("mul", "forward", "value", dtype).status == "fail"


def test_a_result_nearer_to_the_exact_one_than_cpus_agrees_and_is_counted() -> None:
    exact = torch.tensor([1.0, 100.0], dtype=torch.float64)
    cpu = torch.tensor([1.0, 101.0])
    for got, agrees in (([1.0, 99.5], True), ([1.0, 102.0], False), ([1.5, 100.0], False), ([1.0, float("nan")], False)):
        reference = Reference(lambda: exact)
        text = difference(torch.tensor(got), cpu, Tolerance(), "cpu", reference=reference)
        assert (text == "") == agrees == reference.used, (got, text)
    assert difference(torch.tensor([1.0, 99.5]), cpu, Tolerance(), "cpu") != ""


def test_indices_of_equal_elements_are_free_but_others_are_not() -> None:
    assert record_of("topk", "forward", dtype=torch.int64).status == "pass"
    assert record_of("topk", "forward", "value", torch.int64).status == "fail"


def test_measures_take_each_entry_where_it_counts() -> None:
    assert wanted("out", "float32", DTYPES) and not wanted("out", "int64", DTYPES) and wanted("out", "int64", ["int64", "bool"])
    assert wanted("forward", "bool", DTYPES) and not wanted("backward", "bool", DTYPES)
    records = [Record("a", "float32", "forward", "pass", 2, 2), Record("b", "float32", "forward", "host", 2, 2),
               Record("c", "float32", "forward", "fail", 2, 1), Record("d", "float32", "forward", "skip")]  # fmt: skip
    rows = {name: (good, count) for name, good, count, *_ in measure_rows(records)}
    assert rows[MEASURES[0].name] == (2, 3) and rows[MEASURES[1].name] == (1, 3)


def test_the_support_table_says_what_the_records_say(tmp_path: Path) -> None:
    records = [
        Record("add", "float32", "forward", "pass", 8, 8, ops=["add.Tensor"]),
        Record("add", "int64", "forward", "fail", 8, 5, "sample 1: values | differ", ops=["add.Tensor"]),
        Record("add", "float32", "inplace", "host", 3, 3, host={"aten::add_": 1}),
        Record("eig", "float32", "forward", "host", 8, 8, host={"aten::linalg_eig": 8}, ops=["linalg_eig"]),
    ]
    tpu = tmp_path / "tpu.jsonl"
    tpu.write_text(
        '{"op": "add.Tensor", "dtype": "float32", "kind": "v6e", "ok": true, "why": ""}\n'
        '{"op": "linalg_eig", "dtype": "float32", "kind": "v6e", "ok": false, "why": "no such thing"}\n'
    )
    lines = support_text(records, tpu).splitlines()
    assert "| add | yes |  | host |  |  | f32 | i64 | yes |" in lines
    assert "| eig | host |  |  |  |  | f32 |  | no |" in lines
    assert "| aten::linalg_eig | 1 |" in lines
    assert "| add | int64 | forward | sample 1: values / differ |" in lines
    assert "| linalg_eig | float32 | v6e | no such thing |" in lines


def test_float_arguments_that_make_programs_are_found() -> None:
    def programs(entry: str) -> Record:
        return run(ENTRIES[entry], torch.float32, "programs", Options(samples=3))

    assert programs("addcmul").status == "pass"
    assert programs("renorm").status == "fail"  # its order and bound are part of the program


@pytest.mark.parametrize(("entry", "kind"), [("add", "inplace"), ("add", "out"), ("cat", "errors")])
def test_faults_in_other_variants_are_found(entry: str, kind: str) -> None:
    assert record_of(entry, kind, "value").status == "fail"


def test_a_value_fault_in_random_results_is_not_looked_for_but_a_shape_is() -> None:
    assert record_of("nn.functional.dropout", "forward", "shape").status == "fail"


def test_move_keeps_the_layout() -> None:
    base = torch.arange(24.0).reshape(4, 6)
    for x in (base.t(), base[1:, ::2], base[:, :1].expand(4, 3), base):
        y = move(x, "cpu")
        assert y.stride() == x.stride() and y.storage_offset() == x.storage_offset() and torch.equal(x, y)
        assert y.data_ptr() != x.data_ptr()


def test_workers_report_aborts_and_hangs_and_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker that dies, and one that never answers, stand in for the real one."""
    program = tmp_path / "worker.py"
    program.write_text(
        "import json, os, sys, time\n"
        "for line in sys.stdin:\n"
        "    job = json.loads(line)\n"
        "    print(json.dumps({'begin': job}), flush=True)\n"
        "    if job['entry'] == 'dies': os._exit(7)\n"
        "    if job['entry'] == 'sleeps': time.sleep(60)\n"
        "    print(json.dumps({'entry': job['entry'], 'dtype': 'float32', 'kind': 'forward', 'status': 'pass'}), flush=True)\n"
    )
    real = subprocess.Popen

    def popen(command: list[str], **kwargs: object) -> subprocess.Popen[bytes]:
        return real([sys.executable, str(program), command[-1]], **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(pool.subprocess, "Popen", popen)
    found: dict[str, Record] = {}
    jobs = [(name, "float32", "forward") for name in ("first", "dies", "sleeps", "last")]
    pool.run_jobs(jobs, Options(), lambda r: found.__setitem__(r.entry, r), workers=1, limit=1.0)
    assert {name: r.status for name, r in found.items()} == {
        "first": "pass",
        "dies": "abort",
        "sleeps": "hang",
        "last": "pass",
    }
    assert "7" in found["dies"].message


def test_results_are_resumed(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "tools.op_sweep", "--device", "cpu", "--ops", "^(neg|mul)$", "--samples", "1",
               "--kinds", "forward", "--workers", "1", "--results", str(results)]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = results.read_text().splitlines()
    assert len(lines) == 2 and all(r.samples == 1 for r in read_records(results).values())
    results.write_text(lines[0] + "\n" + lines[1][:20])  # interrupted while writing
    assert len(read_records(results)) == 1
