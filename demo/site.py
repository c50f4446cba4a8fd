"""The demo's site: a bare repository, a clone of it, and the lab's nodes as a person with a shell sees them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lab import Lab, LabNode

MANIFESTS = Path(__file__).resolve().parent.parent / "manifests" / "lab-trio"
STAMP = "/run/demo-stamp"
# not ours to keep still: the kernel's own, what lives in memory, logs, and the records of the node program
ASIDE = ("/proc", "/sys", "/run", "/dev", "/var/log", "/var/lib/reconcile")


class Site:
    """`demo.git` and its work tree; every change goes through a commit and a push."""

    def __init__(self, lab: Lab, work: Path, env: Mapping[str, str]) -> None:
        self._lab, self._env = lab, env
        self.bare, self.clone = work / "demo.git", work / "clone"

    def git(self, *argv: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ("git", *argv),
            cwd=cwd or self.clone,
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def create(self) -> None:
        """The reference manifests of the lab, with this lab's addresses, key and host keys, as the first commit."""
        self.bare.parent.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.bare), cwd=self.bare.parent)
        self.git("clone", "--quiet", str(self.bare), str(self.clone), cwd=self.bare.parent)
        shutil.copytree(MANIFESTS, self.clone, dirs_exist_ok=True)
        config = self._lab.config
        self.replace("10.88.0.", f"{config.subnet}.")
        self.replace("/run/reconcile-lab/id_ed25519", str(self._lab.identity))
        (self.clone / "known_hosts").write_text(self._lab.known_hosts.read_text())
        self.push("three nodes, as they shall be")

    def replace(self, old: str, new: str) -> None:
        """Edit site.yaml. ValueError where `old` is not in it: the demo would show nothing then."""
        file = self.clone / "site.yaml"
        text = file.read_text()
        if old not in text:
            raise ValueError(f"{file} has no {old!r}")
        file.write_text(text.replace(old, new))

    def push(self, message: str) -> str:
        """Commit everything and push it; the commit's short id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", f"--message={message}")
        self.git("push", "--quiet", "origin", "HEAD:main")
        return self.git("rev-parse", "--short=8", "HEAD").strip()


def stamp(node: LabNode) -> None:
    """From now on, count."""
    node.run(f"touch {STAMP}; sleep 0.05")


def written(node: LabNode) -> list[str]:
    """What was written on the node since its stamp: content or attributes of anything, outside ASIDE."""
    pruned = " -o ".join(f"-path {path}" for path in ASIDE)
    found = node.run(rf"find / \( {pruned} \) -prune -o \( -newer {STAMP} -o -cnewer {STAMP} \) -print").stdout
    return found.splitlines()


def transactions(node: LabNode) -> int:
    """How many package transactions the node's dnf remembers."""
    lines = node.run("dnf -q history list").stdout.splitlines()
    return sum(1 for line in lines if line.split("|")[0].strip().isdigit())


def installed(node: LabNode, package: str) -> str:
    """VERSION-RELEASE as rpm says it; empty where it is not installed."""
    done = node.run(f"rpm -q --qf '%{{VERSION}}-%{{RELEASE}}' {package}", check=False)
    return done.stdout if done.returncode == 0 else ""
