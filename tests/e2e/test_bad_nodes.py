"""One bad node among good ones: a clear sentence, the right exit code, and the others converge."""

from __future__ import annotations

import itertools
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from lab import Lab, LabNode
from lab.ssh import ensure_key
from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import Result, Site
from tests.e2e.truth import Nodes

PAIR = ("gpu01", "gpu02")
SECONDS = 60.0  # of an apply with nodes that do not answer: each is given up after 20 s, and a busy machine takes its time


@pytest.fixture(scope="module")
def pair(nodes: Nodes) -> tuple[LabNode, LabNode]:
    """gpu01 is good, gpu02 is the bad one: whatever was done to it is undone by the test that did it."""
    good, bad = nodes.fresh(*PAIR)
    return good, bad


COUNTER = itertools.count()


@pytest.fixture
def site(small: Small, pair: tuple[LabNode, LabNode]) -> Site:
    """Both nodes shall have a new file; and once gpu02 is well again, a plain apply has to bring it there as well."""
    name = f"/etc/site-{next(COUNTER)}"
    found = small(nodes=PAIR, files={name: "declared\n"})
    found.environment["E2E_FILE"] = name
    return found


def expect(site: Site, pair: tuple[LabNode, LabNode], code: int, end: str, words: str, *, slow: bool = False) -> Result:
    """A plan that says it, and an apply in which gpu02 ends so while gpu01 converges. `slow`: the apply alone, each waits 20 s."""
    if not slow:
        planned = site.run("plan")
        assert planned.code == code
        assert "1 node could not be observed" in planned.verdict
        assert words in planned.stdout
    done = site.run("apply")
    assert done.code == code, done.text
    line = next(line for line in done.stdout.splitlines() if line.startswith(f"  gpu02  {end}"))
    assert words in line, line
    assert "?" not in line, "a hole in the sentence"
    assert "gpu01  converged, 1 change" in done.stdout
    assert truth.text(pair[0], site.environment["E2E_FILE"]) == "declared\n"
    return done


def healed(site: Site, pair: tuple[LabNode, LabNode]) -> None:
    assert "gpu02  converged, 1 change" in site.ok("apply").stdout
    assert truth.text(pair[1], site.environment["E2E_FILE"]) == "declared\n"


def test_key_refused(site: Site, pair: tuple[LabNode, LabNode]) -> None:
    pair[1].run("mv /root/.ssh/authorized_keys /root/.ssh/away")
    try:
        expect(site, pair, 4, "unreachable", "it refuses the key of user root")
    finally:
        pair[1].inside("mv /root/.ssh/away /root/.ssh/authorized_keys")
    healed(site, pair)


def test_another_host_key(site: Site, pair: tuple[LabNode, LabNode], tmp_path: Path) -> None:
    right = (site.repo / "known_hosts").read_text()
    other = ensure_key(tmp_path / "other", "other")
    lines = [f"{pair[1].address} {other}" if line.startswith(f"{pair[1].address} ") else line for line in right.splitlines()]
    (site.repo / "known_hosts").write_text("\n".join(lines) + "\n")
    site.commit()
    shown = fingerprint(pair[1])
    expect(site, pair, 4, "unreachable", f"another host key than the manifest has: a new machine, or somebody in between ({shown})")
    assert truth.stat(pair[1], site.environment["E2E_FILE"]) == "none"
    (site.repo / "known_hosts").write_text(right)
    site.commit()
    healed(site, pair)


def test_unknown_host_key(site: Site, pair: tuple[LabNode, LabNode]) -> None:
    right = (site.repo / "known_hosts").read_text()
    (site.repo / "known_hosts").write_text("".join(line for line in right.splitlines(True) if f"{pair[1].address} " not in line))
    site.commit()
    expect(site, pair, 4, "unreachable", f"its host key {fingerprint(pair[1])} is not in the known hosts")
    (site.repo / "known_hosts").write_text(right)
    site.commit()
    healed(site, pair)


def fingerprint(node: LabNode) -> str:
    return node.run("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").stdout.split()[1]


def test_nothing_listens(site: Site, pair: tuple[LabNode, LabNode]) -> None:
    pair[1].inside("systemctl stop sshd.service")
    try:
        expect(site, pair, 4, "unreachable", f"nothing listens on {pair[1].address} port 22")
    finally:
        pair[1].inside("systemctl start sshd.service")
    healed(site, pair)


def test_a_program_that_hangs_ends_in_time(site: Site, pair: tuple[LabNode, LabNode]) -> None:
    fake(pair[1], "exec sleep 1000")
    try:
        expect(site, pair, 4, "unreachable", "it did not answer in time", slow=True)
    finally:
        pair[1].inside("pkill -x sleep; true")
        real(pair[1])
    healed(site, pair)


def fake(node: LabNode, script: str) -> None:
    """Another python3 for whoever logs in, first on the PATH."""
    node.inside(f"printf '#!/bin/sh\\n%s\\n' {shlex.quote(script)} > /usr/local/bin/python3; chmod 755 /usr/local/bin/python3")


def real(node: LabNode) -> None:
    node.inside("rm -f /usr/local/bin/python3; [ ! -e /usr/bin/python3.away ] || mv /usr/bin/python3.away /usr/bin/python3")


GARBAGE = {
    "noise without an end": ("exec yes noise", "something else than our program answers"),
    "one line of 10 MB": ("head -c 10000000 /dev/zero | tr '\\0' x; echo", "something else than our program answers"),
    "ends at once": ("echo 'no such thing' >&2; exit 1", "our program ended there: no such thing"),
    "says the right word and then nonsense": ("echo 'RECONCILE-NODE {}'; exec sleep 30", "its answer cannot be read"),
    "another protocol": (
        """echo 'RECONCILE-NODE {"protocol": 99, "boot_id": "x", "hostname": "x", "python": "3", "uid": 0}'; exec sleep 30""",
        "its answer has not the agreed form: protocol 99",
    ),
    "answers that are no answers": (
        """echo 'RECONCILE-NODE {"protocol": 1, "boot_id": "x", "hostname": "x", "python": "3", "uid": 0}'; """
        """while read -r line; do echo '{"id": 1, "ok": []}'; done""",
        "its answer",
    ),
    "an answer of 10 MB": (
        """echo 'RECONCILE-NODE {"protocol": 1, "boot_id": "x", "hostname": "x", "python": "3", "uid": 0}'; """
        """head -c 10000000 /dev/zero | tr '\\0' 1; echo; exec sleep 30""",
        "its answer is longer than we accept",
    ),
}


ORDINARY = ("one line of 10 MB", "ends at once", "says the right word and then nonsense")


@pytest.mark.parametrize("how", [how if how in ORDINARY else pytest.param(how, marks=pytest.mark.deep) for how in GARBAGE])
def test_garbage(site: Site, pair: tuple[LabNode, LabNode], how: str) -> None:
    script, words = GARBAGE[how]
    fake(pair[1], script)
    try:
        expect(site, pair, 3, "garbled", words)
    finally:
        real(pair[1])
    healed(site, pair)


def test_no_python(site: Site, pair: tuple[LabNode, LabNode]) -> None:
    pair[1].inside("mv /usr/bin/python3 /usr/bin/python3.away")
    try:
        expect(site, pair, 3, "garbled", "it has no python3: bash: line 1: python3: command not found")
    finally:
        real(pair[1])
    healed(site, pair)


def test_chatter_before_the_program_is_no_garbage(site: Site, pair: tuple[LabNode, LabNode]) -> None:
    """What a login shell prints, on both streams."""
    fake(pair[1], "echo 'Welcome! Authorised use only.'; echo warning >&2; printf 'no new line'; exec /usr/bin/python3 \"$@\"")
    try:
        assert "gpu[01-02]  converged" in site.ok("apply").stdout
    finally:
        real(pair[1])


def test_read_only_var(site: Site, pair: tuple[LabNode, LabNode]) -> None:
    """The node can be looked at and not written: its records have nowhere to go, so nothing is done there."""
    pair[1].inside("mount --bind /var /var && mount -o remount,ro,bind /var")
    try:
        done = site.run("apply")
        assert done.code == 3
        assert "Read-only file system" in done.stdout
        assert "gpu01  converged, 1 change" in done.stdout
        assert "gpu02  failed" in done.stdout
        assert truth.stat(pair[1], site.environment["E2E_FILE"]) == "none"
    finally:
        pair[1].inside("umount /var")
    healed(site, pair)


RECORDS = {
    "lease cut off": ("lease.json", '{"token": 1,', "its record /var/lib/reconcile/lease.json is damaged"),
    "inventory is no object": ("inventory.json", "[]", "its record /var/lib/reconcile/inventory.json is damaged"),
    "step of a newer version": ("steps/99-1.json", '{"version": 99}', "its records are a newer version's: use that version"),
    "empty step": ("steps/99-1.json", "", "its record /var/lib/reconcile/steps/99-1.json is damaged"),
}


@pytest.mark.parametrize("what", RECORDS)
def test_records_that_cannot_be_trusted_are_never_guessed(site: Site, pair: tuple[LabNode, LabNode], what: str) -> None:
    file, content, words = RECORDS[what]
    path = f"/var/lib/reconcile/{file}"
    bad = pair[1]
    bad.run(f"mkdir -p -m 700 /var/lib/reconcile/steps; [ ! -e {path} ] || mv {path} /root/away")
    bad.run(f"printf %s {shlex.quote(content)} > {path}")
    try:
        expect(site, pair, 3, "failed", words)
        assert truth.stat(bad, site.environment["E2E_FILE"]) == "none"
    finally:
        bad.run(f"rm {path}; [ ! -e /root/away ] || mv /root/away {path}")
    healed(site, pair)


@pytest.mark.parametrize("seconds", [-86400, 86400])
def test_a_clock_that_is_wrong_by_a_day_does_not_matter(site: Site, pair: tuple[LabNode, LabNode], seconds: int) -> None:
    """A lease is neither older nor younger for it, also when the clock moves while one is held."""
    bad = pair[1]
    bad.run(": > /var/log/lab-slow.log; dnf -y remove slow-install")
    truth.hold_slow(bad)
    site.declare(nodes=PAIR, per_node={"gpu02": {"packages": {"slow-install": "present"}}}, files={"/etc/clock": f"{seconds}\n"})
    running = site.start("apply", RECONCILE_LEASE_TTL="10")
    truth.slow_started(bad)
    bad.skew(seconds)
    truth.wait_until(lambda: abs(truth.wall(bad) - seconds) < 60, "the wrong clock")
    refused = site.other("other").run("apply")
    assert refused.code == 6, refused.text
    truth.let_go(bad)
    assert running.result().code == 0
    assert "0 changes" in site.ok("apply").verdict
    bad.skew(0)
    truth.wait_until(lambda: abs(truth.wall(bad)) < 60, "the right clock")
    assert "0 changes" in site.ok("apply").verdict
    assert truth.slow_runs(bad) == ["start", "end"]


def test_ops_works_through_sudo_and_nosudo_is_refused(small: Small, pair: tuple[LabNode, LabNode]) -> None:
    users = {"gpu01": {"ssh": {"user": "ops"}}, "gpu02": {"ssh": {"user": "nosudo"}}}
    site = small(nodes=PAIR, files={"/etc/by-user": "x\n"}, packages={"tmux": "present"}, per_node=users)
    assert site.run("plan").code == 4
    done = site.run("apply")
    assert done.code == 4
    assert "gpu01  converged, 2 changes" in done.stdout
    assert "gpu02  unreachable: its user may not become root with sudo -n: sudo: a password is required" in done.stdout
    assert truth.stat(pair[0], "/etc/by-user") == "644 root root regular file"
    assert truth.rpm(pair[0], "tmux") is not None
    assert truth.stat(pair[1], "/etc/by-user") == "none"
    assert pair[1].run("test -e /home/nosudo/x", check=False).returncode == 1


@pytest.mark.deep
def test_a_key_that_is_not_there_and_one_that_is_none(
    small: Small, lab: Lab, pair: tuple[LabNode, LabNode], tmp_path: Path
) -> None:
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("not a key\n")
    locked = tmp_path / "locked"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", locked), check=True)
    for path, words in ((tmp_path / "nowhere", "No such file"), (nonsense, "cannot be used"), (locked, "encrypted")):
        keys = {"gpu02": {"ssh": {"identity": str(path)}}}
        site = Site.small(lab, tmp_path / path.name.upper(), nodes=PAIR, files={f"/etc/key-{path.name}": "x\n"}, per_node=keys)
        done = site.run("apply")
        assert done.code == 4
        assert f"gpu02  unreachable: the key file {path} cannot be used" in done.stdout
        assert words in done.stdout
        assert "gpu01  converged, 1 change" in done.stdout


def test_down_cut_off_and_hanging_nodes_do_not_hold_up_the_others(nodes: Nodes, small: Small) -> None:
    """All at once: one apply waits for all of them side by side, and once."""
    good, down, hanging, cut = nodes.fresh("gpu01", "gpu02", "gpu03", "deb01")
    names = tuple(node.name for node in (good, down, hanging, cut))
    site = small(nodes=names, files={"/etc/site": "declared\n"})
    hanging.inside("pkill -STOP -x sshd")  # stopped, not ended: no connection breaks, and nothing answers
    down.poweroff()
    cut.cut()
    began = time.monotonic()
    done = site.run("apply")
    assert time.monotonic() - began < SECONDS
    assert done.code == 4
    for node in (down, cut):
        line = next(line for line in done.stdout.splitlines() if line.startswith("  ") and f"{node.address}" in line)
        assert f"no route to {node.address}" in line or f"no answer from {node.address} port 22" in line
    assert "gpu03  unreachable: it did not answer in time" in done.stdout
    assert "gpu01  converged, 1 change" in done.stdout
    assert "?" not in done.stdout
    assert truth.text(good, "/etc/site") == "declared\n"
    hanging.inside("pkill -CONT -x sshd")
    cut.heal()
    down.poweron()
    down.wait_ready()
    assert "3 changes on 3 nodes" in site.ok("apply").verdict
    assert [truth.text(node, "/etc/site") for node in (down, hanging, cut)] == ["declared\n"] * 3
