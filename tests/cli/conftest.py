"""Nodes for these tests, a repository that declares them, and whole commands over real node programs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler import cli
from reconciler.commands import common
from reconciler.commands import observe as observe_command
from reconciler.commands import plan as plan_command
from tests.nodes.cluster import GROUP, USER
from tests.nodes.fixtures import site
from tests.nodes.site import Site

__all__ = ["BOOT", "MANIFEST", "Run", "site"]

BOOT = "fe343275-08ce-4eee-9863-637b5a55c715"
MANIFEST = f"""apiVersion: reconcile/v1
kind: Cluster
metadata: {{name: lab}}
spec:
  ssh: {{user: root}}
  nodes: {{"gpu[01-02]": {{address: "10.0.0.[1-2]"}}}}
  files: {{/etc/motd: {{source: motd, owner: {USER}, group: {GROUP}}}}}
  hosts: null
  rollout: {{maxUnavailable: 2}}
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def git(tmp_path: Path) -> Callable[..., Path]:
    """Write files of the manifest repository and commit them."""
    at = tmp_path / "site"

    def commit(**files: str) -> Path:
        at.mkdir(exist_ok=True)
        for name, text in files.items():
            (at / name.replace("_", ".")).write_text(text)
        identity = ("-c", "user.name=t", "-c", "user.email=t@t")
        for argv in (("init", "-q", "-b", "main"), ("add", "."), (*identity, "commit", "-qm", "a commit", "--allow-empty")):
            subprocess.run(("git", "-C", str(at), *argv), check=True)
        return at

    return commit


@pytest.fixture
def run(
    site: Site, git: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """`run("plan", ...)`: exit status, stdout, stderr; `@` stands for the repository."""
    repository = git(site_yaml=MANIFEST, motd="hi\n")
    for name in ("gpu01", "gpu02"):
        (site.node(name) / "etc/hostname").write_text(f"{name}\n")
        (site.node(name) / "proc/sys/kernel/hostname").write_text(f"{name}\n")
        (site.node(name) / "proc/sys/kernel/random").mkdir()
        (site.node(name) / "proc/sys/kernel/random/boot_id").write_text(f"{BOOT}\n")
        (site.node(name) / "proc/stat").write_text("cpu 1\nbtime 1796034461\n")
    for module in (common, plan_command, observe_command):
        monkeypatch.setattr(module, "SshTransport", lambda: site)
    monkeypatch.setenv("RECONCILE_STATE_DIR", str(tmp_path / "controller"))
    monkeypatch.chdir(tmp_path)

    def call(*argv: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = cli.run([str(repository) if a == "@" else a for a in argv])
        return (code, *capfd.readouterr())

    return call
