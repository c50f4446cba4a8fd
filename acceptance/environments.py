"""What the scripts about Python environments share: wheels of a few lines, the lock that names them, processes that use a build."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab import LabNode
from reconciler.model.lock import Lock, Pinned
from tests.e2e.site import Site
from tests.wheels import wheel

ROOT = "/opt/ai/env"
PYTHON = f"{ROOT}/t/bin/python"
SITE_PACKAGES = "lib/python3.11/site-packages"
WHEELS = "/srv/wheels"
STACK = """apiVersion: reconcile/v1
kind: Versions
metadata: {name: stack}
spec: {python: 3.11, environments: {t: {packages: {alpha: '>=0'}}}}
"""


def lock(site: Site, house: Path, files: Mapping[str, Mapping[str, str]], version: str = "1.0") -> None:
    """Environment `t` of these distributions (name -> files) of one version; the wheels go to `house`. A commit."""
    pinned = {name: Pinned(name, version, (wheel(house, name, version, files=of),)) for name, of in files.items()}
    (site.repo / "locks/stack").mkdir(parents=True, exist_ok=True)
    (site.repo / "locks/stack/t.txt").write_text(Lock("sha256:0", "3.11", "x86_64-manylinux_2_34", pinned).text())
    site.commit(f"alpha {version}")


def declare(site: Site, **spec: Any) -> None:
    """The stack, and what of the Cluster concerns environments. A commit."""
    (site.repo / "stack.yaml").write_text(STACK)
    manifest = yaml.safe_load((site.repo / "site.yaml").read_text())
    manifest["spec"] |= {"versions": "stack", "environments": ["t"], "mirrors": {"wheels": WHEELS}, **spec}
    (site.repo / "site.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))
    site.commit("environment t")


def builds(node: LabNode) -> list[str]:
    """Every build that is there, by name."""
    return node.run(f"cd {ROOT}/t.d && ls -d *-[0-9]* | grep -v holds; true").stdout.split()


def linked(node: LabNode) -> str:
    """The build that the name leads to, as this node sees it."""
    return Path(node.run(f"readlink {ROOT}/t; true").stdout.strip()).name


def digest(node: LabNode, build: str) -> str:
    """Over every path, size and content of a build but compiled code."""
    listing = f"cd {ROOT}/t.d/{build} && find . -name __pycache__ -prune -o -type f -print0 | sort -z | xargs -0 sha256sum"
    return hashlib.sha256(node.run(listing).stdout.encode()).hexdigest()[:12]


class User:
    """A Python process on a node: what it is told on its standard input it evaluates, and says what came of it."""

    LOOP = """import sys
for line in sys.stdin:
    try:
        print(eval(line), flush=True)
    except Exception as e:
        print(repr(e), flush=True)"""

    def __init__(self, node: LabNode, python: str = PYTHON) -> None:
        argv = [*node.ssh_argv("root"), f'{python} -c "{self.LOOP}"']
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, expression: str) -> str:
        """What it says to one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    @property
    def pid(self) -> str:
        return self.ask("__import__('os').getpid()")

    def end(self) -> None:
        """Its input is over, and with it the process."""
        self._process.communicate(timeout=30)
