"""`make demo`: the whole job on three real nodes, with every promise checked. Needs root on Debian 12.

python -m demo.run [--keep] [--work .demo]

A lab of its own (RECONCILE_LAB_NAME demo, RECONCILE_LAB_SUBNET 10.87.0 unless they are set) is booted, used and taken down;
its images stay in the lab's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo import driver, environments
from demo.shown import Done, Promises, environment, heading, shown
from demo.site import ASIDE, Site, installed, stamp, transactions, written
from lab import Lab, LabError
from lab.shell import run

STAND_IN = (
    "STAND-IN: the nodes' systemd, sshd, dnf and rpm are real; their packages, kernel version and CentOS userland are the lab's, "
    "and their GPUs, the driver's module and nvidia-smi are played"
)
TIMES = "demo-times.json"


class Demo:
    """The story, chapter by chapter."""

    def __init__(self, lab: Lab, work: Path) -> None:
        self.lab, self.promises = lab, Promises()
        self.env = environment(work)
        self.site = Site(lab, work, self.env)

    def reconcile(self, *argv: str) -> Done:
        return shown(("reconcile", *argv), self.site.clone, self.env)

    def expect(self, done: Done, code: int, verdict: str) -> None:
        """A command has to end with `code` and say a line that `verdict` (a regular expression) matches whole."""
        self.promises.check(f"exit {code}", done.code == code, done.code)
        found = re.search(f"^{verdict}$", done.out, re.MULTILINE)
        self.promises.check(f"it says '{found[0] if found else verdict}'", found is not None, done.first())

    def tell(self) -> None:
        self.from_git()
        self.nothing_twice()
        self.drift_by_hand()
        driver.downgraded_by_hand(self)
        environments.installed_by_hand(self)
        self.looking_back()
        self.a_change_in_git()
        environments.going_back(self)

    def from_git(self) -> None:
        heading("Git says what three nodes shall have")
        self.site.create()
        print(self.site.git("log", "--oneline").strip())
        self.expect(self.reconcile("validate"), 0, r"valid: .*3 nodes")
        self.expect(self.reconcile("plan"), 0, r"\d+ changes on 3 nodes: .*")
        boots = driver.boots(self.lab)
        self.expect(self.reconcile("apply"), 0, r"\d+ changes on 3 nodes")
        self.on_all("numactl", "2.0.19-3.el9")
        driver.loaded_on_all(self, boots)
        environments.on_all(self, "1.0")
        units = {name: node.run("systemctl is-active site-watch").stdout.strip() for name, node in self.lab.nodes.items()}
        self.promises.check("systemd on every node: site-watch.service is active", set(units.values()) == {"active"}, units)

    def on_all(self, package: str, version: str) -> None:
        """Asked of rpm on each node, not of reconcile."""
        found = {name: installed(node, package) for name, node in self.lab.nodes.items()}
        self.promises.check(f"rpm on every node: {package} {version}", set(found.values()) == {version}, found)

    def nothing_twice(self) -> None:
        heading("a second apply makes 0 changes and 0 writes")
        nodes = self.lab.nodes
        before = {name: transactions(node) for name, node in nodes.items()}
        for node in nodes.values():
            stamp(node)
        self.expect(self.reconcile("apply"), 0, "0 changes")
        files = {name: written(node) for name, node in nodes.items()}
        print(f"\nfiles newer than a stamp set before it, outside {' '.join(ASIDE)}; package transactions before and after:")
        for name, node in nodes.items():
            after = transactions(node)
            print(f"  {name}: {len(files[name])} files written, {before[name]} -> {after} transactions")
            self.promises.check(f"0 writes on {name}", not files[name] and after == before[name], files[name][:20])

    def drift_by_hand(self) -> None:
        heading("somebody works on the nodes by hand")
        nodes = self.lab.nodes
        by_hand = {
            "gpu01": "hostnamectl set-hostname impostor",
            "gpu02": "dnf -y -q --disableplugin=versionlock downgrade numactl-2.0.18-2.el9",
            "gpu03": "echo 'welcome, stranger' > /etc/motd",
        }
        for name, command in by_hand.items():
            print(f"[{name}] # {command}")
            nodes[name].run(command)
        found = self.reconcile("drift")
        self.expect(found, 2, "drift: 3 resources")
        for resource in ("Hostname/gpu01", "Package/numactl", "File//etc/motd"):
            self.promises.check(f"it names {resource}", resource in found.out, found.first())
        self.expect(self.reconcile("apply"), 0, "3 changes on 3 nodes")
        self.on_all("numactl", "2.0.19-3.el9")
        name = nodes["gpu01"].run("hostname").stdout.strip()
        self.promises.check("gpu01 has its name again", name == "gpu01", name)
        wanted = (self.site.clone / "files" / "motd").read_text()
        self.promises.check("gpu03 has its file again", nodes["gpu03"].run("cat /etc/motd").stdout == wanted)
        self.expect(self.reconcile("drift"), 0, "drift: 0 resources")

    def looking_back(self) -> None:
        heading("what happened, and how the nodes are")
        self.expect(self.reconcile("status"), 0, r".*all as planned.*")
        self.expect(self.reconcile("history"), 0, r"4 applies")

    def a_change_in_git(self) -> None:
        heading("a change in Git")
        self.site.replace("tmux: 3.2a-4.el9", "tmux: 3.2a-5.el9")
        self.site.replace("site-tools: 1.0", "site-tools: 2.0")
        environments.relock(self.lab, self.site.clone, "1.0", "2.0")
        print(f"committed and pushed: {self.site.push('tmux 3.2a-5.el9, site-tools 2.0')}")
        self.expect(self.reconcile("plan", "--detailed-exitcode"), 2, r"6 changes on 3 nodes: .*")
        self.expect(self.reconcile("apply"), 0, "6 changes on 3 nodes")
        self.on_all("tmux", "3.2a-5.el9")
        environments.on_all(self, "2.0")
        self.expect(self.reconcile("plan", "--detailed-exitcode"), 0, "0 changes: .*")


def images(lab: Lab) -> set[str]:
    """Base images that the lab has built so far."""
    return {path.name for path in lab.config.cache.glob("base-*")}


def remembered(lab: Lab, kind: str, seconds: float) -> dict[str, float]:
    """The last cold and warm time of this demo on this machine, this run's among them; kept in the lab's cache."""
    file = lab.config.cache / TIMES
    times: dict[str, float] = json.loads(file.read_text()) if file.exists() else {}
    times[kind] = round(seconds, 1)
    file.write_text(json.dumps(times))
    return times


def boot(lab: Lab) -> bool:
    """Three new nodes; whether the image they start from had to be built first, which is nearly all of a cold run."""
    heading(f"lab {lab.config.name}: three nodes on {lab.config.network}")
    before = images(lab)
    lab.up(nodes=3)
    return bool(images(lab) - before)


def refuse_what_is_not_ours(lab: Lab, work: Path) -> None:
    """Before anything is made, since all of it is removed at the end. Raises LabError."""
    config = lab.config
    if lab.is_up:
        raise LabError(f"a lab named {config.name} is up already: end it first (`make lab-down` with its RECONCILE_LAB_NAME)")
    if run("ip", "route", "show", "exact", config.network).stdout.strip():
        raise LabError(f"{config.network} is in use on this machine: set RECONCILE_LAB_SUBNET to another one")
    if work.exists():
        raise LabError(f"{work} exists already: remove it, or name another folder with --work")


def verdict(demo: Demo, kind: str, ready: float, seconds: float) -> None:
    """The last line."""
    times = remembered(demo.lab, kind, seconds)
    told = ", ".join(f"{name} {times[name]:.0f} s" if name in times else f"{name} not measured here" for name in ("cold", "warm"))
    broken = demo.promises.broken
    total = demo.promises.kept + len(broken)
    how = f"all {total} promises held" if not broken else f"{len(broken)} of {total} promises BROKEN: {'; '.join(broken)}"
    print(f"\ndemo: {how}; this run {seconds:.0f} s ({kind}; nodes ready after {ready:.0f} s); {told}. {STAND_IN}.", flush=True)


def main(argv: Sequence[str]) -> int:
    """0 when every promise held, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m demo.run", description="The whole job on three real nodes.")
    parser.add_argument("--keep", action="store_true", help="leave the lab up and the repositories there")
    parser.add_argument("--work", type=Path, default=Path(".demo"), help="folder for repositories and records (default .demo)")
    options = parser.parse_args(argv)
    os.environ.setdefault("RECONCILE_LAB_NAME", "demo")
    os.environ.setdefault("RECONCILE_LAB_SUBNET", "10.87.0")
    try:
        return perform(Lab.from_environment(), options.work.absolute(), keep=options.keep)
    except LabError as e:
        print(f"demo: {e}", file=sys.stderr)
        return 1


def perform(lab: Lab, work: Path, *, keep: bool) -> int:
    """Boot, tell, clean up, judge. Nothing is left but the lab's cache, unless `keep`."""
    began = time.monotonic()
    refuse_what_is_not_ours(lab, work)
    demo = Demo(lab, work)
    try:
        kind = "cold" if boot(lab) else "warm"
        ready = time.monotonic() - began
        demo.tell()
    finally:
        if not keep:
            lab.down()
            shutil.rmtree(work, ignore_errors=True)
    if keep:
        config = lab.config
        print(f"\nkept: {work}; RECONCILE_LAB_NAME={config.name} RECONCILE_LAB_SUBNET={config.subnet} make lab-down ends the lab")
    verdict(demo, kind, ready, time.monotonic() - began)
    return 1 if demo.promises.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
