"""Runs a function when a module of somebody else's is imported, so that nothing has to be imported for its sake."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any

_waiting: dict[str, Callable[[ModuleType], None]] = {}


def after_import(name: str, function: Callable[[ModuleType], None]) -> None:
    """Calls `function(module)` once the module `name` has been executed; at once if it has been already."""
    module = sys.modules.get(name)
    if module is not None:
        function(module)
        return
    if not _waiting:
        sys.meta_path.insert(0, _finder)
    _waiting[name] = function


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        function = _waiting.pop(fullname, None)
        if function is None:
            return None
        if not _waiting:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, function)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Any, function: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._function = function

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._function(module)

    def __getattr__(self, name: str) -> Any:  # get_source, get_filename: tracebacks and Dynamo ask for them
        return getattr(self._loader, name)


_finder = _Finder()
