"""One file a resource kind, and the one list of them, by hand."""

from __future__ import annotations

from reconciler.kinds.base import Kind
from reconciler.kinds.file import File
from reconciler.kinds.hostname import Hostname
from reconciler.kinds.package import Package
from reconciler.kinds.python_environment import PythonEnvironment

KINDS: dict[str, Kind] = {kind.name: kind for kind in (Hostname(), Package(), File(), PythonEnvironment())}
