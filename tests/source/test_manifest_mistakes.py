"""One edit of a valid site, and all that is said about it: see tests/data/manifests/mistakes.yaml."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from reconciler.model.schema import json_schema
from reconciler.render.problems import problem_text
from reconciler.source import validate_path
from tests.cases import read_yaml

DATA = Path(__file__).parents[1] / "data" / "manifests"
CASES: list[dict[str, Any]] = read_yaml(DATA / "mistakes.yaml")
SCHEMA = json_schema()


def edited(case: dict[str, Any], folder: Path) -> Path:
    """A copy of the site with the edit of `case`."""
    site = folder / "site"
    shutil.copytree(DATA / "site", site)
    target = site / case["file"]
    if case.get("unlocked"):
        shutil.rmtree(site / "locks")
    text = target.read_text()
    assert case["from"] in text
    target.write_text(text.replace(case["from"], case["to"], 1))
    return site


@pytest.mark.parametrize("case", CASES, ids=[str(c["n"]) for c in CASES])
def test_a_mistake_is_said_once_and_nothing_else(case: dict[str, Any], tmp_path: Path) -> None:
    loaded = validate_path(edited(case, tmp_path))
    assert [problem_text(p) for p in loaded.problems] == case["says"]
    assert [problem_text(p) for p in loaded.warnings] == case.get("warns", [])
    assert list(loaded.unchecked) == case.get("unchecked", [])
    assert (loaded.desired is None) == bool(case["says"])


def test_the_site_itself_is_right() -> None:
    loaded = validate_path(DATA / "site")
    assert (loaded.problems, loaded.warnings, loaded.unchecked) == ((), (), ())
    assert loaded.nodes == 42


UNKNOWN = [c for c in CASES if any("unknown key" in said for said in c["says"])]


@pytest.mark.parametrize("case", UNKNOWN, ids=[str(c["n"]) for c in UNKNOWN])
def test_the_schema_refuses_an_unknown_key_too(case: dict[str, Any], tmp_path: Path) -> None:
    text = (edited(case, tmp_path) / case["file"]).read_text()
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert any(list(validator.iter_errors(document)) for document in yaml.safe_load_all(text))
