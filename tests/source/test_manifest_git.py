"""Manifests at a commit: work trees, subdirectories, bare repositories, and what there is not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reconciler.render.problems import problem_text
from reconciler.source import Loaded, gitcall, load_desired
from reconciler.source.git import GitTree, Located
from reconciler.source.gitobjects import ObjectUnreadable, summary
from reconciler.source.tree import Failure

CLUSTER = """apiVersion: reconcile/v1
kind: Cluster
metadata: {name: c}
spec:
  nodes: {n1: }
  files: {/etc/motd: {source: files/motd}}
"""


def git(at: Path, *arguments: str) -> str:
    """Run git as somebody, whatever this machine's configuration says."""
    who = {f"GIT_{role}_{what}": "a@example.net" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(["git", *arguments], cwd=at, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with one site in `sites/c` and two commits."""
    work = tmp_path / "work"
    site = work / "sites" / "c"
    (site / "files").mkdir(parents=True)
    (site / "files" / "motd").write_text("one\n")
    (site / "cluster.yaml").write_text(CLUSTER)
    (site / "link.yml").symlink_to("cluster.yaml")
    git(work, "init", "-q", "-b", "main")
    (site / "link.yml").unlink()
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "first")
    (site / "files" / "motd").write_text("two\n")
    git(work, "commit", "-q", "-a", "-m", "second: motd")
    return work


def motd(loaded: Loaded) -> bytes:
    """The content that n1 shall have."""
    assert loaded.problems == ()
    assert loaded.desired is not None
    (spec,) = [r.spec for r in loaded.desired.nodes["n1"].resources if str(r.id) == "File//etc/motd"]
    return bytes(getattr(spec, "content", b""))


def code(loaded: Loaded) -> str:
    """The code of the only problem."""
    (problem,) = loaded.problems
    assert problem_text(problem)
    return problem.code


def test_head_is_read_and_not_the_work_tree(work: Path) -> None:
    site = work / "sites" / "c"
    (site / "files" / "motd").write_text("three\n")
    (site / "new.yaml").write_text("not: read\n")
    (site / "notes.txt").write_text("not a manifest\n")
    (work / "elsewhere.yaml").write_text("not: below\n")
    loaded = load_desired(site)
    assert motd(loaded) == b"two\n"
    assert loaded.revision.commit == git(work, "rev-parse", "HEAD")
    assert (loaded.revision.summary, loaded.revision.dirty) == ("second: motd", False)
    assert loaded.uncommitted == ("sites/c/files/motd", "sites/c/new.yaml")
    (site / "new.yaml").unlink()
    on_disk = load_desired(site, worktree=True)
    assert motd(on_disk) == b"three\n"
    assert on_disk.revision.dirty
    assert on_disk.desired is not None
    assert loaded.desired is not None
    assert on_disk.desired.digest != loaded.desired.digest


def test_the_same_files_have_the_same_digest(work: Path) -> None:
    site = work / "sites" / "c"
    at_commit, on_disk = load_desired(site).desired, load_desired(site, worktree=True).desired
    assert at_commit is not None
    assert on_disk is not None
    assert at_commit.digest == on_disk.digest
    assert load_desired(site, worktree=True).revision.dirty is False


@pytest.mark.parametrize("name", ["HEAD~1", "v1", "main~1"])
def test_a_commit_by_name(work: Path, name: str) -> None:
    git(work, "tag", "v1", "HEAD~1")
    assert motd(load_desired(work / "sites" / "c", commit=name)) == b"one\n"


def test_a_bare_repository(work: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(work), "bare.git")
    bare = tmp_path / "bare.git"
    assert motd(load_desired(bare / "sites" / "c")) == b"two\n"
    assert code(load_desired(bare / "sites" / "c", worktree=True)) == "git-bare"
    assert code(load_desired(bare / "sites" / "d")) == "git-no-such-path"


def test_what_ci_checks_out(work: Path, tmp_path: Path) -> None:
    """One commit deep, on no branch, from a bare repository."""
    git(tmp_path, "clone", "-q", "--bare", str(work), "bare.git")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{tmp_path}/bare.git", "checkout")
    checkout = tmp_path / "checkout"
    newest = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "-q", "--detach")
    loaded = load_desired(checkout / "sites" / "c", commit=newest)
    assert (motd(loaded), loaded.revision.commit) == (b"two\n", newest)
    assert code(load_desired(checkout / "sites" / "c", commit=git(work, "rev-parse", "HEAD~1"))) == "git-no-such-commit"
    assert motd(load_desired(tmp_path / "bare.git" / "sites" / "c", commit=git(work, "rev-parse", "HEAD~1"))) == b"one\n"


def test_a_linked_work_tree(work: Path, tmp_path: Path) -> None:
    git(work, "worktree", "add", "-q", str(tmp_path / "other"), "HEAD~1")
    assert motd(load_desired(tmp_path / "other" / "sites" / "c")) == b"one\n"


def test_from_a_hook_of_another_repository(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q", "another")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another" / ".git"))
    assert motd(load_desired(work / "sites" / "c")) == b"two\n"


def test_what_there_is_not(work: Path, tmp_path: Path) -> None:
    site = work / "sites" / "c"
    near = load_desired(site, commit="mian")
    assert code(near) == "git-no-such-commit"
    assert near.problems[0].data["near"] == "main"
    assert code(load_desired(site, commit="0" * 40)) == "git-no-such-commit"
    assert code(load_desired(work / "sites" / "d")) == "git-no-such-path"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "c.yaml").write_text(CLUSTER.replace("  files: {/etc/motd: {source: files/motd}}\n", ""))
    assert code(load_desired(outside, commit="main")) == "git-not-a-repository"
    without = load_desired(outside)
    assert (without.problems, without.revision.commit) == ((), None)


@pytest.mark.parametrize("name", ["--output=/tmp/x", "-n", "", "a b", "$(id)", "HEAD:secret", "a\nb", "x" * 300])
def test_a_commit_name_is_never_an_option(work: Path, name: str) -> None:
    assert code(load_desired(work, commit=name)) == "git-no-such-commit"


def test_no_commit_yet(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "new")
    new = tmp_path / "new"
    (new / "c.yaml").write_text(CLUSTER.replace("  files: {/etc/motd: {source: files/motd}}\n", ""))
    assert code(load_desired(new)) == "git-no-commit-yet"
    on_disk = load_desired(new, worktree=True)
    assert on_disk.problems == ()
    assert (on_disk.revision.commit, on_disk.revision.dirty) == (None, True)


def test_a_broken_repository(work: Path) -> None:
    (work / ".git" / "HEAD").write_text("nonsense\n")
    assert code(load_desired(work)) == "git-unreadable"


def test_an_unreadable_head_is_not_an_empty_repository(work: Path) -> None:
    head = git(work, "rev-parse", "HEAD")
    (work / ".git" / "objects" / head[:2] / head[2:]).unlink()
    assert code(load_desired(work)) == "git-unreadable"


def test_a_repository_of_another_owner_is_not_read(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr(gitcall, "_KEPT", (*gitcall._KEPT, "GIT_TEST_ASSUME_DIFFERENT_OWNER"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    loaded = load_desired(work / "sites" / "c")
    assert code(loaded) == "git-unreadable"
    assert "dubious ownership" in problem_text(loaded.problems[0])


def test_a_name_that_git_cannot_judge(work: Path) -> None:
    loaded = load_desired(work / "sites" / "c", commit="HEAD@{5}")
    assert code(loaded) == "git-unreadable"


def test_links_and_large_files_of_a_commit(work: Path) -> None:
    site = work / "sites" / "c"
    (site / "files" / "link").symlink_to("/etc/shadow")
    (site / ".hidden.yaml").write_text("a: [")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "link")
    located = Located.around(site)
    assert located is not None
    opened = located.open(None)
    assert not hasattr(opened, "code")
    tree = getattr(opened, "tree", None)
    assert isinstance(tree, GitTree)
    assert tree.files() == ("cluster.yaml", "files/link", "files/motd")
    assert tree.read("files/link", 99) == Failure("not-regular")
    assert tree.read("files/none", 99) == Failure("no-such-file")
    assert tree.read("files/motd", 3) == Failure("file-too-large", size=4)
    assert tree.read("files/motd", 4) == b"two\n"
    tree.entries["gone"] = ("100644", "0" * 40, 1)
    with pytest.raises(ObjectUnreadable, match="missing object 0000"):
        tree.read("gone", 4)
    tree.objects.close()


ODD = {
    b"tree 1\n\nfirst\nsecond": "first",
    b"tree 1\nencoding latin-1\n\n\xe4h\n": "\u00e4h",
    b"tree 1\nencoding nonsense\n\n\xff\n": "\ufffd",
    b"tree 1\nencoding \xff\n\nx": "x",
    b"tree 1": "",
    b"": "",
}


@pytest.mark.parametrize("commit", ODD)
def test_a_summary_of_any_bytes(commit: bytes) -> None:
    assert summary(commit) == ODD[commit]


def test_looking_takes_no_lock_of_the_work_tree(tmp_path: Path) -> None:
    """A person who commits beside us must not be told that the index is locked: what git would refresh is left as it is."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
    (tmp_path / "site.yaml").write_text("a: 1\n")
    for words in (("init", "-q", "-b", "main"), ("add", "."), (*identity, "commit", "-qm", "one")):
        subprocess.run(("git", "-C", str(tmp_path), *words), check=True)
    index = tmp_path / ".git" / "index"
    os.utime(tmp_path / "site.yaml", (1, 1))  # the index remembers another time: a plain `git status` writes it anew
    before = index.read_bytes()
    load_desired(tmp_path)
    assert index.read_bytes() == before
