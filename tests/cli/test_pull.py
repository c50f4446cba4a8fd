"""A node that pulls: what concerns it alone, and a revision that is not good changes nothing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.commands import pull as pull_command
from reconciler.model.desired import DesiredNode, GpuDriverSpec, HostnameSpec, Origin, Resource, ResourceId, SshAccess
from reconciler.plan.local import local
from tests.cli.conftest import MANIFEST, Run
from tests.nodes.site import Site

Commit = Callable[..., Path]
Pull = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pull(run: Run, site: Site, monkeypatch: pytest.MonkeyPatch) -> Pull:
    """`reconcile pull` as gpu01."""
    monkeypatch.setattr(pull_command, "LocalTransport", lambda: site)
    return lambda *words: run("pull", "@", "--node", "gpu01", *words)


def motd(site: Site, name: str = "gpu01") -> str:
    path = site.root / name / "etc/motd"
    return path.read_text() if path.exists() else ""


def test_this_node_and_no_other(pull: Pull, site: Site, git: Commit) -> None:
    code, out, _ = pull()
    assert (code, out.splitlines()[-1]) == (0, "  gpu01  converged, 1 change")
    assert (motd(site), motd(site, "gpu02")) == ("hi\n", "")
    assert pull()[1].splitlines()[-1] == "  gpu01  unchanged"
    git(motd="new\n")
    assert pull()[0] == 0
    assert motd(site) == "new\n"


def broken(git: Commit) -> str:
    git(site_yaml=MANIFEST.replace("files:", "fles:"))
    return "site.yaml:7:3: unknown key 'fles'; did you mean 'files'?"


def emptied(git: Commit) -> str:
    (git() / "site.yaml").unlink()
    git()
    return "no manifest here"


def rewritten(git: Commit) -> str:
    at = git(motd="other\n")
    identity = ("-c", "user.name=t", "-c", "user.email=t@t")
    for words in (("checkout", "-q", "--orphan", "x"), (*identity, "commit", "-qm", "x"), ("branch", "-qM", "main")):
        subprocess.run(("git", "-C", str(at), *words), check=True)
    return "history was rewritten; to take it all the same: --accept "


def gone(git: Commit) -> str:
    shutil.rmtree(git() / ".git")
    return "cannot be read: fatal:"


def no_branch(git: Commit) -> str:
    subprocess.run(("git", "-C", str(git()), "branch", "-qM", "other"), check=True)
    return " has no refs/heads/main any more"


def emptied_repository(git: Commit) -> str:
    at = git()
    shutil.rmtree(at / ".git")
    subprocess.run(("git", "-C", str(at), "init", "-q", "-b", "main"), check=True)
    return " has no refs/heads/main any more"


BAD = (emptied_repository, broken, emptied, rewritten, gone, no_branch)


@pytest.mark.parametrize("spoil", BAD, ids=[f.__name__ for f in BAD])
def test_what_is_not_good_changes_nothing_and_drift_is_healed_all_the_same(
    pull: Pull, site: Site, git: Commit, spoil: Callable[[Commit], str]
) -> None:
    assert pull()[0] == 0
    (site.root / "gpu01/etc/motd").write_text("by hand\n")
    told = spoil(git)
    code, _, err = pull()
    assert (code, motd(site)) == (1, "hi\n")
    assert told in err
    assert "stays in force" in err


def test_a_rewrite_that_is_accepted(pull: Pull, site: Site, git: Commit) -> None:
    assert pull()[0] == 0
    rewritten(git)
    new = subprocess.run(("git", "-C", str(git()), "rev-parse", "HEAD"), check=True, capture_output=True, text=True).stdout.strip()
    assert pull("--accept", "0" * 12)[0] == 1
    assert (pull("--accept", new[:12])[0], motd(site)) == (0, "other\n")


def test_signatures_are_asked_for(pull: Pull, tmp_path: Path) -> None:
    (tmp_path / "allowed").write_text("")
    code, _, err = pull("--signed", "head", "--allowed-signers", str(tmp_path / "allowed"))
    assert code == 1
    assert "is not signed ('a commit')" in err
    assert "has no good revision, and none was taken before" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--node", "gpu1"), "no node of cluster lab is named 'gpu1'; did you mean 'gpu01'?"),
        (("--ref", "main"), "main is not the full name of a branch"),
        (("--below", "/etc"), "/etc is not a folder inside the repository"),
        (("--cluster", "lba"), "no Cluster is named 'lba'; did you mean 'lab'?"),
        (("--signed", "head"), "nobody could sign"),
    ],
)
def test_a_call_that_cannot_be_meant(pull: Pull, words: tuple[str, ...], told: str) -> None:
    code, _, err = pull(*words)
    assert code == 1
    assert told in err


def test_what_needs_the_others_is_left_out() -> None:
    driver = Resource(ResourceId("GpuDriver", "nvidia"), GpuDriverSpec("580.95.05", ()), Origin("site.yaml"))
    name = Resource(ResourceId("Hostname", "gpu01"), HostnameSpec("gpu01"), Origin("site.yaml"))
    node = DesiredNode("gpu01", SshAccess("10.0.0.1"), (driver, name))
    assert local(node) == ("Hostname/gpu01",)
    assert local(node, ("Hostname",)) == ()


def test_policy_holds_for_it_too(pull: Pull, site: Site, git: Commit) -> None:
    git(site_yaml=MANIFEST + "  policy: {default: observe}\n")
    code, out, _ = pull()
    assert (code, motd(site)) == (2, "")
    assert "its policy is observe" in out
