"""What `hosts` and `units` come to on each node, and what follows from `nodes` and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.desired import DesiredNode, HostsSpec, UnitSpec
from tests.source.manifest_site import files, said, site, state


def hosts(node: DesiredNode) -> list[str]:
    return [line for r in node.resources if isinstance(r.spec, HostsSpec) for line in r.spec.lines.splitlines()]


def units(node: DesiredNode) -> dict[str, UnitSpec]:
    return {r.id.name: r.spec for r in node.resources if isinstance(r.spec, UnitSpec)}


NODES = "  nodes:\n    n[1-2]: {address: '10.0.0.[1-2]'}\n"
TWO = ["10.0.0.1 n1", "10.0.0.2 n2"]
HOSTS = [
    ("", TWO, TWO),
    ("  hosts: {nas: 10.9.0.1}\n", [*TWO, "10.9.0.1 nas"], [*TWO, "10.9.0.1 nas"]),
    ("  hosts: {N2: 10.9.0.2}\n", ["10.0.0.1 n1", "10.9.0.2 n2"], ["10.0.0.1 n1", "10.9.0.2 n2"]),
    ("  hosts: {n2: null}\n", TWO[:1], TWO[:1]),
    ("  hosts: null\n", [], []),
    ("  hosts: null\n  overrides: {n2: {hosts: {nas: 'fd00::1'}}}\n", [], ["fd00::1 nas"]),
    ("  overrides: {n2: {hosts: null}}\n", TWO, []),
    ("  overrides: {n2: {hosts: {nas: 10.9.0.1}}}\n", TWO, [*TWO, "10.9.0.1 nas"]),
    ("  files: {/etc/hosts: {source: files/motd}}\n", [], []),
]


@pytest.mark.parametrize(("spec", "one", "two"), HOSTS)
def test_names_in_etc_hosts(tmp_path: Path, spec: str, one: list[str], two: list[str]) -> None:
    nodes = state(site(tmp_path, NODES + spec)).nodes
    assert (hosts(nodes["n1"]), hosts(nodes["n2"])) == (one, two)


ADDRESSES = [
    ("n1: {address: n1.example.net}", []),
    ("n1: ", []),
    ("n1: {address: 127.0.0.1}", []),
    ("n1: {address: '::1'}", []),
    ("n1: {address: 0.0.0.0}", []),
    ("n1: {address: 224.0.0.1}", []),
    ("n1: {address: 'fd00::1'}", ["fd00::1 n1"]),
    ("'a,b': {address: '10.0.0.[1-2]'}", ["10.0.0.1 a", "10.0.0.2 b"]),
    ("n1: {address: 10.0.0.9, ssh: {port: 1}}, n2: {address: 10.0.0.9, ssh: {port: 2}}, n3: {address: 10.0.0.3}", ["10.0.0.3 n3"]),
]


@pytest.mark.parametrize(("nodes", "expected"), ADDRESSES)
def test_only_an_address_that_is_a_nodes_own_gets_its_name(tmp_path: Path, nodes: str, expected: list[str]) -> None:
    found = state(site(tmp_path, f"  nodes: {{{nodes}}}\n")).nodes
    assert {tuple(hosts(node)) for node in found.values()} == {tuple(expected)}


def test_units_merge_key_by_key_and_files_name_more(tmp_path: Path) -> None:
    nodes = state(
        site(
            tmp_path,
            """
  nodes: {n1: , n2: , n3: }
  units: {a.service: {source: files/motd, enabled: true, state: started}, b.timer: {enabled: false}}
  files:
    /etc/x: {source: files/motd, restart: [c.service, a.service, c.service]}
    /etc/systemd/system/a.service.d/1.conf: {source: files/motd}
    /etc/systemd/system/a.service.d/readme: {source: files/motd}
  overrides:
    n2: {units: {a.service: {state: stopped, source: null}, b.timer: null}, files: {/etc/x: {restart: [d.service]}}}
    n3: {units: null, files: null}
""",
        )
    ).nodes
    drop_ins = ("/etc/systemd/system/a.service.d/1.conf",)
    assert units(nodes["n1"]) == {
        "a.service": UnitSpec("a.service", b"hello\n", True, "started", drop_ins),
        "b.timer": UnitSpec("b.timer", None, False, None, drop_ins),
        "c.service": UnitSpec("c.service", drop_ins=drop_ins),
    }
    assert units(nodes["n2"]) == {
        "a.service": UnitSpec("a.service", None, True, "stopped", drop_ins),
        "d.service": UnitSpec("d.service", drop_ins=drop_ins),
    }
    assert units(nodes["n3"]) == {}
    assert list(files(nodes["n3"])) == []


def test_the_source_of_a_unit_in_a_profile_that_no_node_takes_has_to_exist(tmp_path: Path) -> None:
    spec = "  nodes: {n1: }\n  profiles: {p: {units: {a.service: {source: files/mot}}}}\n"
    assert said(site(tmp_path, spec)) == [
        "c.yaml:6:46: spec.profiles.p.units.a.service.source: the repository has no file 'files/mot'; did you mean 'files/motd'?"
    ]
