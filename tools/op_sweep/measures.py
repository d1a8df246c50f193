"""The figures that the sweep is for: which jobs each stands on, and what is asked of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from .record import Record

DTYPES = ("float32", "bfloat16", "float16", "float64", "int64", "int32", "uint8", "bool", "complex64")
BAD = ("fail", "abort", "hang")


@dataclasses.dataclass(frozen=True)
class Measure:
    """A figure over the records of `kinds` and `dtypes`: at least `target` percent have one of the statuses `good`.

    A first-dtype measure takes each entry in the first of `dtypes` that it has."""

    name: str
    kinds: tuple[str, ...]
    dtypes: tuple[str, ...]
    target: float
    good: tuple[str, ...] = ("pass", "host")
    first_dtype: bool = False

    def of(self, records: Iterable[Record]) -> list[Record]:
        return [r for r in records if r.kind in self.kinds and r.dtype in self.dtypes and r.status != "skip"]


MEASURES = (
    Measure("forward, float32", ("forward",), ("float32",), 99),
    Measure("forward, float32, nothing on the host", ("forward",), ("float32",), 97, good=("pass",)),
    Measure("forward, float32, host handlers off", ("plain",), ("float32",), 95),
    Measure("backward, float32", ("backward",), ("float32",), 98),
    Measure("forward, other dtypes (entry, dtype)", ("forward",), DTYPES[1:], 98),
    Measure("in-place variants", ("inplace",), DTYPES, 98, first_dtype=True),
    Measure("out= variants", ("out",), DTYPES, 98, first_dtype=True),
    Measure("error inputs, exception type", ("errors",), DTYPES, 95, first_dtype=True),
    Measure("other float arguments compile nothing", ("programs",), ("float32",), 95),
)


def wanted(kind: str, dtype: str, available: Collection[str]) -> bool:
    """Whether a measure stands on this kind at this dtype for an entry that has the dtypes `available`."""
    for measure in MEASURES:
        if kind not in measure.kinds or dtype not in measure.dtypes:
            continue
        if not measure.first_dtype or dtype == next(d for d in measure.dtypes if d in available):
            return True
    return False
