"""From `git push` over ssh to the nodes of the lab: git, sshd, hooks, controller and nodes are real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.origin import Origin, controlled, origin, server
from tests.e2e.truth import Nodes

TWO = ("gpu01", "gpu02")


@pytest.fixture
def served(nodes: Nodes, small: Small, tmp_path: Path) -> Iterator[Origin]:
    """Two nodes, a repository with hooks behind ssh, and the controller that follows it."""
    nodes.fresh(*TWO)
    site = small(nodes=TWO, files={"/etc/motd": "one\n"})
    with server(tmp_path / "ssh") as sshd:
        found = origin(site, tmp_path, sshd)
        with controlled(site, str(found.bare), "--interval", "10m"):
            yield found


def test_what_is_pushed_is_on_the_nodes_before_the_push_ends(served: Origin, nodes: Nodes) -> None:
    site = served.site
    for content in ("one\n", "two\n"):
        site.declare(nodes=TWO, files={"/etc/motd": content})
        pushed = served.push()
        assert pushed.code == 0, pushed.terminal
        assert "remote: valid: 1 Cluster, 2 nodes" in pushed.terminal
        assert "remote: 2 changes on 2 nodes: e2e at " in pushed.terminal
        assert "remote:   gpu[01-02]  converged, 1 change" in pushed.terminal
        assert [truth.text(nodes.lab.nodes[name], "/etc/motd") for name in TWO] == [content, content]
    site.replace("files:", "fles:")
    assert "unknown key 'fles'; did you mean 'files'?" in served.push().terminal
    site.git("reset", "--quiet", "--hard", "HEAD~2")
    assert "not a fast-forward" in served.push("--force", "origin", "HEAD:main").terminal
    assert truth.text(nodes.lab.nodes["gpu01"], "/etc/motd") == "two\n"
