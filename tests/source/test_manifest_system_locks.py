"""Locks of OS packages: what they have to hold of what is declared, and what follows for nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.desired import PackageSpec
from reconciler.render.problems import problem_text
from reconciler.source import validate_path
from tests.source.manifest_site import said, site, state

EL, DEB = "centos-stream-9", "debian-12"
STACK = f"s: {{os: {{{EL}: {{packages: {{dcgm: 4.7.0, tmux: 3.*, htop: present}}}}}}}}"
BOTH = f"s: {{os: {{{EL}: {{packages: {{dcgm: 4.7.0}}}}, {DEB}: {{packages: {{dcgm-deb: 4.7.0}}}}}}}}"
ANY = "s: {}"
PLAIN = "  versions: s\n  nodes: {n1: , n2: }\n"
PREFIX = "  versions: s\n  nodes: {n1: {packages: {numactl: 2.0.*}}, n2: }\n"
RUN = "run `reconcile pin`"
TAKEN = f"the newest release of an exact version is taken, and a prefix that is not met is held; {RUN}"


def lock(*lines: str, distribution: str = EL) -> str:
    return "".join(f"{line}\n" for line in ("# made by hand", f"# distribution: {distribution}", *lines))


def make(folder: Path, locks: dict[str, str], spec: str = PLAIN, stack: str = STACK) -> Path:
    found = site(folder, spec, stack)
    for distribution, text in locks.items():
        at = folder / f"locks/s/system-{distribution}.txt"
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
    return found


def warned(folder: Path) -> list[str]:
    loaded = validate_path(folder)
    assert [problem_text(p) for p in loaded.problems] == []
    return [problem_text(p) for p in loaded.warnings if p.code != "no-known-hosts"]


def locked(folder: Path, node: str = "n1") -> dict[tuple[str, str | None], str | None]:
    """(package, distribution) -> the locked version, of those that say a version."""
    specs = [(r.spec, r.distribution) for r in state(folder).nodes[node].resources if isinstance(r.spec, PackageSpec)]
    return {(spec.name, on): spec.locked for spec, on in specs if spec.version}


GOOD = lock("dcgm 1:4.7.0-1", "tmux 3.2a-4.el9")


def test_a_node_gets_the_locked_versions(tmp_path: Path) -> None:
    assert locked(make(tmp_path, {EL: GOOD})) == {("dcgm", EL): "1:4.7.0-1", ("tmux", EL): "3.2a-4.el9"}
    assert warned(tmp_path) == []


def test_a_system_lock_counts_in_the_digest_of_the_state(tmp_path: Path) -> None:
    before = state(make(tmp_path, {EL: GOOD})).digest
    make(tmp_path, {EL: GOOD.replace("4.7.0-1", "4.7.0-2")})
    assert state(tmp_path).digest != before


AT = f"locks/s/system-{EL}.txt"
# locks, Cluster, stack -> what is said
MISTAKES: dict[str, tuple[dict[str, str], str, str, list[str]]] = {
    "a-package-is-missing": (
        {EL: lock("tmux 3.2a-4.el9")}, PLAIN, STACK,
        [f"v.yaml:4:48: {AT} does not have dcgm, declared is 4.7.0: {RUN} and commit it"],
    ),
    "another-version": (
        {EL: lock("dcgm 1:4.8.0-1", "tmux 3.2a-4.el9")}, PLAIN, STACK,
        [f"v.yaml:4:48: {AT} has dcgm 1:4.8.0-1, declared is 4.7.0: {RUN} and commit it"],
    ),
    "a-prefix-that-is-not-met": (
        {EL: lock("dcgm 1:4.7.0-1", "tmux 4.0-1")}, PLAIN, STACK,
        [f"v.yaml:4:61: {AT} has tmux 4.0-1, declared is 3.*: {RUN} and commit it"],
    ),
    "all-at-once": (
        {EL: lock("dcgm 9-1", "rsync 3-1")}, PLAIN, STACK,
        [
            f"{AT}:4:1: rsync is locked, and nothing of stack s says its version on {EL}: {RUN}",
            f"v.yaml:4:48: {AT} has dcgm 9-1, declared is 4.7.0: {RUN} and commit it",
            f"v.yaml:4:61: {AT} does not have tmux, declared is 3.*: {RUN} and commit it",
        ],
    ),
    "present-needs-no-lock-and-has-none": (
        {EL: GOOD + "htop 3.3-1\n"}, PLAIN, STACK,
        [f"{AT}:5:1: htop is locked, and nothing of stack s says its version on {EL}: {RUN}"],
    ),
    "a-line-that-is-none": ({EL: GOOD + "rsync\n"}, PLAIN, STACK, [f"{AT}:5:1: 'rsync' is no line of a lock: {RUN} again"]),
    "a-package-twice": (
        {EL: GOOD + "tmux 3.1-1\n"}, PLAIN, STACK,
        [f"{AT}:5:1: 'tmux' is locked twice (first on line 4): {RUN} again"],
    ),
    "of-another-distribution": (
        {EL: lock("dcgm 1:4.7.0-1", "tmux 3.2a-4.el9", distribution=DEB)}, PLAIN, STACK,
        [f"{AT}:1:1: the lock says that it is for {DEB}, its name says {EL}: {RUN} again"],
    ),
    "for-a-distribution-that-the-stack-is-not-for": (
        {EL: GOOD, DEB: lock("dcgm 1-1", distribution=DEB)}, PLAIN, STACK,
        [f"locks/s/system-{DEB}.txt: a lock of stack s for '{DEB}', which it is not for; there are: {EL}"],
    ),
    "a-distribution-that-does-not-exist": (
        {"centos-9": lock(distribution="centos-9")}, PLAIN, ANY,
        ["locks/s/system-centos-9.txt: a lock of stack s for 'centos-9', which it is not for; did you mean 'centos-stream-9'?"],
    ),
    "a-prefix-of-the-cluster": (
        {EL: GOOD}, PREFIX, STACK,
        [f"c.yaml:6:36: {AT} does not have numactl, declared is 2.0.*: {RUN} and commit it"],
    ),
    "a-prefix-of-the-cluster-in-another-version": (
        {EL: GOOD + "numactl 2.1-1\n"}, PREFIX, STACK,
        [f"c.yaml:6:36: {AT} has numactl 2.1-1, declared is 2.0.*: {RUN} and commit it"],
    ),
    "a-prefix-that-no-lock-of-several-meets": (
        {EL: lock("dcgm 1:4.7.0-1", "numactl 2.1-1")}, PREFIX, BOTH,
        [f"c.yaml:6:36: {AT} has numactl 2.1-1, declared is 2.0.*: {RUN} and commit it"],
    ),
    "the-stack-and-the-cluster-contradict-each-other": (
        {EL: GOOD}, PLAIN.replace("n1: ", "n1: {packages: {tmux: 4.*}}"), STACK,
        [
            f"c.yaml:6:33: spec.nodes.n1.packages.tmux: '4.*' here, '3.*' in Versions 's' for {EL} (v.yaml:4:61): keep one",
        ],
    ),
    "an-environment-cannot-have-that-name": (
        {}, PLAIN, f"s: {{python: 3.12, environments: {{system-{DEB}: {{packages: {{torch: 2.13.0}}}}}}}}",
        [f"v.yaml:4:37: environment 'system-{DEB}': its lock would be one of OS packages: give it another name, or another lock"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_lock_that_does_not_hold_what_is_declared(tmp_path: Path, name: str) -> None:
    locks, spec, stack, says = MISTAKES[name]
    assert said(make(tmp_path, locks, spec, stack)) == says


def test_a_lock_that_cannot_be_read(tmp_path: Path) -> None:
    folder = make(tmp_path, {EL: GOOD})
    (folder / AT).rename(folder / "elsewhere.txt")
    (folder / AT).symlink_to(folder / "elsewhere.txt")
    assert said(folder) == [f"{AT}: the lock {AT} cannot be read (not-regular)"]


def test_what_nobody_declares_is_not_blamed_on_the_lock_of_a_broken_site(tmp_path: Path) -> None:
    folder = make(tmp_path, {EL: GOOD + "numactl 2.0.1-1\n"}, PREFIX)
    assert said(folder) == []
    (folder / "c.yaml").write_text((folder / "c.yaml").read_text() + "  nonsense: 1\n")
    assert [line.partition(" ")[0] for line in said(folder)] == ["c.yaml:7:3:"]
    alone = validate_path(folder / "v.yaml")
    assert (alone.problems, alone.warnings) == ((), ()), "a file by itself is judged with the locks that it names, and no others"
    assert len(validate_path(make(folder, {EL: "nonsense"}) / "v.yaml").problems) == 1


# Cluster, stack, locks -> the locked versions of n1, and what is warned of
SITES: dict[str, tuple[str, str, dict[str, str], dict[tuple[str, str | None], str | None], list[str]]] = {
    "no-lock": (
        PLAIN, STACK, {}, {("dcgm", EL): None, ("tmux", EL): None},
        [f"v.yaml:4:42: dcgm, tmux not pinned, there is no {AT}: {TAKEN}"],
    ),
    "one-of-two-locks": (
        PLAIN, BOTH, {EL: lock("dcgm 1:4.7.0-1")}, {("dcgm", EL): "1:4.7.0-1", ("dcgm-deb", DEB): None},
        [f"v.yaml:4:80: dcgm-deb not pinned, there is no locks/s/system-{DEB}.txt: {TAKEN}"],
    ),
    "a-prefix-of-the-cluster-where-the-stack-is-for-one-distribution": (
        PREFIX, STACK, {EL: GOOD + "numactl 2.0.19-3.el9\n"},
        {("dcgm", EL): "1:4.7.0-1", ("tmux", EL): "3.2a-4.el9", ("numactl", EL): "2.0.19-3.el9"}, [],
    ),
    "a-prefix-of-the-cluster-where-the-stack-is-for-any": (
        PREFIX, ANY, {DEB: lock("numactl 2.0.16-1", distribution=DEB)}, {("numactl", None): None, ("numactl", DEB): "2.0.16-1"}, [],
    ),
    "a-prefix-without-any-lock": (
        PREFIX, ANY, {}, {("numactl", None): None},
        ["c.yaml:6:27: numactl 2.0.* is a prefix that no lock has: held on nodes that do not meet it;"
         " `reconcile pin` locks those of a stack"],
    ),
    "a-prefix-without-a-stack": (
        PREFIX.replace("  versions: s\n", ""), ANY, {}, {("numactl", None): None},
        ["c.yaml:5:27: numactl 2.0.* is a prefix that no lock has: held on nodes that do not meet it;"
         " `reconcile pin` locks those of a stack"],
    ),
    "an-exact-version-of-the-cluster-is-what-it-says": (
        PREFIX.replace("2.0.*", "2.0.18-2.el9"), ANY, {}, {("numactl", None): None}, [],
    ),
    "a-node-that-says-more-than-its-stack": (
        PLAIN.replace("n1: ", "n1: {packages: {tmux: 3.2a-4.el9}}"), STACK, {EL: GOOD},
        {("dcgm", EL): "1:4.7.0-1", ("tmux", EL): "3.2a-4.el9"}, [],
    ),
    "a-node-that-says-another-one-of-what-its-stack-allows": (
        PLAIN.replace("n1: ", "n1: {packages: {tmux: 3.1-1.el9}}"), STACK, {EL: GOOD},
        {("dcgm", EL): "1:4.7.0-1", ("tmux", EL): None}, [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SITES)
def test_what_follows_for_a_node(tmp_path: Path, name: str) -> None:
    spec, stack, locks, versions, warnings = SITES[name]
    folder = make(tmp_path, locks, spec, stack)
    assert warned(folder) == warnings
    assert locked(folder) == versions
