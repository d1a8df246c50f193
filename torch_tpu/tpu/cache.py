"""The compile cache's counters, under the private names that programs read."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _C


@dataclass(frozen=True)
class CacheStats:
    """Counts since the client's start; times in seconds."""

    num_cache_reqs: int
    num_cache_hits: int
    num_compilations: int
    memory_hits: int
    disk_hits: int
    disk_errors: int
    compile_seconds: float
    load_seconds: float


def _get_cache_stats() -> CacheStats:
    raw = dict(_C.cache_stats())
    return CacheStats(
        num_cache_reqs=raw["requests"],
        num_cache_hits=raw["memory_hits"] + raw["disk_hits"],
        num_compilations=raw["compilations"],
        memory_hits=raw["memory_hits"],
        disk_hits=raw["disk_hits"],
        disk_errors=raw["disk_errors"],
        compile_seconds=raw["compile_seconds"],
        load_seconds=raw["load_seconds"],
    )


def _get_cache_requests() -> int:
    return _get_cache_stats().num_cache_reqs


def _get_cache_hits() -> int:
    return _get_cache_stats().num_cache_hits


def _get_cache_misses() -> int:
    return _get_cache_stats().num_compilations


def _clear_cache() -> None:
    _C.clear_cache()
