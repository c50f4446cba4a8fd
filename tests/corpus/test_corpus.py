"""Outputs of real machines, and what they say: every expected key is mapped to a path in the parsed value and compared exactly.

`fields/FORMAT.yaml` holds `paths` (expected key -> path of keys and indices in the plain value, or a node of nodes.py), `only`
(sample -> key -> path, where a text without names does not say which value it is) and `explained` (sample -> key -> [what is right,
why]), for expectations that the sample itself shows to be wrong. An expected null is met by what is absent or unknown. A key that
is not mapped fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.facts.formats import FORMATS, plain
from tests.corpus.nodes import differences

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
FIELDS = Path(__file__).parent / "fields"
SAMPLES = sorted(p for name in FORMATS for p in (CORPUS / name).glob("*.meta.yaml"))


def fields(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FIELDS / f"{name}.yaml").read_text())
    return found


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
        node = mapped.get("only", {}).get(sample, {}).get(key, mapped["paths"][key])
        assert not list(differences(value, right, node, key))
