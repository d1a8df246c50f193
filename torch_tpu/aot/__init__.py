"""Compiling for real TPUs with none attached: does it compile, does it fit, how fast would it be.

`compile(step, inputs, topology="v6e:1x1")` captures a function or a whole train step on abstract tensors, compiles it with
libtpu for a named topology in a process of its own, and gives the compiler's own figures. Predictions are a model's, not
measurements.
"""

from __future__ import annotations

from .capture import Captured, capture
from .program import Cost, Memory, TpuProgram, compile, load
from .topologies import KINDS, Kind, Topology, parse
from .worker import CompileError, OutOfDeviceMemory

__all__ = [
    "KINDS",
    "Captured",
    "CompileError",
    "Cost",
    "Kind",
    "Memory",
    "OutOfDeviceMemory",
    "Topology",
    "TpuProgram",
    "capture",
    "compile",
    "load",
    "parse",
]
