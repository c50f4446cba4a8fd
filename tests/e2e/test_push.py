"""From `git push` over ssh to the nodes of the lab: git, sshd, hooks, controller and nodes are real."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import Running, Site
from tests.e2e.truth import Nodes
from tests.transport import servers

TWO = ("gpu01", "gpu02")


@pytest.fixture
def served(nodes: Nodes, small: Small, tmp_path: Path) -> Iterator[tuple[Site, Running, dict[str, str]]]:
    """A site whose origin is a bare repository with hooks behind ssh, the controller that follows it, and how to push."""
    nodes.fresh(*TWO)
    site, bare = small(nodes=TWO, files={"/etc/motd": "one\n"}), tmp_path / "site.git"
    site.git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    site.ok("hook", "install", str(bare))
    (tmp_path / "ssh").mkdir(mode=0o755)
    servers.install(servers.SSHD, "openssh-server")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    running = site.start("controller", "--repository", str(bare), "--interval", "10m")
    with servers.sshd(tmp_path / "ssh", servers.keygen(tmp_path / "ssh" / "client")) as server:
        (tmp_path / "known").write_text(server.line() + "\n")
        ssh = ("ssh", "-F", "none", "-i", str(server.client_key), "-o", f"UserKnownHostsFile={tmp_path / 'known'}")
        site.git("remote", "add", "origin", f"ssh://root@127.0.0.1:{server.port}{bare}")
        limit = time.monotonic() + 30
        while not (site.state / "controller.sock").exists():
            assert time.monotonic() < limit
            time.sleep(0.05)
        yield site, running, {**os.environ, "GIT_SSH_COMMAND": shlex.join(ssh)}
    running.send(signal.SIGTERM)
    assert running.result().code == 0


def push(site: Site, environment: dict[str, str], *words: str) -> tuple[int, str]:
    argv = ("git", "-C", str(site.repo), "push", "origin", *(words or ("HEAD:main",)))
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_what_is_pushed_is_on_the_nodes_before_the_push_ends(
    served: tuple[Site, Running, dict[str, str]], nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    site, _, environment = served
    terminals = []
    for content in ("one\n", "two\n"):
        site.declare(nodes=TWO, files={"/etc/motd": content})
        began = time.monotonic()
        code, told = push(site, environment)
        terminals.append(f"[good push, {time.monotonic() - began:.1f} s]\n{told}")
        assert code == 0, told
        assert "remote: valid: 1 Cluster, 2 nodes" in told
        assert "remote: 2 changes on 2 nodes: e2e at " in told
        assert "remote:   gpu[01-02]  converged, 1 change" in told
        assert [truth.text(nodes.lab.nodes[name], "/etc/motd") for name in TWO] == [content, content]
    site.replace("files:", "fles:")
    terminals.append("[bad push]\n" + push(site, environment)[1])
    assert "unknown key 'fles'; did you mean 'files'?" in terminals[-1]
    site.git("reset", "--quiet", "--hard", "HEAD~2")
    terminals.append("[force-push]\n" + push(site, environment, "--force", "HEAD:main")[1])
    assert "not a fast-forward" in terminals[-1]
    assert truth.text(nodes.lab.nodes["gpu01"], "/etc/motd") == "two\n"
    with capsys.disabled():
        print("\n".join(terminals))
