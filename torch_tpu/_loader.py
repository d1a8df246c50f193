"""The entry point `torch.backends: torch_tpu`: registers the device with PyTorch. Starts no client and opens no plugin."""

from __future__ import annotations

import os
import sys
import threading
import warnings

import torch

from ._version import BUILT_FOR_TORCH, __version__

problem: str | None = None  # why `tpu` is not there, for the user; None when all is well or nothing was tried yet
_loaded = False
_lock = threading.RLock()


def load() -> None:
    """Makes `tpu` a device of this process's torch. Idempotent, thread-safe, and never raises.

    When it cannot, `problem` says why and what to do, and a warning shows it once.
    """
    global _loaded, problem
    with _lock:
        if _loaded:
            if problem is not None:
                # Autoloading only warned. The next `import torch_tpu`, by the user, shall run the package again, and raise.
                sys.modules.pop("torch_tpu", None)
            return
        _loaded = True
        try:
            _register()
        except Exception as error:
            problem = str(error)
            warnings.warn(f"device 'tpu' is not available: {problem}", RuntimeWarning, stacklevel=2)


def _check_torch() -> None:
    found = torch.__version__.split("+")[0]
    if found != BUILT_FOR_TORCH:
        raise ImportError(
            f"torch_tpu {__version__}: expected torch {BUILT_FOR_TORCH}, which it was built for, got torch {torch.__version__}. "
            f"Install that release (`pip install torch=={BUILT_FOR_TORCH}`), or build torch_tpu for yours from its sources."
        )


def _register() -> None:
    _check_torch()
    from . import plugins

    found = plugins.discover()
    try:
        from . import _C
    except ImportError as error:
        hint = "Build it with `make setup` or `pip install .`"
        raise ImportError(f"torch_tpu's extension cannot be loaded: {error}. {hint}") from error

    _C.configure([(c.name, c.path) for c in found.candidates], _num_devices())
    torch.utils.rename_privateuse1_backend("tpu")
    from . import tpu

    tpu._device.no_plugin = found.problem
    torch._register_device_module("tpu", tpu)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    torch.set_autocast_dtype("tpu", torch.bfloat16)
    _choose_for_accelerate(bool(found.candidates))
    from .integrations import accelerate, autocast, flex_attention, grouped_mm, inductor, safetensors

    accelerate.install()
    autocast.install()
    flex_attention.install()
    grouped_mm.install()
    inductor.install()
    safetensors.install()


def _num_devices() -> int:
    text = os.environ.get("TORCH_TPU_NUM_DEVICES", "1")
    if not text.isdecimal() or int(text) < 1:
        warnings.warn(f"TORCH_TPU_NUM_DEVICES: expected a positive integer, got {text!r}; using 1", RuntimeWarning, stacklevel=4)
        return 1
    return int(text)


def _choose_for_accelerate(available: bool) -> None:
    # Transformers' Trainer picks `tpu` by torch.tpu.is_available(), but Accelerate (1.15) knows no `tpu` and would move the
    # model back to the CPU: this variable is its own way to be told. A user's choice stands, also the choice of the CPU.
    chosen = {"ACCELERATE_TORCH_DEVICE", "ACCELERATE_USE_CPU"} & os.environ.keys()
    if available and not chosen and torch.version.cuda is None:
        os.environ["ACCELERATE_TORCH_DEVICE"] = "tpu"
