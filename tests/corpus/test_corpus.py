"""Outputs of real machines, and what they say: every expected key is mapped to a path in the parsed value and compared exactly.

`fields/FORMAT.yaml` holds `paths` (expected key -> path of keys and indices in the plain value; `{KEY}` of `each` keys) and
`explained` (sample -> key -> [what is right, why]), for expectations that the sample itself shows to be wrong. An expected null
is met by what is absent or unknown. A key that is not mapped fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.facts.formats import FORMATS, plain

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
FIELDS = Path(__file__).parent / "fields"
SAMPLES = sorted(p for name in FORMATS for p in (CORPUS / name).glob("*.meta.yaml"))


def fields(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FIELDS / f"{name}.yaml").read_text())
    return found


def at(value: Any, path: list[Any]) -> Any:
    """What stands at a path; None where there is nothing."""
    for step in path:
        if step == "#" and isinstance(value, list | dict):
            value = len(value)
        elif isinstance(value, dict):
            value = value.get(step, value.get(str(step)))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def same(found: Any, expected: Any) -> bool:
    if expected is None:
        return found is None or (isinstance(found, dict) and bool({"absent", "unknown"} & set(found)))
    if isinstance(expected, bool) or isinstance(found, bool):
        return found is expected
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(same(found[key], item) for key, item in expected.items())
    return bool(found == expected)


@pytest.mark.parametrize("meta", SAMPLES, ids=lambda p: f"{p.parent.name}/{p.name.removesuffix('.meta.yaml')}")
def test_sample(meta: Path) -> None:
    name, sample = meta.parent.name, meta.name.removesuffix(".meta.yaml")
    said = yaml.safe_load(meta.read_text())
    (text,) = (p for p in meta.parent.glob(f"{sample}.*") if p != meta)
    value = plain(FORMATS[name](text.read_bytes().decode("utf-8", "replace")))
    mapped = fields(name)
    for key, expected in said["expected"].items():
        assert key in mapped["paths"], f"expected key {key!r} is not mapped"
        right, _ = mapped.get("explained", {}).get(sample, {}).get(key, (expected, ""))
        found = at(value, mapped["paths"][key])
        assert same(found, right), f"{key}: {found!r}, expected {right!r}"
