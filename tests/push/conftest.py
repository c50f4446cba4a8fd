"""A bare repository with our hooks and a work tree that pushes to it, by git's own receive-pack: quarantine is real."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reconciler import cli

ROOT = Path(__file__).parent.parent.parent
CLUSTER = """apiVersion: reconcile/v1
kind: Cluster
metadata: {name: c}
spec:
  nodes: {"n[1-2]": {address: "10.0.0.[1-2]"}}
  files: {/etc/motd: {source: files/motd}}
"""


@dataclass
class Pushed:
    """What the pusher's terminal showed."""

    code: int
    terminal: str

    @property
    def remote(self) -> list[str]:
        """The lines of the hooks, as git shows them."""
        assert "Traceback" not in self.terminal, self.terminal
        return [line.removeprefix("remote: ").rstrip() for line in self.terminal.splitlines() if line.startswith("remote: ")]


@dataclass
class Work:
    """`tree`: where commits are made; `bare`: where they are pushed to; `state`: the controller's folder."""

    tree: Path
    bare: Path
    state: Path
    config: dict[str, str] = field(default_factory=dict)

    @property
    def command(self) -> tuple[str, ...]:
        """`reconcile`, as a process."""
        return (sys.executable, "-m", "reconciler")

    @property
    def environment(self) -> dict[str, str]:
        who = {f"GIT_{role}_{what}": "a@example.net" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        plain = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PYTHONPATH": str(ROOT)}
        return {**os.environ, **who, **plain}

    def git(self, *words: str, at: Path | None = None) -> str:
        options = [word for name, value in self.config.items() for word in ("-c", f"{name}={value}")]
        argv = ("git", *options, *words)
        done = subprocess.run(argv, cwd=at or self.tree, env=self.environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, message: str = "a change", **files: str) -> str:
        """Write files (`site_yaml` is site.yaml, `files__motd` files/motd) and commit them; the hash."""
        for name, text in files.items():
            path = self.tree / name.replace("__", "/").replace("_yaml", ".yaml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def push(self, *words: str) -> Pushed:
        argv = ("git", "push", "origin", *(words or ("HEAD:main",)))
        done = subprocess.run(argv, cwd=self.tree, env=self.environment, capture_output=True, text=True, check=False)
        return Pushed(done.returncode, done.stderr + done.stdout)

    def main(self) -> str:
        """What the watched branch of the bare repository points at; empty where there is none."""
        return self.git("for-each-ref", "--format=%(objectname)", "refs/heads/main", at=self.bare)

    def install(self, *words: str) -> int:
        return cli.run(["hook", "install", str(self.bare), "--state-dir", str(self.state), *words])


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """With one good commit, not pushed, and no hooks yet."""
    found = Work(tmp_path / "work", tmp_path / "site.git", tmp_path / "state")
    found.tree.mkdir()
    found.git("init", "--quiet", "--bare", "--initial-branch=main", str(found.bare))
    found.git("init", "--quiet", "--initial-branch=main")
    found.git("remote", "add", "origin", str(found.bare))
    found.commit("the site", site_yaml=CLUSTER, files__motd="one\n", known_hosts="")
    return found


@pytest.fixture
def hooked(work: Work) -> Work:
    """The same with hooks, and the commit pushed."""
    assert work.install() == 0
    assert work.push().code == 0
    return work
