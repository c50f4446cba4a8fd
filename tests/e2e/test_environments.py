"""Python environments on a real node: built in a unit, drifted by hand, cut by a full disk and by a loss of power."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import yaml

from lab import LabNode
from reconciler.model.lock import Lock, Pinned
from tests.e2e.conftest import Small
from tests.e2e.site import Site
from tests.e2e.truth import Nodes, fingerprint, moved, wait_in
from tests.wheels import wheel

STACK = """apiVersion: reconcile/v1
kind: Versions
metadata: {name: stack}
spec: {python: 3.11, environments: {t: {packages: {alpha: 1.*}}}}
"""
PROGRAM = "/opt/ai/env/t/bin/python -c 'import alpha; print(alpha.VERSION)'"


def declare(site: Site, node: LabNode, tmp_path: Path, wheels: Mapping[str, Mapping[str, str]]) -> None:
    """Environment `t` of these distributions (name -> files), whose wheels are put on the node's disk."""
    pinned = {}
    for name, files in wheels.items():
        pinned[name] = Pinned(name, "1.0", (wheel(tmp_path / "house", name, files=files),))
        content = (tmp_path / "house" / f"{name}-1.0-py3-none-any.whl").read_bytes()
        place = f"/srv/wheels/{name}-1.0-py3-none-any.whl"
        node.run(f"mkdir -p /srv/wheels && base64 -d > {place}", stdin=base64.b64encode(content).decode())
    (site.repo / "locks/stack").mkdir(parents=True, exist_ok=True)
    (site.repo / "locks/stack/t.txt").write_text(Lock("sha256:0", "3.11", "x86_64-manylinux_2_34", pinned).text())
    (site.repo / "stack.yaml").write_text(STACK)
    manifest = yaml.safe_load((site.repo / "site.yaml").read_text())
    manifest["spec"] |= {"versions": "stack", "environments": ["t"], "mirrors": {"wheels": "/srv/wheels"}}
    (site.repo / "site.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))
    site.commit()


def test_built_drifted_by_hand_and_healed(nodes: Nodes, small: Small, tmp_path: Path) -> None:
    node, site = nodes.one(), small()
    declare(site, node, tmp_path, {"alpha": {"alpha.py": "VERSION = 1\n"}, "beta": {"beta.py": ""}})
    site.ok("apply")
    assert node.run(PROGRAM).stdout == "1\n"
    before = fingerprint(node)
    assert "0 changes" in site.ok("apply").stdout
    assert moved(before, fingerprint(node)) == []
    denied = node.run("touch /opt/ai/env/t/lib/python3.11/site-packages/x", user="nosudo", check=False)
    assert "Permission denied" in denied.stderr
    node.run("rm -r /opt/ai/env/t/lib/python3.11/site-packages/beta*")
    (change,) = site.run("plan", "--json").changes("gpu01").values()
    assert change["reason"] == "drift"
    assert ["package beta", None, "1.0"] in [[f["path"], f["before"], f["after"]] for f in change["fields"]]
    site.ok("apply")
    assert node.run("ls /opt/ai/env/t.d").stdout.count("-") == 2


def test_a_full_disk_links_nothing_and_room_makes_it_right(nodes: Nodes, small: Small, tmp_path: Path) -> None:
    node, site = nodes.one(), small()
    declare(site, node, tmp_path, {"alpha": {"alpha.py": "VERSION = 1\n", "alpha.bin": "x" * 8_000_000}})
    node.run("dd if=/dev/zero of=/spare bs=1M count=4")
    node.fill()
    node.run("rm /spare")  # room for records and half a build
    assert site.run("apply").code == 3
    assert node.run("ls -A /opt/ai/env 2>/dev/null | grep -vx t.d", check=False).stdout == ""
    assert node.run("ls /opt/ai/env/t.d 2>/dev/null | grep -- -", check=False).stdout == ""
    node.unfill()
    site.ok("apply")
    assert node.run(PROGRAM).stdout == "1\n"


def test_a_loss_of_power_during_a_build(nodes: Nodes, small: Small, tmp_path: Path) -> None:
    node, site = nodes.one(), small()
    wait = "while not os.path.exists('/srv/go'):\n    time.sleep(0.05)\n"
    slow = f"import os, time\nopen('/run/importing', 'w').close()\n{wait}VERSION = 1\n"
    declare(site, node, tmp_path, {"alpha": {"alpha.py": slow}})
    running = site.start("apply")
    wait_in(node, "test -e /run/importing")
    assert node.inside("ls /opt/ai/env").stdout == "t.d\n"
    node.poweroff()
    assert running.result().code in (3, 4)
    node.poweron()
    node.wait_ready()
    node.run("touch /srv/go")
    site.ok("apply")
    assert node.run(PROGRAM).stdout == "1\n"
    assert node.run("ls /opt/ai/env/t.d").stdout.count("-") == 1
