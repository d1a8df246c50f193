"""What TPUs exist: the facts that a report measures programs against. Figures are for one chip unless said otherwise."""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One generation. Peaks are Google's published figures for a chip (cloud.google.com/tpu/docs, system architecture)."""

    name: str
    plugin_name: str  # in the compiler's topology names
    accelerator: str  # the accelerator type that the compiler wants to be told
    dims: int  # of its interconnect: 2 (mesh or torus) or 3
    devices_per_chip: int  # what a program sees as devices: v4 and v5p join two cores into one
    hbm_bytes: float
    bf16_flops: float
    int8_ops: float
    bandwidth: float  # of HBM, bytes/s
    matrix_units: int  # multipliers per cycle and chip, in units of 128 x 128
    links: float  # what a chip sends to its neighbours, bytes/s, all links together (half of the bidirectional figure)

    @property
    def clock(self) -> float:
        """Cycles per second, from the peak: peak = matrix units * 128 * 128 * 2 * clock."""
        return self.bf16_flops / (self.matrix_units * 128 * 128 * 2)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("v4", "v4", "v4-8", 3, 2, 32e9, 275e12, 275e12, 1228e9, 8, 300e9),
        Kind("v5e", "v5e", "v5litepod-4", 2, 1, 16e9, 197e12, 394e12, 819e9, 4, 200e9),
        Kind("v5p", "v5p", "v5p-8", 3, 1, 95e9, 459e12, 918e12, 2765e9, 8, 600e9),
        Kind("v6e", "v6e", "v6e-4", 2, 1, 32e9, 918e12, 1836e12, 1640e9, 16, 400e9),
        Kind("v7x", "tpu7x", "tpu7x-8", 3, 2, 192e9, 2307e12, 4614e12, 7380e9, 32, 600e9),
    )
}
SOURCE = (
    "Peaks, HBM and link bandwidth: Google's pages on each generation (cloud.google.com/tpu/docs/v4, v5e, v5p, v6e, tpu7x). A "
    "device is what a program sees: a chip, or one of its two cores on v4 and v7x. The clock is derived from the peak."
)
MAX_CHIPS = {"v4": 4096, "v5e": 256, "v5p": 8960, "v6e": 256, "v7x": 9216}


@dataclass(frozen=True)
class Topology:
    """`v6e:2x2`: a kind and how its chips are laid out."""

    kind: Kind
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """As users write it."""
        return f"{self.kind.name}:{'x'.join(map(str, self.shape))}"

    @property
    def plugin_name(self) -> str:
        """As the compiler knows it."""
        return f"{self.kind.plugin_name}:{'x'.join(map(str, self.shape))}"

    @property
    def chips(self) -> int:
        """Chips in the slice."""
        return math.prod(self.shape)

    @property
    def devices(self) -> int:
        """Devices that a program can use."""
        return self.chips * self.kind.devices_per_chip

    @property
    def hbm_bytes(self) -> float:
        """Of one device."""
        return self.kind.hbm_bytes / self.kind.devices_per_chip

    @property
    def peak_flops(self) -> float:
        """Of one device, bfloat16 products."""
        return self.kind.bf16_flops / self.kind.devices_per_chip

    @property
    def bandwidth(self) -> float:
        """Of one device's HBM, bytes/s."""
        return self.kind.bandwidth / self.kind.devices_per_chip

    @property
    def link_bandwidth(self) -> float:
        """What one device sends to its neighbours, bytes/s."""
        return self.kind.links / self.kind.devices_per_chip


def parse(text: str) -> Topology:
    """`v6e:2x2`, `v7x:2x2x1` (also `tpu7x:...`). Raises ValueError that names what is near."""
    kind_name, _, shape_text = text.strip().lower().partition(":")
    kind_name = {"tpu7x": "v7x", "v7": "v7x", "v5lite": "v5e", "v6lite": "v6e"}.get(kind_name, kind_name)
    if kind_name not in KINDS:
        near = difflib.get_close_matches(kind_name, KINDS, n=2, cutoff=0.3) or list(KINDS)
        raise ValueError(f"topology: expected one of {', '.join(KINDS)}, got {text!r}; did you mean {' or '.join(near)}?")
    kind = KINDS[kind_name]
    example = "x".join(["2", "2", "1"][: kind.dims])
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", shape_text) or shape_text.count("x") + 1 != kind.dims:
        raise ValueError(f"topology: expected {kind.dims} sizes for {kind.name}, as in {kind.name}:{example}, got {text!r}")
    topology = Topology(kind, tuple(int(size) for size in shape_text.split("x")))
    if topology.chips > MAX_CHIPS[kind.name]:
        raise ValueError(f"topology: {kind.name} has at most {MAX_CHIPS[kind.name]:,} chips, {text!r} names {topology.chips:,}")
    # Hosts have 2 x 2 chips; a part of one is 1 x 1 or 2 x 1.
    if topology.chips > 2 and any(size % 2 for size in topology.shape[:2]) and topology.shape[:2] != (1, 1):
        even = Topology(kind, (*(size + size % 2 for size in topology.shape[:2]), *topology.shape[2:]))
        raise ValueError(f"topology: hosts have 2x2 chips, so expected even sizes, as in {even.name}, got {text!r}")
    return topology
