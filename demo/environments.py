"""The demo's chapters on Python environments: one that somebody installs into while a program runs from it, and going back."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from demo.shown import heading
from lab import Lab, LabNode
from lab.packages import wheels

if TYPE_CHECKING:
    from demo.run import Demo

ENV = "/opt/ai/env/tools"
NODES = ("gpu01", "gpu02", "gpu03")  # that manifests/lab-trio gives the environment
PACKAGE = "site-tools"
PROGRAM = "import os, site_tools as t; print(os.getpid(), flush=True); input(); print(os.getpid(), t.__file__, t.VERSION)"


def version(node: LabNode) -> str:
    """What a program that starts now gets, asked of Python and not of reconcile."""
    return node.run(f"{ENV}/bin/python -c 'import site_tools; print(site_tools.VERSION)'").stdout.strip()


def linked(node: LabNode) -> str:
    return Path(node.run(f"readlink {ENV}").stdout.strip()).name


def on_all(demo: Demo, wanted: str) -> None:
    """Every node that has the environment."""
    found = {name: version(demo.lab.nodes[name]) for name in NODES}
    demo.promises.check(f"python on every node: {PACKAGE} {wanted}", set(found.values()) == {wanted}, found)


def installed_by_hand(demo: Demo) -> None:
    """pip puts another version into the build that is linked; a program was started from it before."""
    heading("somebody installs into a Python environment by hand, while a program runs from it")
    node, mirror = demo.lab.nodes["gpu02"], demo.lab.config.gateway
    before = linked(node)
    program = subprocess.Popen(
        [*node.ssh_argv("root"), f'{ENV}/bin/python -c "{PROGRAM}"'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    pid = program.stdout.readline().strip()
    house = f"--no-index --trusted-host {mirror} --find-links http://{mirror}:8000/wheels/"
    pip = f"pip --python {ENV}/bin/python install --quiet --no-deps --root-user-action=ignore"
    print(f"[gpu02] # {pip} {PACKAGE}==1.1    (pid {pid} runs from {before})")
    node.run(f"{pip} --disable-pip-version-check {house} {PACKAGE}==1.1")
    found = demo.reconcile("drift")
    demo.expect(found, 2, "drift: 1 resource")
    after = f"{before[:-1]}2"
    for layer, line in (
        ("the lock", f"build: {before} -> {after}"),
        ("what is on the disk", f"package {PACKAGE}: 1.1 -> 1.0"),
        ("what runs", f"users by name: pid {pid} -> keep what they imported, import from {after} then"),
    ):
        demo.promises.check(f"it says {layer}: '{line}'", line in found.out, found.out)
    demo.expect(demo.reconcile("apply"), 0, "1 change on 1 node")
    demo.promises.check(f"a new build {after}, and what starts now has 1.0", (linked(node), version(node)) == (after, "1.0"))
    told = program.communicate("\n", timeout=20)[0].split()
    where = f"{ENV}/lib/python3.11/site-packages/site_tools/__init__.py"
    demo.promises.check(f"pid {pid} went on with what it had imported", told == [pid, where, "1.0"], told)
    kept = node.run(f"ls {ENV}.d").stdout
    demo.promises.check("the damaged build is there for whoever has to look at it", before in kept, kept)


def relock(lab: Lab, clone: Path, old: str, new: str) -> None:
    """The manifest's pin and its lock with another version, as `reconcile pin` would write them."""
    house = next(lab.config.cache.glob("wheels-*"))
    before, after = (hashlib.sha256((house / wheels.filename(PACKAGE, v)).read_bytes()).hexdigest() for v in (old, new))
    lock = clone / "locks/lab/tools.txt"
    text = lock.read_text().replace(f"{PACKAGE}=={old}", f"{PACKAGE}=={new}").replace(before, after)
    if f"{PACKAGE}=={new}" not in text or after not in text:
        raise ValueError(f"{lock} has no {PACKAGE} {old} of the lab's wheels")
    lock.write_text(text)


def going_back(demo: Demo) -> None:
    """To the build of before, which sticks, and forward again: a switch each, without the wheelhouse."""
    heading("back to the environment of before, on all nodes at once")
    newest = linked(demo.lab.nodes["gpu03"])
    demo.expect(demo.reconcile("env", "rollback", "tools"), 0, "3 changes on 3 nodes")
    on_all(demo, "1.0")
    demo.expect(demo.reconcile("plan", "--detailed-exitcode"), 2, "0 changes, 3 held: .*")
    demo.expect(demo.reconcile("env", "rollback", "tools", "--to", newest), 0, "3 changes on 3 nodes")
    on_all(demo, "2.0")
