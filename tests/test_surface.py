"""Loading, plugins, and `torch.tpu`."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
import torch_tpu
from torch_tpu import _loader, plugins
from torch_tpu._internal import execution_mode, sync


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment, timeout=120
    )


# --- loading


def test_load_again_changes_nothing() -> None:
    module = torch.tpu
    _loader.load()
    assert torch.tpu is module and _loader.problem is None


def test_metadata_is_found_by_both_spellings() -> None:
    assert importlib.metadata.version("torch-tpu") == importlib.metadata.version("torch_tpu") == torch_tpu.__version__


def test_entry_point() -> None:
    (entry,) = [e for e in importlib.metadata.entry_points(group="torch.backends") if e.name == "torch_tpu"]
    assert entry.value == "torch_tpu._loader:load"
    assert entry.load() is _loader.load


def test_import_torch_alone_is_enough_and_silent_and_opens_nothing() -> None:
    code = """
import torch
assert torch.device("tpu").type == "tpu"
assert torch.tpu.is_available() and torch.tpu.device_count() == 1
assert not torch.tpu.is_initialized()
mapped = open("/proc/self/maps").read()
from torch_tpu import plugins
assert plugins.discover().candidates[0].path not in mapped
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" and done.stderr == ""


def test_import_torch_stays_fast() -> None:
    code = """
import os, time
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
begin = time.perf_counter()
import torch_tpu
print(time.perf_counter() - begin)
"""
    best = min(float(python(code).stdout) for _ in range(3))
    assert best < 0.150, f"loading the device takes {best:.3f} s"


def test_autoload_can_be_turned_off() -> None:
    done = python("import torch; assert not hasattr(torch, 'tpu')", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr


def test_importing_the_package_first_works() -> None:
    done = python("import torch_tpu, torch; assert (torch.ones(2, device='tpu') + 1).tolist() == [2, 2]")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("autoload", ["0", "1"])
def test_another_torch_is_refused_with_what_to_do(autoload: str) -> None:
    # torch.__version__ is patched where the loader reads it; autoload is triggered by hand.
    code = f"""
import os, warnings
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
torch.__version__ = "9.9.0"
torch.__spec__._initializing = {autoload == "1"}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        from torch_tpu import _loader
        print("imported")
    except ImportError as error:
        print("refused", error)
print("warned", [str(w.message) for w in caught])
if {autoload == "1"}:
    _loader.load()  # as the entry point does
    torch.__spec__._initializing = False
    try:
        import torch_tpu
    except ImportError as error:
        print("then refused", error)
print("usable", (torch.ones(2) + 1).tolist())
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert ("imported" if autoload == "1" else "refused") in done.stdout
    assert "9.9.0" in done.stdout and "pip install torch==" in done.stdout
    assert ("then refused" in done.stdout) == (autoload == "1")
    assert "usable [2.0, 2.0]" in done.stdout


# --- plugins


def test_cpu_plugin_is_found_in_its_package() -> None:
    found = plugins.find("fastatomstruct_xla_cpu".replace("_", "-"))
    assert found is not None and os.path.isfile(found.path)
    assert plugins.find("fastatomstruct_xla_cpu") == found
    assert plugins.find("no-such-plugin") is None


def test_a_name_or_a_path_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_TPU_PLUGIN", "xla-cpu-pjrt")
    (found,) = plugins.discover().candidates
    assert found.name == "xla-cpu-pjrt"
    monkeypatch.setenv("TORCH_TPU_PLUGIN", found.path)
    (by_path,) = plugins.discover().candidates
    assert by_path.path == found.path


@pytest.mark.parametrize("asked", ["no-such-plugin", "/nowhere/plugin.so", "libtpu"])
def test_what_is_not_there_is_said(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_TPU_PLUGIN", asked)
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(plugins, "_in_package", lambda package, file: None)
    found = plugins.discover()
    assert found.candidates == [] and asked in found.problem


def test_without_any_plugin_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_TPU_PLUGIN", raising=False)
    monkeypatch.setattr(plugins, "_in_package", lambda package, file: None)
    found = plugins.discover()
    assert found.candidates == [] and "pip install" in found.problem


def test_libtpu_comes_first_where_a_chip_is(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    library = tmp_path / "libtpu.so"
    library.write_bytes(b"")
    monkeypatch.delenv("TORCH_TPU_PLUGIN", raising=False)
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(library))
    assert plugins.discover().candidates[0].name != "libtpu"
    monkeypatch.setattr(plugins, "tpu_chips", lambda: 4)
    assert plugins.discover().candidates[0] == plugins.Candidate("libtpu", str(library))


def test_chips_are_counted_on_the_bus(tmp_path) -> None:
    for name, vendor, device in (("a", "0x1ae0", "0x006f"), ("b", "0x1ae0", "0x0042"), ("c", "0x8086", "0x006f")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(vendor + "\n")
        (tmp_path / name / "device").write_text(device + "\n")
    assert plugins.tpu_chips(str(tmp_path)) == 1
    assert plugins.tpu_chips(str(tmp_path / "absent")) == 0


def test_use_without_a_plugin_raises_and_the_process_lives() -> None:
    code = """
import torch
assert not torch.tpu.is_available() and torch.tpu.device_count() == 0
torch.manual_seed(1)
try:
    torch.ones(2, device="tpu")
except RuntimeError as error:
    print("refused", error)
print((torch.ones(2) + 1).tolist())
"""
    done = python(code, TORCH_TPU_PLUGIN="no-such-plugin")
    assert done.returncode == 0, done.stderr
    assert "refused" in done.stdout and "no-such-plugin" in done.stdout and "[2.0, 2.0]" in done.stdout


def test_a_file_that_is_no_plugin_raises_and_the_process_lives(tmp_path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"not a shared object")
    code = """
import torch
try:
    torch.ones(2, device="tpu").cpu()
except RuntimeError as error:
    print("refused", error)
"""
    done = python(code, TORCH_TPU_PLUGIN=str(broken))
    assert done.returncode == 0, done.stderr
    assert "refused" in done.stdout and "broken.so" in done.stdout


@pytest.mark.parametrize("value", ["0", "-1", "two"])
def test_a_bad_number_of_devices_is_told(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_TPU_NUM_DEVICES", value)
    with pytest.warns(RuntimeWarning, match=f"TORCH_TPU_NUM_DEVICES.*'{value}'"):
        assert _loader._num_devices() == 1
    monkeypatch.setenv("TORCH_TPU_NUM_DEVICES", "3")
    assert _loader._num_devices() == 3


# --- devices


def test_names_say_what_does_the_work() -> None:
    name = torch.tpu.get_device_name()
    assert name.startswith("TPU v") or ("XLA" in name and "CPU" in name)
    assert torch.tpu.get_device_name("tpu:0") == torch.tpu.get_device_name(torch.device("tpu", 0)) == name


def test_pjrt_kinds_have_their_usual_names() -> None:
    from torch_tpu.tpu._device import _name

    assert _name("tpu", "TPU v6 lite") == "TPU v6e"
    assert _name("tpu", "TPU v5 lite") == "TPU v5e"
    assert _name("tpu", "TPU v5") == "TPU v5p"
    assert _name("tpu", "TPU v9 max") == "TPU v9 max"
    assert _name("cpu", "cpu") == "XLA CPU (no TPU)"


def test_properties() -> None:
    found = torch.tpu.get_device_properties()
    assert found.name == torch.tpu.get_device_name() and found.total_memory > 2**28
    assert found.multi_processor_count == 1


def test_device_is_current_and_initialised() -> None:
    torch.tpu.init()
    assert torch.tpu.is_initialized() and torch.tpu.current_device() == 0
    assert torch.accelerator.current_accelerator() == torch.device("tpu")
    assert torch.accelerator.is_available() and torch.accelerator.device_count() == torch.tpu.device_count()


@pytest.mark.parametrize("wrong", [7, "tpu:7", torch.device("tpu", 7)])
def test_unknown_index_is_refused(wrong) -> None:
    with pytest.raises(RuntimeError, match="7"):
        torch.tpu.set_device(wrong)
    with pytest.raises(RuntimeError, match="7"):
        torch.tpu.get_device_name(wrong)
    with pytest.raises(RuntimeError, match="7"):
        torch.ones(2, device="tpu:7")


def test_a_device_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="cpu"):
        torch.tpu.set_device("cpu")
    with pytest.raises(TypeError, match="float"):
        torch.tpu.set_device(1.5)


def test_several_devices_and_the_contexts() -> None:
    code = """
import torch
assert torch.tpu.device_count() == 2
with torch.tpu.device(1):
    x = torch.ones(2, device="tpu")
    assert torch.tpu.current_device() == 1 and x.device == torch.device("tpu", 1)
assert torch.tpu.current_device() == 0
with torch.tpu.device_of(x):
    assert torch.tpu.current_device() == 1
with torch.tpu.device_of(torch.ones(1)), torch.tpu.device(None), torch.tpu.device(-1):
    assert torch.tpu.current_device() == 0
y = x.to("tpu:0") + 1
assert y.device.index == 0 and y.tolist() == [2, 2] and x.tolist() == [1, 1]
torch.tpu.set_device(1)
assert torch.ones(1, device="tpu").device.index == 1
assert len(torch.tpu.default_generators) == 2
torch.manual_seed(3)
assert [g.initial_seed() for g in torch.tpu.default_generators] == [3, 3]
for i in range(2):
    torch.tpu.synchronize(i)
"""
    done = python(code, TORCH_TPU_NUM_DEVICES="2")
    assert done.returncode == 0, done.stderr


def test_generated_methods() -> None:
    x = torch.ones(2).tpu()
    assert x.is_tpu and not x.cpu().is_tpu
    assert torch.nn.Linear(1, 1).tpu().weight.is_tpu
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2, 1)])
    assert packed.is_tpu is False
    assert x.untyped_storage().is_tpu


def test_amp_dtypes() -> None:
    assert torch.bfloat16 in torch.tpu.get_amp_supported_dtype() and torch.tpu.is_bf16_supported()
    assert torch.get_autocast_dtype("tpu") == torch.tpu._get_autocast_dtype() == torch.bfloat16


# --- streams and events


def test_streams() -> None:
    default = torch.tpu.default_stream()
    assert torch.tpu.current_stream() == default
    other = torch.tpu.Stream()
    assert other.device == torch.device("tpu", 0)
    with torch.tpu.stream(other):
        assert torch.tpu.current_stream() == other
        x = torch.ones(8, device="tpu") * 3
    assert torch.tpu.current_stream() == default
    default.wait_stream(other)
    other.synchronize()
    assert other.query() and x.sum().item() == 24
    torch.tpu.set_stream(other)
    assert torch.tpu.current_stream() == other
    torch.tpu.set_stream(default)
    with torch.tpu.stream(None):
        assert torch.tpu.current_stream() == default
    assert isinstance(default, torch.tpu.Stream) and isinstance(default, torch.Stream)


def test_events() -> None:
    begin, end = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    begin.record()
    x = torch.ones(256, 256, device="tpu")
    for _ in range(5):
        x = x @ x / 256
    end.record()
    end.synchronize()
    assert begin.query() and end.query()
    assert begin.elapsed_time(end) > 0 and isinstance(begin, torch.tpu.Event) and isinstance(begin, torch.Event)
    assert not isinstance(torch.ones(1), torch.tpu.Event)
    torch.tpu.current_stream().wait_event(end)
    with pytest.raises(NotImplementedError, match="between processes"):
        torch.tpu.Event(interprocess=True)


def test_synchronize_by_tensors() -> None:
    x = torch.ones(4, device="tpu") + 1
    sync.synchronize(x)
    sync.synchronize([x, torch.ones(1)], wait=True)
    sync.synchronize()
    assert x.tolist() == [2] * 4


# --- random numbers


def test_rng_state_is_seed_and_offset() -> None:
    torch.tpu.manual_seed(12345)
    state = torch.tpu.get_rng_state()
    assert state.dtype == torch.uint8 and state.device.type == "cpu" and state.shape == (16,)
    assert state[:8].view(torch.int64).item() == 12345 and state[8:].view(torch.int64).item() == 0
    first = torch.rand(5, device="tpu")
    assert torch.tpu.get_rng_state()[8:].view(torch.int64).item() > 0
    torch.tpu.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="tpu").cpu(), first.cpu())
    states = torch.tpu.get_rng_state_all()
    second = torch.rand(5, device="tpu")
    torch.tpu.set_rng_state_all(states)
    assert torch.equal(torch.rand(5, device="tpu").cpu(), second.cpu())


def test_seeds() -> None:
    torch.manual_seed(77)
    assert torch.tpu.initial_seed() == 77
    torch.tpu.manual_seed_all(78)
    assert torch.tpu.initial_seed() == 78 and torch.initial_seed() == 77
    torch.tpu.seed()
    one = torch.tpu.initial_seed()
    torch.tpu.seed_all()
    assert one != torch.tpu.initial_seed()
    assert len(torch.tpu.default_generators) == torch.tpu.device_count()


def test_fork_rng_restores() -> None:
    torch.manual_seed(5)
    with torch.random.fork_rng(devices=[0], device_type="tpu"):
        inside = torch.rand(3, device="tpu").cpu()
    assert torch.equal(torch.rand(3, device="tpu").cpu(), inside)


# --- memory


def test_memory_counts_what_lives() -> None:
    before = torch.tpu.memory_allocated()
    x = torch.ones(1 << 20, device="tpu")
    assert torch.tpu.memory_allocated() - before >= 4 << 20
    assert torch.tpu.max_memory_allocated() >= torch.tpu.memory_allocated()
    del x
    assert torch.tpu.memory_allocated() == before
    torch.tpu.reset_peak_memory_stats()
    assert torch.tpu.max_memory_allocated() == before
    assert torch.tpu.memory_stats()["allocated_bytes.all.current"] == before
    torch.tpu.empty_cache()
    free, total = torch.tpu.mem_get_info()
    assert 0 < free <= total
    assert "allocated_bytes" in torch.tpu.memory_summary()
    assert torch.tpu.memory_reserved() >= 0 and torch.tpu.max_memory_reserved() >= 0


# --- modes, precision, fallback, cache


def test_modes() -> None:
    modes = torch.tpu.EagerMode
    assert torch.tpu.eager_mode is modes.DEFER_NEVER
    with torch.tpu.set_eager_mode(modes.DEFER_NEVER_AND_LAUNCH_BLOCKING):
        assert torch.tpu.eager_mode is modes.DEFER_NEVER_AND_LAUNCH_BLOCKING
        assert execution_mode.eager_mode is modes.DEFER_NEVER_AND_LAUNCH_BLOCKING
    assert torch.tpu.eager_mode is modes.DEFER_NEVER
    torch.tpu.eager_mode = modes.DEFER_NEVER_AND_LAUNCH_BLOCKING
    assert execution_mode.eager_mode is modes.DEFER_NEVER_AND_LAUNCH_BLOCKING
    execution_mode.eager_mode = modes.DEFER_NEVER
    assert torch.tpu.eager_mode is modes.DEFER_NEVER
    with pytest.raises(TypeError, match="EagerMode"):
        torch.tpu.eager_mode = 1
    assert torch.tpu.eager_mode is modes.DEFER_NEVER


def test_mode_is_restored_after_an_error() -> None:
    with pytest.raises(KeyError):
        with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING):
            raise KeyError
    assert torch.tpu.eager_mode is torch.tpu.EagerMode.DEFER_NEVER


def test_mode_from_the_environment() -> None:
    done = python("import torch; print(torch.tpu.eager_mode.name)", TORCH_TPU_LAUNCH_BLOCKING="1")
    assert done.stdout.strip() == "DEFER_NEVER_AND_LAUNCH_BLOCKING", done.stderr


def test_precision_nests_and_restores() -> None:
    from torch_tpu import _C

    assert _C.precision() == -1
    with torch.tpu.precision(torch.tpu.Precision.HIGHEST):
        assert _C.precision() == 2
        with torch.tpu.precision("default"):
            assert _C.precision() == 0
            x = torch.ones(4, 4, device="tpu")
            assert (x @ x).sum().item() == 64
        assert _C.precision() == 2
    assert _C.precision() == -1
    with pytest.raises(ValueError, match="'exact'"), torch.tpu.precision("exact"):
        pass
    with pytest.raises(TypeError, match="Precision"), torch.tpu.precision(1):
        pass


@pytest.fixture(scope="module")
def host_only() -> Iterator[str]:
    """An op that has a CPU kernel and no lowering, now and later."""
    library = torch.library.Library("torch_tpu_tests", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    yield "torch_tpu_tests::twice"
    library._destroy()


def test_fallback_is_counted_and_can_be_refused(host_only: str) -> None:
    def run() -> torch.Tensor:
        return torch.ops.torch_tpu_tests.twice(torch.tensor([1.0, 2.0]).to("tpu"))

    torch_tpu.reset_fallback_counts()
    assert execution_mode.enable_cpu_fallback
    result = run()
    assert result.is_tpu and result.tolist() == [2, 4]
    assert run().tolist() == [2, 4]
    assert torch_tpu.fallback_counts() == {host_only: 2}
    execution_mode.enable_cpu_fallback = False
    try:
        with pytest.raises((RuntimeError, NotImplementedError), match="twice"):
            run()
    finally:
        execution_mode.enable_cpu_fallback = True
    torch_tpu.reset_fallback_counts()
    assert torch_tpu.fallback_counts() == {}


def test_cache_counts() -> None:
    x = torch.full((3, 17), 2.0, device="tpu")
    before = torch.tpu._get_cache_stats()
    (x * x + x).cpu()
    after = torch.tpu._get_cache_stats()
    assert after.num_cache_reqs == torch.tpu._get_cache_requests() >= before.num_cache_reqs
    assert torch.tpu._get_cache_hits() + torch.tpu._get_cache_misses() <= after.num_cache_reqs
    torch.tpu._clear_cache()
    assert (x * x + x).sum().item() == 3 * 17 * 6


def test_every_row_of_the_table_is_registered() -> None:
    from torch_tpu import _C

    assert _C.registration_problems() == []
    assert len(_C.registered_ops()) > 200


def test_every_public_name_is_there() -> None:
    missing = [name for name in torch.tpu.__all__ if not hasattr(torch.tpu, name)]
    assert not missing
    assert sys.modules["torch.tpu"] is torch.tpu


def test_shutdown_is_final() -> None:
    code = """
import torch
x = torch.ones(2, device="tpu") + 1
torch.tpu._shutdown_runtime()
try:
    torch.ones(2, device="tpu") + 1
except RuntimeError as error:
    print("refused", error)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert "refused" in done.stdout


def test_use_in_a_forked_child_raises() -> None:
    code = """
import os, torch
(torch.ones(2, device="tpu") + 1).cpu()
pid = os.fork()
if pid == 0:
    try:
        (torch.ones(2, device="tpu") + 1).cpu()
        os._exit(3)
    except RuntimeError as error:
        os._exit(0 if "spawn" in str(error) else 4)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
assert (torch.ones(2, device="tpu") + 1).tolist() == [2, 2]
"""
    done = python(code)
    assert done.stdout.strip() == "0", (done.stdout, done.stderr)


def test_accelerate_is_told_unless_the_user_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(available: bool = True, **variables: str) -> str | None:
        with monkeypatch.context() as patch:
            for name in ("ACCELERATE_TORCH_DEVICE", "ACCELERATE_USE_CPU"):
                patch.setenv(name, "")  # so that the patch restores what the call sets
                patch.delenv(name)
            for name, value in variables.items():
                patch.setenv(name, value)
            _loader._choose_for_accelerate(available)
            return os.environ.get("ACCELERATE_TORCH_DEVICE")

    assert chosen() == "tpu"
    assert chosen(ACCELERATE_TORCH_DEVICE="cpu") == "cpu"
    assert chosen(ACCELERATE_USE_CPU="true") is None
    assert chosen(available=False) is None
