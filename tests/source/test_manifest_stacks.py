"""Versions and `extends`."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.source import validate_path
from tests.source.manifest_site import packages, said, site, state


def test_extends_says_only_what_differs(tmp_path: Path) -> None:
    nodes = state(
        site(
            tmp_path,
            "  nodes: {n1: {versions: a}, n2: {versions: b}, n3: {versions: d}, n4: }\n",
            """a: {os: {debian-12: {packages: {x: 1, y: 1}}, rocky-9: {}}}
b: {extends: a, os: {debian-12: {packages: {y: 2, x: null, z: 2}}, rocky-9: null}}
c: {extends: b}
d: {extends: c, os: null}""",
        )
    ).nodes
    assert packages(nodes["n1"], "debian-12") == {"x": "1", "y": "1"}
    assert nodes["n1"].distributions == ("debian-12", "rocky-9")
    assert packages(nodes["n2"], "debian-12") == {"y": "2", "z": "2"}
    assert nodes["n2"].distributions == ("debian-12",)
    assert (packages(nodes["n3"], "debian-12"), nodes["n3"].distributions, nodes["n3"].stack) == ({}, (), "d")
    assert nodes["n4"].stack is None


@pytest.mark.parametrize(
    ("stacks", "problems"),
    [
        (
            "a: {extends: b}\nb: {extends: c}\nc: {extends: a}",
            ["v.yaml:14:17: extends goes round in a circle: a -> b -> c -> a"],
        ),
        ("a: {extends: b}\nb: {extends: x}", ["v.yaml:9:17: no Versions is named 'x'; there are: a, b"]),
        (
            "a: {extends: b}\nb: {oz: {}}",
            ["v.yaml:9:8: unknown key 'oz'; there are: driver, driverModules, environments, extends, os, python"],
        ),
        ("a: {extends: b}\nb: {extends: b}\nd: {extends: a}", ["v.yaml:9:17: extends goes round in a circle: b -> b"]),
        (
            "\n".join(f"a{n}: {{extends: a{(n + 1) % 9}}}" for n in range(9)),
            ["v.yaml:44:17: extends goes round in a circle: a0 -> a1 -> a2 -> a3 -> a4 -> a5 -> ..."],
        ),
    ],
)
def test_a_broken_stack_is_said_once(tmp_path: Path, stacks: str, problems: list[str]) -> None:
    first = stacks.split(":", 1)[0]
    folder = site(tmp_path, f"  versions: {first}\n  nodes: {{n1: }}\n", stacks)
    assert said(folder) == problems
    assert "Cluster c" in validate_path(folder).unchecked


def test_a_very_long_chain_of_extends(tmp_path: Path) -> None:
    stacks = "s0: {os: {debian-12: {packages: {x: 1}}}}\n" + "\n".join(f"s{n}: {{extends: s{n - 1}}}" for n in range(1, 3000))
    nodes = state(site(tmp_path, "  versions: s2999\n  nodes: {n1: }\n", stacks)).nodes
    assert packages(nodes["n1"], "debian-12") == {"x": "1"}
