"""Streams and events, over PyTorch's own."""

from __future__ import annotations

from typing import Any

import torch

from ._utils import _get_device_index


class Stream(torch.Stream):
    """An order of execution on one device.

    A device runs its programs in the order of their launch, so streams of one device share that order: what another stream
    was given before is done before. Waiting, querying and events mean what they say.
    """

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        index = _get_device_index(device, optional=True)
        return super().__new__(cls, torch.device("tpu", index), priority=priority)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Least and greatest priority: all streams have the same."""
        return (0, 0)

    def __repr__(self) -> str:
        return f"<torch.tpu.Stream device={self.device} stream_id={self.stream_id}>"


class _EventType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Event) and instance.device.type == "tpu"


class Event(torch.Event, metaclass=_EventType):
    """A mark in a stream: `record`, then `query`, `synchronize`, `wait`, and `elapsed_time` (ms) with `enable_timing`.

    Calling it gives a plain torch.Event of the device: `elapsed_time` and others take no subclass.
    """

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
        device: Any = None,
    ) -> torch.Event:
        if interprocess:
            raise NotImplementedError("torch.tpu.Event: events of a tpu cannot be shared between processes")
        where = torch.device("tpu", _get_device_index(device, optional=True))
        return torch.Event(where, enable_timing=enable_timing, blocking=blocking)


def _ours(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device: Any = None) -> Stream:
    """The stream of `device` (None: the current one) that this thread's work goes to."""
    return _ours(torch._C._accelerator_getStream(_get_device_index(device, optional=True)))


def default_stream(device: Any = None) -> Stream:
    """The stream that a device starts with."""
    index = _get_device_index(device, optional=True)
    kind = torch._C._accelerator_getStream(index).device_type
    return Stream(stream_id=0, device_index=index, device_type=kind)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes `stream` current on its device, and that device current. None: no-op."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class StreamContext:
    """Context manager: work inside goes to `stream`; afterwards device and streams are as before. None: no-op."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> torch.Stream | None:
        if self.stream is None:
            return None
        self._before = torch._C._accelerator_getStream(torch._C._accelerator_getDeviceIndex())
        self._there = torch._C._accelerator_getStream(self.stream.device_index)
        torch._C._accelerator_setStream(self.stream)
        return self.stream

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            torch._C._accelerator_setStream(self._there)
            torch._C._accelerator_setStream(self._before)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Context manager that selects `stream`."""
    return StreamContext(stream)
