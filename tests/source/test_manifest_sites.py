"""The reference sites of manifests/: valid, and what they stand for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from reconciler.model.desired import (
    DesiredState,
    FileSpec,
    GpuDriverSpec,
    HostsSpec,
    PackageSpec,
    PythonEnvironmentSpec,
    Resource,
    UnitSpec,
)
from reconciler.model.schema import json_schema
from reconciler.render.problems import problem_text
from reconciler.source import load_desired, validate_path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "manifests"
SITES = ("a100-pair", "lab-trio")


def _line(resource: Resource) -> str:
    spec, limits = resource.spec, [x for x in (resource.distribution, resource.manager) if x]
    said = ""
    if isinstance(spec, PackageSpec):
        said = f" {spec.version or spec.ensure}" + (f" locked {spec.locked}" if spec.locked else "")
    elif isinstance(spec, FileSpec):
        said = f" {spec.owner}:{spec.group} {spec.mode:04o} {len(spec.content)} bytes{' repository' * spec.repository}"
        said += f" restart {', '.join(spec.restart)}" if spec.restart else ""
    elif isinstance(spec, HostsSpec):
        said = " " + ", ".join(spec.lines.splitlines()[:4])
    elif isinstance(spec, UnitSpec):
        content = len(spec.content) if spec.content is not None else None
        said = f" content {content} enabled {spec.enabled} state {spec.state}"
    elif isinstance(spec, GpuDriverSpec):
        first = spec.packages[0]
        said = (
            f" {spec.version}, {len(spec.packages)} packages, {first.name} {first.locked}, stream {spec.stream}, {spec.gpus} GPUs"
        )
    elif isinstance(spec, PythonEnvironmentSpec):
        said = f" python {spec.python}, {len(spec.versions)} packages of which {', '.join(spec.pins)}, from {spec.wheelhouse}"
    return f"    {resource.id}{said}{' on ' + ', '.join(limits) if limits else ''} ({resource.origin})"


def summary(state: DesiredState) -> str:
    """The whole state as text, for a reader and for comparison."""
    lines = [f"cluster {state.cluster}, canary {state.rollout.canary}, at once {state.rollout.max_unavailable}"]
    for node in state.nodes.values():
        access = node.access
        lines.append(
            f"  {node.name}: {access.user}@{access.host}:{access.port} jump {access.jump} identity {access.identity}"
            f" keys {len(access.known_hosts)}; profile {node.profile}, manager {node.manager}, stack {node.stack}"
            f" for {', '.join(node.distributions) or 'any'}"
        )
        lines += map(_line, node.resources)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("site", SITES)
def test_a_reference_site_is_valid_and_stands_for_this(site: str) -> None:
    loaded = validate_path(ROOT / "manifests" / site)
    assert [problem_text(p) for p in loaded.problems] == []
    assert {p.code for p in loaded.warnings} <= {"no-host-keys"}
    assert loaded.unchecked == ()
    assert loaded.desired is not None
    assert summary(loaded.desired) == (DATA / "expected" / f"{site}.txt").read_text()


def test_the_site_of_the_mistakes_stands_for_this() -> None:
    loaded = load_desired(DATA / "site", worktree=True)
    assert loaded.desired is not None
    text = summary(loaded.desired)
    kept = [block for block in text.split("\n  gpu") if block[:3] in ("clu", "001", "002", "003", "040")]
    assert "\n  gpu".join(kept) == (DATA / "expected" / "site.txt").read_text()


@pytest.mark.parametrize("file", [*(f"manifests/{s}" for s in SITES), "tests/data/manifests/site"])
def test_the_schema_takes_what_an_editor_sees(file: str) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(json_schema())
    for path in (ROOT / file).glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            validator.validate(document)


def test_validate_pays_for_neither_git_nor_ssh() -> None:
    program = (
        "import sys; from reconciler.source import validate_path; validate_path(sys.argv[1]); "
        "print([m for m in ('git', 'fabric', 'paramiko', 'ruamel', 'deepdiff') if m in sys.modules])"
    )
    command = [sys.executable, "-c", program, str(DATA / "site")]
    assert subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout == "[]\n"
