"""Replacing one file: all of it or nothing, whatever stands in the way."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.node import files, state


def write(path: Path, data: bytes = b"new", mode: int = 0o644, owner: str = "root", group: str = "root") -> None:
    files.write(str(path), base64.b64encode(data).decode(), mode, owner, group)


def refused(path: Path, **changes: object) -> state.Refused:
    with pytest.raises(state.Refused) as caught:
        write(path, **changes)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4755, 0o2775])
def test_content_mode_and_owner(tmp_path: Path, mode: int) -> None:
    write(tmp_path / "f", b"\x00\xff" * 10, mode, "daemon", "adm")
    info = (tmp_path / "f").stat()
    assert (tmp_path / "f").read_bytes() == b"\x00\xff" * 10
    assert (info.st_mode & 0o7777, (tmp_path / "f").owner(), (tmp_path / "f").group()) == (mode, "daemon", "adm")


def test_missing_parents_are_made_for_all_to_enter(tmp_path: Path) -> None:
    """The program's umask is 077: it must not reach what it makes for others."""
    write(tmp_path / "a" / "b" / "c" / "f")
    for parent in ("a", "a/b", "a/b/c"):
        assert (tmp_path / parent).stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("make", [write, lambda path: state.write_record(str(path), {})])
def test_directories_that_are_made_outlast_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    """A file that was fsynced in a directory that was not is gone with it."""
    synced: list[str] = []
    monkeypatch.setattr(state, "fsync_directory", synced.append)
    make(tmp_path / "a" / "b" / "f")
    assert synced == [str(p) for p in (tmp_path.parent, tmp_path, tmp_path / "a", tmp_path / "a" / "b")]
    synced.clear()  # who made them may have been killed before that
    make(tmp_path / "a" / "b" / "f")
    assert synced == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]


def test_existing_parents_keep_their_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(0o700)
    write(tmp_path / "a" / "f")
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o700


def test_replaced_atomically(tmp_path: Path) -> None:
    """Who has the old file open reads the old content to its end: it was replaced, not written over."""
    (tmp_path / "f").write_bytes(b"old")
    with (tmp_path / "f").open("rb") as reader:
        write(tmp_path / "f")
        assert reader.read() == b"old"
    assert (tmp_path / "f").read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir() if p.name != "lib"] == ["f"]


def test_a_link_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write(tmp_path / "link")
    assert not (tmp_path / "link").is_symlink()
    assert ((tmp_path / "link").read_bytes(), (tmp_path / "target").read_bytes()) == (b"new", b"old")


def test_a_link_to_a_directory_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("d")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_file()
    assert (tmp_path / "d").is_dir()


def test_a_directory_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    assert refused(tmp_path / "d").code == "IsDirectory"
    assert (tmp_path / "d").is_dir()


@pytest.mark.parametrize(("owner", "group", "code"), [("no-one", "root", "NoSuchUser"), ("root", "no-group", "NoSuchGroup")])
def test_owners_that_do_not_exist(tmp_path: Path, owner: str, group: str, code: str) -> None:
    (tmp_path / "f").write_bytes(b"old")
    assert refused(tmp_path / "f", owner=owner, group=group).code == code
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    error = refused(tmp_path / "f" / "below")
    assert (error.code, error.data["errno"]) == ("Failed", "ENOTDIR")
    error = refused(tmp_path / "f" / "below" / "more")
    assert (error.code, error.data["errno"]) == ("Failed", "ENOTDIR")


def test_what_a_write_that_was_cut_off_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".f.reconcile~").symlink_to("/etc/passwd")
    write(tmp_path / "f")
    assert not (tmp_path / "f").is_symlink()
    assert not (tmp_path / ".f.reconcile~").is_symlink()


@pytest.mark.parametrize("length", [199, 200, 255])
def test_names_as_long_as_a_file_system_takes_them(tmp_path: Path, length: int) -> None:
    write(tmp_path / ("n" * length))
    assert (tmp_path / ("n" * length)).read_bytes() == b"new"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    (tmp_path / "small").mkdir()
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path / "small")), check=True)
    yield tmp_path / "small"
    subprocess.run(("umount", str(tmp_path / "small")), check=True)


def test_a_full_disk_leaves_the_old_file(small: Path) -> None:
    (small / "f").write_bytes(b"old")
    error = refused(small / "f", data=os.urandom(200_000))
    assert (error.code, error.data["errno"]) == ("Failed", "ENOSPC")
    assert (small / "f").read_bytes() == b"old"
    assert [p.name for p in small.iterdir()] == ["f"]


def test_a_read_only_file_system(small: Path) -> None:
    (small / "f").write_bytes(b"old")
    subprocess.run(("mount", "-o", "remount,ro", str(small)), check=True)
    error = refused(small / "f")
    assert (error.code, error.data["errno"]) == ("Failed", "EROFS")


def test_content_that_is_no_base64(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="base64"):
        files.write(str(tmp_path / "f"), "%%%", 0o644, "root", "root")
    assert not (tmp_path / "f").exists()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def exchange(path: Path, data: bytes, expected: str) -> None:
    files.exchange(str(path), base64.b64encode(data).decode(), expected)


def test_an_exchange_keeps_mode_and_owner(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(0o604)
    os.chown(tmp_path / "f", 1, 4)
    exchange(tmp_path / "f", b"new", digest(b"old"))
    info = (tmp_path / "f").stat()
    assert ((tmp_path / "f").read_bytes(), info.st_mode & 0o7777, info.st_uid, info.st_gid) == (b"new", 0o604, 1, 4)


def test_an_exchange_makes_what_is_not_there(tmp_path: Path) -> None:
    exchange(tmp_path / "f", b"new", "")
    assert ((tmp_path / "f").read_bytes(), (tmp_path / "f").stat().st_mode & 0o7777) == (b"new", 0o644)


def link_to_the_same(path: Path) -> None:
    path.rename(path.with_name("g"))
    path.symlink_to("g")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


MOVED: dict[str, Callable[[Path], object]] = {
    "another content": lambda f: f.write_bytes(b"old and a line"),
    "gone": Path.unlink,
    "a link to the same": link_to_the_same,
    "a folder": folder,
}


@pytest.mark.parametrize("how", MOVED)
def test_an_exchange_of_what_is_not_as_it_was_read_is_refused(tmp_path: Path, how: str) -> None:
    (tmp_path / "f").write_bytes(b"old")
    MOVED[how](tmp_path / "f")
    before = {p.name: p.lstat().st_mtime_ns for p in tmp_path.iterdir()}
    with pytest.raises(state.Refused) as caught:
        exchange(tmp_path / "f", b"new", digest(b"old"))
    assert (caught.value.code, {p.name: p.lstat().st_mtime_ns for p in tmp_path.iterdir()}) == ("FileMoved", before)


def test_an_exchange_of_nothing_where_something_came_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(state.Refused):
        exchange(tmp_path / "f", b"new", "")
    assert (tmp_path / "f").read_bytes() == b""
