"""Folders on disk: what is listed, what is read, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.render.problems import problem_text
from reconciler.source import validate_path
from reconciler.source.tree import DirectoryTree, Failure, Recorder

VERSIONS = "apiVersion: reconcile/v1\nkind: Versions\nmetadata: {name: a}\nspec: {}\n"
CLUSTER = "apiVersion: reconcile/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n  nodes: {n1: }\n"


def said(path: Path) -> list[str]:
    """Problems without the temporary folder's name."""
    return [problem_text(p).replace(str(path), "SITE") for p in validate_path(path).problems]


def test_lists_all_but_hidden_files(tmp_path: Path) -> None:
    for name in ("b/x.yaml", "a.yaml", ".git/config", ".hidden.yaml", "b/.#x.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert DirectoryTree(tmp_path).files() == ("a.yaml", "b/x.yaml")


def test_reads_regular_files_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "dangling").symlink_to("nothing")
    os.mkfifo(tmp_path / "fifo")
    tree = DirectoryTree(tmp_path)
    assert tree.read("file", 5) == b"12345"
    assert tree.read("file", 4) == Failure("file-too-large", size=5)
    assert tree.read("none", 5) == Failure("no-such-file")
    assert tree.read("file/below", 5) == Failure("no-such-file")
    for odd in ("folder", "link", "out/hostname", "dangling", "fifo"):
        assert tree.read(odd, 5) == Failure("not-regular"), odd


def test_what_cannot_be_read_is_not_taken_for_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.yaml").write_text(VERSIONS)
    (tmp_path / "known_hosts").write_text("")
    monkeypatch.setattr(os, "open", denied)
    assert DirectoryTree(tmp_path).read("a.yaml", 5) == Failure("denied", "Permission denied")
    assert said(tmp_path) == ["a.yaml:1:1: cannot be read: Permission denied"]


def test_a_disk_error_is_not_taken_for_an_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    (tmp_path / "a.yaml").write_text(VERSIONS)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", broken)
        found = DirectoryTree(tmp_path).read("a.yaml", 5)
    assert found == Failure("io", "Input/output error")


def test_a_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    assert said(tmp_path / "none") == ["SITE: there is no such file or folder"]
    assert validate_path(tmp_path / "none.yaml").problems[0].code == "manifest-no-such-file"


def test_recorder_reads_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    recorder = Recorder(DirectoryTree(tmp_path))
    assert recorder.read("a", 9) == b"1"
    (tmp_path / "a").write_text("2")
    assert recorder.read("a", 9) == b"1"
    assert recorder.files() == ("a",)


@pytest.mark.parametrize("names", [(), ("README.md",), ("secrets/a.yaml", "files/b.yaml", "locks/c.yml"), ("empty.yaml",)])
def test_an_empty_repository_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# nothing\n---\n")
    assert said(tmp_path) == ["SITE: no manifest here: refused, an empty repository would ask to remove everything"]


def test_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(VERSIONS)
    assert said(tmp_path) == ["SITE: no Cluster is declared here: there is nothing to reconcile"]


def test_one_file_is_judged_by_itself(tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text(VERSIONS.replace("spec: {}", "spec: {extends: base}"))
    (tmp_path / "c.yaml").write_text(CLUSTER + "  versions: a\n  files: {/etc/motd: {source: motd}}\n")
    (tmp_path / "motd").write_text("hello\n")
    (tmp_path / "bad.yaml").write_text("a: [")
    versions, cluster = validate_path(tmp_path / "v.yaml"), validate_path(tmp_path / "c.yaml")
    assert (versions.problems, versions.unchecked, versions.documents) == ((), ("Versions a",), {"Versions": 1})
    assert (cluster.problems, cluster.unchecked, cluster.nodes) == ((), ("Cluster c",), 1)
    assert cluster.desired is None


def test_links_among_manifests_are_said(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "l.yaml").symlink_to("c.yaml")
    said_of_link = "l.yaml:1:1: not a regular file (a link, a folder or a device): manifests are plain files"
    assert said(tmp_path) == [said_of_link]


def test_a_large_manifest_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("#" * (5 << 20))
    (problem,) = validate_path(tmp_path).problems
    assert (problem.code, problem.data["size"]) == ("manifest-file-too-large", 5 << 20)


def test_a_file_name_with_control_characters_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m\n.yaml").write_text("a: [")
    (text,) = said(tmp_path)
    assert text.startswith("a\\x1b[31m\\n.yaml:")
