"""Compiling for real TPUs with none attached: does it compile, does it fit, how fast would it be.

`compile(step, inputs, topology="v6e:1x1")` captures a function or a whole train step on abstract tensors, compiles it with
libtpu for a named topology in a process of its own, and gives the compiler's own figures. Predictions are a model's, not
measurements.
"""

from __future__ import annotations

from .capture import Captured, capture
from .check import OpCheck, check_ops
from .compare import Difference, diff, scale, scaling
from .program import Cost, Memory, TpuProgram, check_devices, compile, compile_captured, from_stablehlo, load, tokens_of
from .ranks import ranks, ranks_if_many
from .topologies import KINDS, Kind, Topology, parse
from .worker import CompileError, OutOfDeviceMemory

__all__ = [
    "KINDS",
    "Captured",
    "CompileError",
    "Cost",
    "Difference",
    "Kind",
    "Memory",
    "OpCheck",
    "OutOfDeviceMemory",
    "Topology",
    "TpuProgram",
    "capture",
    "check_devices",
    "check_ops",
    "compile",
    "compile_captured",
    "diff",
    "from_stablehlo",
    "load",
    "parse",
    "ranks",
    "ranks_if_many",
    "scale",
    "scaling",
    "tokens_of",
]
