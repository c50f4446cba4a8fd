"""What an Xid number means: `xid.yaml` of this package."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

# the C loader reads it in 0.04 s, the other in 0.4 s; not every build of PyYAML has it
SOURCES = "NVIDIA Xid catalogue, copy of 2025-10-29; driver header nverror.h 595.45.04"  # of `meaning`, as xid.yaml says
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Xid:
    """`meaning` and `immediate` (None where it names none) are NVIDIA's words; `cls` and `severity` this project's judgement."""

    code: int
    meaning: str
    immediate: str | None
    cls: str
    severity: str


@functools.cache
def catalogue() -> Mapping[int, Xid]:
    """All numbers that the file knows."""
    text = (resources.files("reconciler.data") / "xid.yaml").read_text(encoding="utf-8")
    found = {}
    for entry in yaml.load(text, _LOADER)["xids"]:  # noqa: S506  (a safe loader)
        policy = entry["policy"]
        found[entry["code"]] = Xid(entry["code"], entry["meaning"], entry["nvidia"]["immediate"], policy["cls"], policy["severity"])
    return found
