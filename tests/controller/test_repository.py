"""A repository behind a URL: what a fetch that was cut left behind is never taken for what was pushed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.controller.repository import Repository
from reconciler.source import load_desired

SITE = """apiVersion: reconcile/v1
kind: Cluster
metadata: {name: c}
spec:
  nodes: {n1: {address: 10.0.0.1}}
  ssh: {knownHosts: known_hosts}
  files: {/etc/motd: {source: files/motd}}
"""
FILES = {"site.yaml": SITE, "files/motd": "one\n", "known_hosts": "10.0.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI\n"}
OBJECTS = 6  # commit, two trees, three files
MAIN = "refs/heads/main"


def git(at: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
    return subprocess.run(("git", *identity, "-C", str(at), *words), check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    found = tmp_path / "origin"
    for name, text in FILES.items():
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text(text)
    git(found, "init", "--quiet", "--initial-branch=main")
    git(found, "add", "--all")
    git(found, "commit", "--quiet", "--message", "x")
    return found


def loose(repository: Path) -> list[Path]:
    return sorted(p for p in (repository / ".git" / "objects").glob("??/*"))


@pytest.mark.parametrize("lost", range(OBJECTS))
def test_a_fetch_that_was_cut_is_done_again(origin: Path, tmp_path: Path, lost: int) -> None:
    mirror = tmp_path / "mirror.git"
    git(tmp_path, "init", "--quiet", "--bare", str(mirror))
    objects = loose(origin)
    assert len(objects) == OBJECTS
    for path in (*objects[:lost], *objects[lost + 1 :]):
        target = mirror / "objects" / path.parent.name / path.name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    repository = Repository(f"file://{origin}", MAIN, mirror)
    head = repository.look(None)
    assert head.commit == git(origin, "rev-parse", "HEAD")
    assert load_desired(repository.manifests, commit=head.commit).desired is not None


@pytest.mark.parametrize("lost", range(OBJECTS))
def test_a_repository_that_lacks_an_object_is_unreadable_and_its_manifests_are_not_blamed(origin: Path, lost: int) -> None:
    commit = git(origin, "rev-parse", "HEAD")
    loose(origin)[lost].unlink()
    assert [p.code for p in load_desired(origin, commit=commit).problems] in (["git-unreadable"], ["git-no-such-commit"])


def test_what_git_says_first_is_told_and_not_its_advice(tmp_path: Path) -> None:
    head = Repository(f"file://{tmp_path}/nowhere", MAIN, tmp_path / "mirror.git").look(None)
    assert (head.commit, head.reason) == (None, "RepositoryUnread")
    assert "does not appear to be a git repository" in dict(head.data)["detail"]


def test_manifests_below_a_folder(origin: Path, tmp_path: Path) -> None:
    (origin / "sites").mkdir()
    for name in ("site.yaml", "files", "known_hosts"):
        git(origin, "mv", name, "sites/")
    git(origin, "commit", "--quiet", "--message", "moved")
    repository = Repository(str(origin), MAIN, tmp_path / "mirror.git", below="sites")
    loaded = load_desired(repository.manifests, commit=repository.look(None).commit)
    assert loaded.documents == {"Cluster": 1}
