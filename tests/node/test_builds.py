"""Builds as a node sees them: mounts, seals that cannot be read, who uses what."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.node.fragments import build, builds

BUILD, OLDER, HALF = "0123456789ab-1", "ba9876543210-1", "ba9876543210-2"
LINE = "36 35 98:0 /srv {point} rw,noatime shared:1 - {kind} server:/srv rw\n"

MOUNTS = {
    "nothing": ([], False),
    "just-there": ([("{}", "nfs4")], True),
    "of-a-folder-of-this-machine": ([("{}", "ext4")], True),
    "above": ([("{}/..", "nfs4"), ("/", "ext4")], False),
    "below": ([("{}/t.d", "nfs4")], False),
    "another-with-its-beginning": ([("{}2", "nfs4")], False),
    "waiting-for-a-visit": ([("{}", "autofs")], False),
    "after-the-visit": ([("{}", "autofs"), ("{}", "nfs4")], True),
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a blank in its name, and no mounts."""
    found = tmp_path / "opt ai" / "env"
    found.mkdir(parents=True)
    (tmp_path / "mountinfo").write_text("")
    monkeypatch.setattr(builds, "MOUNTS", str(tmp_path / "mountinfo"))
    return found


def mount(root: Path, points: list[tuple[str, str]]) -> None:
    """As the kernel would write it: a blank is octal."""
    lines = [(os.path.normpath(point.format(root)), kind) for point, kind in points]
    text = "".join(LINE.format(point=point.replace(" ", "\\040"), kind=kind) for point, kind in lines)
    Path(builds.MOUNTS).write_text(text)


@pytest.mark.parametrize("how", MOUNTS)
def test_what_is_shared_counts_only_where_it_is_mounted(root: Path, how: str) -> None:
    points, wanted = MOUNTS[how]
    mount(root, points)
    assert builds.mounted(str(root)) is wanted
    said = builds.look({"path": str(root), "name": "t", "shared": True})
    assert (said == {"mounted": False}) is not wanted
    assert "builds" in builds.look({"path": str(root), "name": "t"})


def test_a_link_to_the_mount_is_followed_and_what_is_missing_is_not_mounted(root: Path, tmp_path: Path) -> None:
    mount(root, [("{}", "nfs4")])
    (tmp_path / "link").symlink_to(root)
    assert builds.mounted(str(tmp_path / "link"))
    assert not builds.mounted(str(tmp_path / "nowhere"))
    assert not builds.mounted(str(tmp_path / "mountinfo" / "x"))


@pytest.mark.parametrize(
    ("wheelhouse", "told"),
    [
        ("/srv/wheels", []),
        ("https://mirror/wheels", []),
        ("http://mirror/wheels/", ["--trusted-host", "mirror"]),
        ("http://10.0.0.1:8000", ["--trusted-host", "10.0.0.1:8000"]),
        ("http://user:word@[fd00::1]:80/x", ["--trusted-host", "[fd00::1]:80"]),
    ],
)
def test_pip_is_told_to_take_files_over_plain_http(wheelhouse: str, told: list[str]) -> None:
    assert build._trusted(wheelhouse) == told


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES, errno.ETIMEDOUT])
def test_a_seal_that_cannot_be_read_is_no_missing_seal(root: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A build without a seal is removed and made anew: a mount that fails to answer must not look like one."""
    (root / "t.d" / BUILD).mkdir(parents=True)
    (root / "t.d" / BUILD / builds.SEAL).write_text("{}")

    def fail(path: str, *more: Any) -> None:
        raise OSError(code, "no answer", path)

    monkeypatch.setattr("builtins.open", fail)
    with pytest.raises(OSError, match="no answer"):
        builds.look({"path": str(root), "name": "t"})


@pytest.mark.parametrize("seal", [None, "", "{", "[]"])
def test_a_seal_that_is_missing_or_was_cut_off_is_none(root: Path, seal: str | None) -> None:
    (root / "t.d" / BUILD).mkdir(parents=True)
    if seal is not None:
        (root / "t.d" / BUILD / builds.SEAL).write_text(seal)
    assert builds.look({"path": str(root), "name": "t"})["builds"] == {BUILD: {"sealed": False}}


def test_a_process_began_when_ps_says_and_not_when_somebody_looked() -> None:
    parent = str(os.getppid())
    elapsed = int(subprocess.check_output(("ps", "-o", "etimes=", "-p", parent), text=True))
    assert abs(time.time() - elapsed - builds._started(parent)) < 2.5
    assert builds._started("0") == float("inf")


@pytest.fixture
def by_name(root: Path) -> Iterator[str]:
    """A process that was started by the environment's name."""
    for name in (BUILD, OLDER):
        (root / "t.d" / name).mkdir(parents=True)
    (root / "t").symlink_to(f"t.d/{BUILD}")
    with subprocess.Popen(("sh", "-c", "read x", f"{root}/t/bin/python"), stdin=subprocess.PIPE) as process:
        yield f"pid {process.pid} by name"


@pytest.mark.parametrize(
    ("moved", "kinds", "used"), [(+5, [], True), (-5, [], False), (-5, ["nfs4"], True), (-90, ["nfs4"], False)]
)
def test_clocks_of_a_shared_mount_may_differ(root: Path, by_name: str, moved: int, kinds: list[str], used: bool) -> None:
    """`moved`: seconds after the process began, by the clock that stamped the link."""
    mount(root, [("{}", kind) for kind in kinds])
    at = time.time() + moved
    os.utime(root / "t", (at, at), follow_symlinks=False)
    users = builds.users(str(root), "t")
    assert by_name in users[BUILD]  # what is linked, in any case
    assert (by_name in users[OLDER]) is used


SPARED: dict[str, tuple[Any, set[str]]] = {
    "nobody-elsewhere": ((), {BUILD}),
    "used-elsewhere": ((OLDER,), {BUILD, OLDER}),
    "another-used-elsewhere": ((HALF,), {BUILD, HALF}),
    "not-everybody-said": (None, {BUILD, OLDER, HALF}),
}


@pytest.mark.parametrize("how", SPARED)
def test_what_other_nodes_need_is_neither_collected_nor_removed_as_a_half(root: Path, how: str) -> None:
    """An old whole build and one without a seal, beside the linked one; one build is kept."""
    spared, left = SPARED[how]
    for made, name in enumerate((OLDER, BUILD)):
        (root / "t.d" / name).mkdir(parents=True)
        (root / "t.d" / name / builds.SEAL).write_text(json.dumps({"lock": name, "made": made}))
    (root / "t.d" / HALF).mkdir()
    (root / "t").symlink_to(f"t.d/{BUILD}")
    arguments = {"path": str(root), "name": "t", "keep": 1, "spared": spared}
    build._remove_halves(arguments)
    build.collect(arguments)
    assert set(builds.builds(str(root / "t.d"))) == left
