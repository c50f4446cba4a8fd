"""Plans that are saved, reviewed, and carried out once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import Site
from tests.e2e.truth import Nodes

PAIR = ("gpu01", "gpu02")
DECLARED: dict[str, Any] = {
    "nodes": PAIR,
    "packages": {"numactl": "2.0.19-3.el9"},
    "files": {"/etc/one": "one\n", "/etc/two": "two\n"},
}


def save(site: Site, *words: str) -> Path:
    path = site.state.with_name("a.plan")
    done = site.ok("plan", "--out", str(path), *words)
    assert f"saved as {path}: `reconcile apply {path}` carries out exactly this, once" in done.stdout
    return path


def test_it_works_once(nodes: Nodes, small: Small) -> None:
    first, second = nodes.fresh(*PAIR)
    site = small(**DECLARED)
    path = save(site)
    assert truth.stat(first, "/etc/one") == "none"
    done = site.ok("apply", str(path))
    assert "6 changes on 2 nodes" in done.verdict
    assert [truth.rpm(node, "numactl") for node in (first, second)] == ["2.0.19-3.el9"] * 2
    planned = json.loads(path.read_text())["id"]
    assert {step["plan"] for node in (first, second) for step in truth.steps(node)} == {planned}
    before = truth.fingerprint(first)
    again = site.run("apply", str(path))
    assert again.code == 5
    assert f"plan {planned} was carried out already: a saved plan is for one use; make a new one" in again.stderr
    assert truth.writes(before, truth.fingerprint(first)) == []


MOVES = {
    "a file": ("echo by hand > /etc/one", "gpu02: File//etc/one was absent, is now "),
    "a package": ("dnf -y install numactl-2.0.18-2.el9", "gpu02: Package/numactl was absent, is now "),
}


@pytest.mark.parametrize("what", MOVES)
def test_a_node_that_was_changed_since_makes_it_stale(nodes: Nodes, small: Small, what: str) -> None:
    first, second = nodes.fresh(*PAIR)
    site = small(**DECLARED)
    path = save(site)
    command, words = MOVES[what]
    second.run(command)
    done = site.run("apply", str(path))
    assert done.code == 5
    assert " is stale" in done.stderr
    assert words in done.stderr
    assert "numactl" in done.stderr if what == "a package" else "/etc/one" in done.stderr
    for node in (first, second):
        assert truth.steps(node) == []
        assert truth.lease(node) is None
    assert truth.stat(first, "/etc/one") == "none"


def test_the_field_that_moved_is_named_with_both_values(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    node.run("printf 'old\\n' > /etc/one; chmod 600 /etc/one; dnf -y install numactl-2.0.18-2.el9")
    site = small(packages={"numactl": "2.0.19-3.el9"}, files={"/etc/one": "one\n"})
    path = save(site)
    node.run("chmod 640 /etc/one; dnf -y install numactl-2.0.19-1.el9")
    done = site.run("apply", str(path))
    assert done.code == 5
    assert "gpu01: File//etc/one.mode was 0600, is now 0640" in done.stderr
    assert "gpu01: Package/numactl.version was 2.0.18-2.el9, is now 2.0.19-1.el9" in done.stderr
    assert "content" not in done.stderr
    # what the plan does not touch may move
    node.run("chmod 600 /etc/one; dnf -y install numactl-2.0.18-2.el9; touch /etc/else; dnf -y install htop")
    site.ok("apply", str(path))


def test_a_new_commit_makes_it_stale(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    site = small(files={"/etc/one": "one\n"})
    path = save(site)
    site.declare(files={"/etc/one": "other\n"})
    done = site.run("apply", str(path))
    assert done.code == 5
    assert "commit was " in done.stderr
    assert truth.stat(node, "/etc/one") == "none"


SPOILT: dict[str, tuple[Any, int]] = {
    "cut off": (lambda text: text[: len(text) // 2], 1),
    "empty": (lambda text: "", 1),
    "no JSON": (lambda text: "\x00\xff", 1),
    "a list": (lambda text: "[]", 1),
    "another version": (lambda text: text.replace("reconcile-plan/1", "reconcile-plan/9"), 5),
    "another tool's version": (lambda text: json.dumps({**json.loads(text), "toolVersion": "0.0.0"}), 5),
    "another digest of the manifests": (lambda text: json.dumps({**json.loads(text), "manifestDigest": "0" * 64}), 5),
    "no nodes": (lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "nodes"}), 1),
    "nodes without digests": (lambda text: json.dumps({**json.loads(text), "nodes": {"gpu01": {}}}), 1),
    "a node that is not declared": (
        lambda text: text.replace('"gpu01"', '"gpu77"'),
        1,
    ),
}


@pytest.fixture(scope="module")
def saved(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, str]:
    """A site, and the text of a plan for it."""
    nodes.one()
    site = Site.small(nodes.lab, tmp_path_factory.mktemp("saved"), files={"/etc/one": "one\n"})
    return site, save(site).read_text()


@pytest.mark.parametrize("how", SPOILT)
def test_a_spoilt_plan_file_is_refused(nodes: Nodes, saved: tuple[Site, str], how: str) -> None:
    site, text = saved
    spoil, code = SPOILT[how]
    path = site.state.with_name("spoilt.plan")
    path.write_text(spoil(text))
    done = site.run("apply", str(path))
    assert done.code == code, done.text
    assert "error: " in done.stderr
    node = nodes.lab.nodes["gpu01"]
    assert truth.stat(node, "/etc/one") == "none"
    assert truth.lease(node) is None


def test_what_was_selected_stays_selected(nodes: Nodes, small: Small) -> None:
    first, second = nodes.fresh(*PAIR)
    site = small(**DECLARED)
    path = save(site, "--on", "gpu02", "--target", "File//etc/two", "--target", "Package")
    done = site.ok("apply", str(path))
    assert "2 changes on 1 node" in done.verdict
    assert truth.text(second, "/etc/two") == "two\n"
    assert truth.rpm(second, "numactl") == "2.0.19-3.el9"
    assert truth.stat(second, "/etc/one") == "none"
    assert truth.steps(first) == []
    refused = site.run("apply", str(path), "--on", "gpu01")
    assert refused.code == 1
    assert "a saved plan says its own on" in refused.stderr


def test_a_saved_plan_of_a_node_that_is_down_now_applies_to_the_others(nodes: Nodes, small: Small) -> None:
    first, second = nodes.fresh(*PAIR)
    site = small(**DECLARED)
    path = save(site)
    second.inside("systemctl stop sshd.service")
    try:
        done = site.run("apply", str(path))
    finally:
        second.inside("systemctl start sshd.service")
    assert done.code == 4
    assert "gpu01  converged, 3 changes" in done.stdout
    assert truth.text(first, "/etc/one") == "one\n"
    assert site.run("apply", str(path)).code == 5, "it is used up all the same"
    site.ok("apply")
    assert truth.text(second, "/etc/one") == "one\n"
