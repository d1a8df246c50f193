"""What `make bench` measures, and the targets."""

from __future__ import annotations

from dataclasses import dataclass

STRICT, FUSED = "strict", "fused"


@dataclass(frozen=True)
class Target:
    """The largest ratio of our time to that of `side`: cpu, loop, peer strict or peer fused."""

    side: str
    limit: float
    goal: bool = False  # aimed for, not promised


@dataclass(frozen=True)
class Row:
    """A case of cases.py in a mode of ours, repetitions per batch, rounds, and its targets."""

    case: str
    mode: str
    n: int
    rounds: int
    targets: tuple[Target, ...]
    per: int = 1  # ops in a repetition, where the time is an op's

    @property
    def name(self) -> str:
        """As it is named on the command line."""
        return f"{self.case}-{self.mode}"


ROWS = [
    Row("add", STRICT, 1000, 9, (Target("peer strict", 1 / 6),)),
    Row("chain", STRICT, 10, 9, (Target("peer strict", 0.25),), per=100),
    Row("chain", FUSED, 20, 11, (Target("cpu", 1.0), Target("peer fused", 1 / 8)), per=100),
    Row("matmul", STRICT, 5, 11, (Target("loop", 1.1),)),
    Row("digits", STRICT, 3, 9, (Target("loop", 1.25),)),
    Row("mlp", FUSED, 10, 11, (Target("cpu", 0.7),)),
    Row("gpt2", STRICT, 1, 7, (Target("peer strict", 0.8),)),
    Row("gpt2", FUSED, 2, 9, (Target("peer fused", 0.6), Target("cpu", 0.8, goal=True))),
    Row("llama_forward", FUSED, 3, 9, (Target("cpu", 0.6),)),
    Row("resnet18", FUSED, 1, 7, (Target("cpu", 1.2),)),
]
