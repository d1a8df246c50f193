"""Rules about the sources that a reader may rely on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ORDER = [
    "bindings",
    "distributed",
    "dispatch",
    "device",
    "lowering",
    "compile",
    "program",
    "runtime",
    "plugin",
    "base",
]
TORCH_FREE = {"lowering", "compile", "program", "runtime", "plugin", "base"}
CXX = sorted(p for suffix in ("*.h", "*.cc") for p in (ROOT / "csrc").rglob(suffix))
PYTHON = sorted(p for folder in ("torch_tpu", "tests", "examples", "benchmarks") for p in (ROOT / folder).rglob("*.py"))
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path: Path) -> str:
    return path.relative_to(ROOT / "csrc").parts[0]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_are_sources() -> None:
    assert len(CXX) > 50 and len(PYTHON) > 20


@pytest.mark.parametrize("folder", ORDER)
def test_includes_go_rightwards(folder: str) -> None:
    allowed = set(ORDER[ORDER.index(folder) :])
    if folder == "lowering":
        allowed = {"lowering", "program", "base"}
    wrong = []
    for path in (p for p in CXX if folder_of(p) == folder):
        test = path.name.endswith("_test.cc")
        for _, target in INCLUDE.findall(path.read_text()):
            there = target.split("/")[0]
            # A lowering's test may run what it emitted.
            if there in ORDER and there not in allowed and not (test and there in TORCH_FREE):
                wrong.append(f"{name_of(path)} includes {target}")
    assert not wrong, "\n".join(wrong)


def test_lower_folders_know_no_torch() -> None:
    wrong = [
        f"{name_of(path)} includes {target}"
        for path in CXX
        if folder_of(path) in TORCH_FREE
        for _, target in INCLUDE.findall(path.read_text())
        if target.split("/")[0] in {"torch", "ATen", "c10", "Python.h", "pybind11"}
    ]
    assert not wrong, "\n".join(wrong)


def test_the_pjrt_header_stays_below() -> None:
    wrong = [
        f"{name_of(path)} includes {target}"
        for path in CXX
        if folder_of(path) not in {"plugin", "runtime"} and not path.name.endswith("_test.cc")
        for _, target in INCLUDE.findall(path.read_text())
        if Path(target).name == "pjrt_c_api.h"
    ]
    assert not wrong, "\n".join(wrong)


def test_getenv_is_in_one_place() -> None:
    wrong = [
        name_of(path)
        for path in CXX
        if re.search(r"\b(secure_)?getenv\s*\(", path.read_text()) and path != ROOT / "csrc/base/env.cc"
        and not path.name.endswith("_test.cc")
    ]
    assert not wrong, "\n".join(wrong)


def test_files_are_short() -> None:
    wrong = [f"{name_of(p)}: {n} lines" for p in CXX + PYTHON if (n := len(p.read_text().splitlines())) >= 800]
    assert not wrong, "\n".join(wrong)


def test_names_say_what_is_inside() -> None:
    attics = {"utils", "helpers", "common", "misc", "manager"}
    wrong = [
        name_of(path)
        for path in CXX + PYTHON
        # `torch.tpu._utils` is a name that torch.serialization looks up.
        if path.name != "_utils.py" and attics & set(re.split(r"[_./]", name_of(path)))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_absolute_paths() -> None:
    allowed = ("/sys/", "/proc/", "/dev/", "/tmp")
    pattern = re.compile(r'"(/[A-Za-z][\w.+-]*/[^"\s]*)"')
    files = CXX + PYTHON + [ROOT / "CMakeLists.txt", ROOT / "pyproject.toml"]
    wrong = [
        f"{name_of(path)}: {found}"
        for path in files
        if not path.name.endswith("_test.cc") and path.parent.name != "tests"
        for found in pattern.findall(path.read_text())
        if not found.startswith(allowed)
    ]
    assert not wrong, "\n".join(wrong)


def test_torch_is_patched_in_integrations_only() -> None:
    pattern = re.compile(r"^ *(?:torch|F|nn|dist)\.[A-Za-z_.]+ = ", re.MULTILINE)
    wrong = [
        f"{name_of(path)}: {found.strip()}"
        for path in (ROOT / "torch_tpu").rglob("*.py")
        if "integrations" not in path.parts
        for found in pattern.findall(path.read_text())
        if not found.strip().startswith("torch.tpu.")
    ]
    assert not wrong, "\n".join(wrong)


def test_every_header_has_a_contract() -> None:
    wrong = [
        name_of(p) for p in CXX if p.suffix == ".h" and not p.read_text().lstrip().startswith(("//", "/*"))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_python_module_has_a_docstring() -> None:
    import ast

    wrong = [name_of(p) for p in PYTHON if p.read_text().strip() and not ast.get_docstring(ast.parse(p.read_text()))]
    assert not wrong, "\n".join(wrong)
