"""System locks made from nodes: real node programs in folders, whose dnf says what a file has; and the command as it is called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.errors import Unreachable
from reconciler.pool import Pool
from reconciler.render.locks import refusals
from reconciler.source.pinnable import pinnable
from reconciler.system_pins import Resolved, resolve
from tests.nodes.site import Site
from tests.source.manifest_site import site as manifests

ROOT = Path(__file__).parents[2]
EL, DEB = "centos-stream-9", "debian-12"
LOCK = f"locks/s/system-{EL}.txt"
OFFERED = ("tmux 0 3.2a 4.el9", "tmux 0 3.2a 5.el9", "tmux 0 3.3 1.el9", "dcgm 1 4.7.0 1", "dcgm 1 4.8.0 1")
STACK = f"s: {{os: {{{EL}: {{packages: {{tmux: 3.2a, dcgm: 4.*, htop: present}}}}}}}}"
SPEC = "  versions: s\n  nodes: {n1: , n2: , n3: }\n"
DNF = """case " $* " in *" repoquery "*) ;; *) exit 9;; esac
echo asked >> $NODE/log
[ -e $NODE/no-repositories ] && { echo "Error: Failed to download metadata for repo 'baseos'" >&2; exit 1; }
cat $NODE/offered
"""


class Nodes:
    """A site of manifests and its nodes n1 to n3."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder, self.site = folder, site
        for name in ("n1", "n2", "n3"):
            at = self.site.node(name)
            (at / "bin/dnf").write_text("#!/bin/sh\n" + DNF)
            (at / "bin/dnf").chmod(0o755)
            (at / "offered").write_text("".join(f"{line} x86_64\n".replace(" ", "\t") for line in OFFERED))

    def declare(self, stacks: str = STACK, spec: str = SPEC) -> None:
        (self.folder / "site").mkdir(exist_ok=True)
        manifests(self.folder / "site", spec, stacks)

    def install(self, node: str, *lines: str) -> None:
        with (self.site.node(node) / "rpmdb").open("a") as file:
            file.writelines(f"{line} x86_64\n".replace(" ", "\t") for line in lines)

    def lock(self, *lines: str, stack: str = "s", distribution: str = EL) -> None:
        at = self.folder / f"site/locks/{stack}/system-{distribution}.txt"
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text("".join(f"{line}\n" for line in (f"# distribution: {distribution}", "# of somebody", *lines)))

    def resolve(self, *among: str, upgrade: bool = False) -> Resolved:
        found = pinnable(self.folder / "site")
        assert found.problems == ()
        assert found.system is not None
        pool = Pool(self.site, found.nodes)
        return resolve(found.stacks, found.system, found.nodes, pool, among=among or tuple(found.nodes), upgrade=upgrade)

    def asked(self) -> list[str]:
        return [name for name in ("n1", "n2", "n3") if self.site.commands(name)]


@pytest.fixture
def nodes(tmp_path: Path, site: Site) -> Nodes:
    return Nodes(tmp_path, site)


def versions(result: Resolved) -> dict[str, dict[str, str] | None]:
    assert (result.failures, result.refusals) == ({}, [])
    return {m.path: {n: str(p.version) for n, p in m.after.packages.items()} if m.after else None for m in result.locks}


def test_one_node_of_a_distribution_is_asked_and_most_nodes_decide(nodes: Nodes) -> None:
    nodes.declare()
    assert versions(nodes.resolve()) == {LOCK: {"tmux": "3.2a-5.el9", "dcgm": "1:4.8.0-1"}}
    assert nodes.asked() == ["n1"]
    nodes.install("n2", "tmux 0 3.2a 4.el9", "dcgm 1 4.7.0 1")
    nodes.install("n3", "tmux 0 3.2a 4.el9", "dcgm 1 4.8.0 1", "dcgm 1 4.7.0 1")
    assert versions(nodes.resolve()) == {LOCK: {"tmux": "3.2a-4.el9", "dcgm": "1:4.7.0-1"}}
    assert versions(nodes.resolve(upgrade=True)) == {LOCK: {"tmux": "3.2a-5.el9", "dcgm": "1:4.8.0-1"}}
    nodes.lock("tmux 3.2a-5.el9", "dcgm 1:4.6.0-1")
    result = nodes.resolve()
    assert versions(result) == {LOCK: {"tmux": "3.2a-5.el9", "dcgm": "1:4.7.0-1"}}
    assert result.locks[0].after is not None
    assert result.locks[0].after.notes == ("# of somebody",)


def test_a_prefix_of_the_nodes_themselves_is_locked_as_well(nodes: Nodes) -> None:
    nodes.declare("s: {}", SPEC.replace("n2: ", "n2: {packages: {tmux: 3.2a-*}}"))
    assert versions(nodes.resolve()) == {LOCK: {"tmux": "3.2a-5.el9"}}
    assert nodes.resolve("n1").locks == [], "nobody who wants it was asked"
    nodes.lock("tmux 3.2a-4.el9", "rsync 3.2.5-3.el9")
    assert versions(nodes.resolve("n1")) == {LOCK: {"tmux": "3.2a-4.el9"}}, "but what the lock has for them stays"


def test_a_stack_that_no_node_has_yet_is_pinned_by_all_nodes(nodes: Nodes) -> None:
    nodes.declare(f"{STACK}\nt: {{extends: s, os: {{{EL}: {{packages: {{tmux: 3.3}}}}}}}}")
    nodes.install("n3", "dcgm 1 4.7.0 1")
    assert versions(nodes.resolve())[f"locks/t/system-{EL}.txt"] == {"tmux": "3.3-1.el9", "dcgm": "1:4.7.0-1"}


def test_where_nothing_says_a_version_no_node_is_asked_and_a_lock_goes(nodes: Nodes) -> None:
    nodes.declare(f"s: {{os: {{{EL}: {{packages: {{htop: present}}}}}}}}")
    nodes.site.down = dict.fromkeys(("n1", "n2", "n3"), Unreachable("NoRoute", host="n", port=22))
    assert versions(nodes.resolve()) == {}
    nodes.lock("tmux 3.2a-4.el9")
    assert versions(nodes.resolve()) == {LOCK: None}


def test_a_distribution_that_no_node_runs_keeps_what_it_has(nodes: Nodes) -> None:
    nodes.declare(f"s: {{os: {{{DEB}: {{packages: {{tmux: 3.2a}}}}, {EL}: {{packages: {{tmux: 3.3}}}}}}}}")
    result = nodes.resolve()
    assert versions(result) == {LOCK: {"tmux": "3.3-1.el9"}}
    assert result.unseen == [f"locks/s/system-{DEB}.txt"]


def test_all_that_is_not_on_offer_is_said_at_once(nodes: Nodes) -> None:
    nodes.declare(f"s: {{os: {{{EL}: {{packages: {{tmux: 9.*, dcgm: 4.*, nowhere: 1.0}}}}}}}}")
    assert refusals(nodes.resolve().refusals) == [
        f"{LOCK}: no repository of n1 has nowhere",
        f"{LOCK}: no repository of n1 has a tmux that is 9.*; there are 3.2a-4.el9, 3.2a-5.el9, 3.3-1.el9",
    ]


# what is wrong with n1 -> kind and reason of its failure
WRONG = {
    "down": ("unreachable", "NoRoute"),
    "no-repositories": ("garbled", "RepositoriesUnreadable"),
    "rpmdb": ("garbled", "PackagesUnreadable"),
    "etc/os-release": ("garbled", "DistributionUnknown"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_node_that_cannot_say_what_is_needed_fails_the_whole(nodes: Nodes, what: str) -> None:
    nodes.declare()
    if what == "down":
        nodes.site.down["n1"] = Unreachable("NoRoute", host="n1", port=22)
    else:
        (nodes.site.node("n1") / what).write_text("")
    result = nodes.resolve()
    assert {name: (f.kind, f.reason) for name, f in result.failures.items()} == {"n1": WRONG[what]}
    assert result.locks == []
    assert versions(nodes.resolve("n2", "n3")) == {LOCK: {"tmux": "3.2a-5.el9", "dcgm": "1:4.8.0-1"}}, "unless a person says so"


def call(folder: Path, *words: str, command: str = "pin") -> tuple[int, str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    env = {**kept, "PYTHONPATH": str(ROOT), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}
    argv = [sys.executable, "-m", "reconciler", command, str(folder), *words]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


UNREACHABLE = "  versions: s\n  ssh: {port: 1}\n  nodes: {n1: {address: 127.0.0.1}}\n"
CALLS = {
    "unreachable": (UNREACHABLE, (), 4, "n1: nothing listens on 127.0.0.1 port 1"),
    "no-node": ("  nodes: {n1: }\n", ("--on", "n2"), 1, "no node of cluster c is named 'n2'"),
    "no-stack": (UNREACHABLE, ("--stack", "t", "--only", "system"), 1, "no Versions here is named 't' (s)"),
    "apart": (UNREACHABLE, ("--environment", "e", "--on", "n1"), 1, "--environment and --on cannot be said together"),
    "no-environment": (UNREACHABLE, ("--only", "python"), 1, "no stack here has */* (none)"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_cannot_be_answered_writes_nothing(tmp_path: Path, name: str) -> None:
    spec, words, code, says = CALLS[name]
    folder = manifests(tmp_path, spec, STACK)
    found = call(folder, *words)
    assert (found[0], says in found[2]) == (code, True), found
    assert not (folder / "locks").exists()


def test_a_program_is_told_which_node_could_not_be_asked(tmp_path: Path) -> None:
    code, out, _ = call(manifests(tmp_path, UNREACHABLE, STACK), "--json")
    told = json.loads(out)
    assert (code, told["locks"], told["failures"]["n1"]["reason"], told["refused"]) == (4, [], "ConnectionRefused", [])


def test_without_any_node_os_packages_cannot_be_pinned(tmp_path: Path) -> None:
    manifests(tmp_path, SPEC, STACK)
    (tmp_path / "c.yaml").unlink()
    assert call(tmp_path)[0] == 1
    assert "the OS packages of s cannot be pinned: there is no node to ask" in call(tmp_path)[2]


def test_check_writes_nothing_and_exits_with_2(tmp_path: Path) -> None:
    folder = manifests(tmp_path, "  versions: s\n  nodes: {n1: }\n", "s: {}")
    lock = folder / LOCK
    lock.parent.mkdir(parents=True)
    lock.write_text(f"# distribution: {EL}\ntmux 3-1\n")
    code, out, _ = call(folder, "--check", "--json")
    assert (code, lock.exists()) == (2, True)
    (told,) = json.loads(out)["locks"]
    assert (told["changed"], told["written"], told["removed"]) == (True, False, True)
    assert call(folder)[1] == f"{LOCK}: 0 packages, removed: nothing declares a version for it\n  tmux 3-1 -> -\n"
    assert not lock.exists()
    assert call(folder, "--check")[0] == 0


def test_a_plan_without_a_lock_says_what_is_not_pinned(tmp_path: Path) -> None:
    site, recorded = tmp_path / "site", ("--from", str(ROOT / "snapshots/lab-trio"), "--state-dir", str(tmp_path / "state"))
    shutil.copytree(ROOT / "manifests/lab-trio", site)
    code, with_lock, notes = call(site, *recorded, command="plan")
    assert (code, "not pinned" in notes) == (0, False)
    (site / "locks/lab/system-centos-stream-9.txt").unlink()
    code, without, notes = call(site, *recorded, command="plan")
    assert "datacenter-gpu-manager-4-cuda13, kmod-nvidia-open-dkms, libnvidia-ml, lustre-client (and 4 more" in notes
    assert (code, without) == (0, with_lock), "what is planned is what it was before there were locks"
