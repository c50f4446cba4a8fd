"""What is really there, asked of the nodes themselves: never through the product's own code."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from lab import Lab, LabNode
from lab.cluster import each
from lab.shell import wait_for

# what may change without anybody having changed the node: kernel, run time, logs, our own records, and what systemd itself keeps
NOT_STATE = (
    "/proc",
    "/sys",
    "/run",
    "/dev",
    "/var/log",
    "/var/lib/reconcile",
    "/tmp/systemd-private-*",
    "/var/tmp/systemd-private-*",
)


class Nodes:
    """The lab's nodes, each made new only when a test wants it new and another one had it before."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._used: set[str] = set(lab.nodes)

    def fresh(self, *names: str) -> list[LabNode]:
        """These nodes as on their first day; from now on they count as used."""
        nodes = [self.lab.nodes[name] for name in names]
        reset([node for node in nodes if node.name in self._used])
        self._used.update(names)
        return nodes

    def one(self, name: str = "gpu01") -> LabNode:
        return self.fresh(name)[0]

    def restore(self) -> None:
        """All nodes as they were before the first test."""
        reset([self.lab.nodes[name] for name in self._used])
        self._used.clear()


def reset(nodes: Iterable[LabNode]) -> None:
    def anew(node: LabNode) -> None:
        node.reset()
        node.wait_ready()

    each(list(nodes), anew)


# ---- packages


def rpm(node: LabNode, name: str) -> str | None:
    """Version and release of an installed RPM; None where rpm itself says that it is not installed."""
    done = node.inside(f"rpm -q --qf '%{{VERSION}}-%{{RELEASE}}' {name}", check=False)
    if done.returncode == 0:
        return done.stdout
    assert "is not installed" in done.stdout, done.stdout + done.stderr
    return None


def deb(node: LabNode, name: str) -> str | None:
    """Status and version, such as `hi 2.0.16-1`; None where dpkg does not know the package (or only its configuration)."""
    done = node.inside(f"dpkg-query -W -f '${{db:Status-Abbrev}}${{Version}}' {name}", check=False)
    return done.stdout if done.returncode == 0 and done.stdout[1] not in "nc" else None


def transactions(node: LabNode) -> list[str]:
    """The actions of all entries of `dnf history`, newest first: `I`, `D, E, I`."""
    done = node.inside("dnf -q history list 2>/dev/null", check=False)
    rows = [line.split("|") for line in done.stdout.splitlines()]
    return [row[3].strip() for row in rows if len(row) == 5 and row[0].strip().isdigit()]


def apt_runs(node: LabNode) -> int:
    """How many times apt changed packages."""
    return node.inside("cat /var/log/apt/history.log 2>/dev/null", check=False).stdout.count("Start-Date:")


def locks(node: LabNode) -> list[str]:
    """Lines of the version locks that keep something."""
    text = node.inside("cat /etc/dnf/plugins/versionlock.list", check=False).stdout
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def slow_runs(node: LabNode) -> list[str]:
    """What the scriptlets of slow-install wrote: `start`, `end`, once a run."""
    return [line.split()[0] for line in node.inside("cat /var/log/lab-slow.log", check=False).stdout.splitlines()]


# ---- files


def stat(node: LabNode, path: str) -> str:
    """`MODE OWNER GROUP TYPE`, or `none`."""
    done = node.inside(f"stat -c '%a %U %G %F' -- '{path}'", check=False)
    return done.stdout.strip() if done.returncode == 0 else "none"


def text(node: LabNode, path: str) -> str:
    return node.inside(f"cat -- '{path}'").stdout


def fingerprint(node: LabNode) -> dict[str, str]:
    """Every path that is state: inode, change and modification time, size, mode, owner."""
    prune = " -o ".join(f"-path '{path}'" for path in NOT_STATE)
    done = node.inside(f"find / \\( {prune} \\) -prune -o -printf '%p\\t%i %T@ %C@ %s %m %U %G\\n'")
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


def moved(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Paths that differ between two fingerprints."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


# ---- our records and units


def steps(node: LabNode) -> list[dict[str, Any]]:
    """All step records, in the order in which they were begun."""
    shown = node.inside("for f in /var/lib/reconcile/steps/*.json; do [ -e $f ] && cat $f && echo; done; true").stdout
    found = [json.loads(line) for line in shown.splitlines() if line.strip()]
    return sorted(found, key=lambda record: (record["token"], record["step"]))


def lease(node: LabNode) -> dict[str, Any] | None:
    shown = node.inside("cat /var/lib/reconcile/lease.json 2>/dev/null; true").stdout
    return json.loads(shown) if shown.strip() else None


def units(node: LabNode) -> list[str]:
    """Step units that systemd remembers in any state."""
    shown = node.inside("systemctl list-units --all --plain --no-legend 'reconcile-step-*'").stdout
    return [line.split()[0] for line in shown.splitlines() if re.search(r"reconcile-step-", line)]


def wait_in(node: LabNode, command: str, timeout: float = 30.0) -> None:
    """Wait until a shell command on the node (asked past its network) ends with 0."""
    wait_for(lambda: node.inside(command, check=False).returncode == 0, f"`{command}` on {node.name}", timeout, 0.05)


def wait_until(condition: Callable[[], bool], what: str, timeout: float = 30.0) -> None:
    wait_for(condition, what, timeout, 0.05)


def hold_slow(node: LabNode) -> None:
    """From now on slow-install stops in its first scriptlet, until `let_go`: what a test does meanwhile may take its time."""
    node.inside("echo 0 > /etc/lab/slow-seconds; touch /etc/lab/slow-held")


def let_go(node: LabNode) -> None:
    node.inside("rm /etc/lab/slow-held")


def slow_started(node: LabNode) -> None:
    """Wait until slow-install's first scriptlet runs."""
    wait_in(node, "grep -q start /var/log/lab-slow.log")


def wall(node: LabNode) -> float:
    """Seconds that the node's clock is ahead of ours."""
    return float(node.inside("date +%s").stdout) - time.time()


def writes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Paths that somebody wrote. Two are none: sqlite's index of readers, which any `rpm -q` touches, and /tmp itself, where
    temporary files of many programs come and go (those that stay are told)."""
    none = ("/tmp", "/var/lib/rpm/rpmdb.sqlite-shm", "/var/lib/rpm/rpmdb.sqlite-wal")
    return [path for path in moved(before, after) if path not in none]
