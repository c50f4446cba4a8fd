"""What a push does to the watched branch, in the pusher's terminal: taken whole or refused with every problem."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.source import git as source_git
from reconciler.source import incoming
from reconciler.source.git import Located
from tests.push.conftest import CLUSTER, Work

BROKEN = CLUSTER.replace("files: {", "fles: {").replace("{name: c}", "{name: c, no: 1}")


def test_a_good_push_says_what_it_declares(work: Work) -> None:
    assert work.install() == 0
    pushed = work.push()
    assert pushed.code == 0
    assert pushed.remote[0] == "valid: 1 Cluster, 2 nodes"
    assert "no controller listens" in pushed.remote[-2]
    assert pushed.remote[-1] == "the push is accepted; the controller takes it up when it runs"
    assert work.main() == work.git("rev-parse", "HEAD")


def test_a_broken_manifest_is_refused_with_every_place(hooked: Work) -> None:
    before = hooked.main()
    hooked.commit(site_yaml=BROKEN)
    pushed = hooked.push()
    assert pushed.code != 0
    assert pushed.remote == [
        "refused: 2 problems in the push to main; nothing was changed",
        "site.yaml:3:21: unknown key 'no'; there are: description, name",
        "site.yaml:6:3: unknown key 'fles'; did you mean 'files'?",
        "not checked until what they rest on is right: Cluster c",
    ]
    assert hooked.main() == before
    assert hooked.git("count-objects", at=hooked.bare).startswith("6 objects")  # nothing of the refused push is kept


Act = Callable[[Work], tuple[str, ...]]  # prepares, and gives the words of the push


def rewritten(work: Work) -> tuple[str, ...]:
    work.git("commit", "--quiet", "--amend", "--message", "other")
    return ("--force", "HEAD:main")


def deleted(work: Work) -> tuple[str, ...]:
    work.git("config", "receive.denyDeleteCurrent", "ignore", at=work.bare)  # git's own refusal would come first
    return (":main",)


def emptied(work: Work) -> tuple[str, ...]:
    (work.tree / "site.yaml").unlink()
    work.commit()
    return ("HEAD:main",)


def no_cluster(work: Work) -> tuple[str, ...]:
    work.commit(site_yaml="apiVersion: reconcile/v1\nkind: Versions\nmetadata: {name: v}\nspec: {python: 3.12}\n")
    return ("HEAD:main",)


def no_nodes(work: Work) -> tuple[str, ...]:
    work.commit(site_yaml=CLUSTER.replace('{"n[1-2]": {address: "10.0.0.[1-2]"}}', "{}"))
    return ("HEAD:main",)


def missing_file(work: Work) -> tuple[str, ...]:
    (work.tree / "files" / "motd").unlink()
    work.commit()
    return ("HEAD:main",)


def bad_and_tag(work: Work) -> tuple[str, ...]:
    work.commit(site_yaml=BROKEN)
    return ("HEAD:main", "HEAD:refs/tags/v1")


def link_out(work: Work) -> tuple[str, ...]:
    (work.tree / "site.yaml").unlink()
    (work.tree / "site.yaml").symlink_to("/etc/hostname")
    work.commit()
    return ("HEAD:main",)


REFUSED: list[tuple[Act, str]] = [
    (rewritten, "main: not a fast-forward: "),
    (deleted, "main: the branch that is reconciled is not deleted by a push"),
    (emptied, ".: no manifest here: refused, an empty repository would ask to remove everything"),
    (no_cluster, ".: no Cluster is declared here"),
    (no_nodes, "site.yaml:5:"),
    (missing_file, "site.yaml:6:"),
    (bad_and_tag, "site.yaml:3:21: unknown key 'no'"),
    (link_out, "site.yaml:1:1: not a regular file"),
]


@pytest.mark.parametrize(("act", "told"), REFUSED, ids=[act.__name__ for act, _ in REFUSED])
def test_what_is_refused_changes_nothing(hooked: Work, act: Act, told: str) -> None:
    before = hooked.git("for-each-ref", at=hooked.bare)
    pushed = hooked.push(*act(hooked))
    assert pushed.code != 0
    assert any(line.startswith(told) for line in pushed.remote), pushed.terminal
    assert hooked.git("for-each-ref", at=hooked.bare) == before


def test_a_rewrite_says_how_it_is_done_on_purpose_and_that_works(hooked: Work) -> None:
    words = rewritten(hooked)
    line = next(line for line in hooked.push(*words).remote if "not a fast-forward" in line)
    new = hooked.git("rev-parse", "HEAD")
    assert "git revert" in line
    assert hooked.push("HEAD:main-new").code == 0
    hooked.git(*line[line.index("git update-ref ") : line.index("; the controller")].split()[1:], at=hooked.bare)
    assert hooked.main() == new


@pytest.mark.parametrize("refs", [("HEAD:refs/heads/try",), ("HEAD:refs/tags/v1",), ("HEAD:refs/notes/x",)])
def test_other_refs_pass_untouched(hooked: Work, refs: tuple[str, ...]) -> None:
    before = hooked.main()
    hooked.commit(site_yaml=BROKEN)
    pushed = hooked.push(*refs)
    assert (pushed.code, pushed.remote) == (0, [])
    assert hooked.push("--force", "HEAD~1:" + refs[0].partition(":")[2]).code == 0
    assert hooked.push("--delete", refs[0].partition(":")[2]).code == 0
    assert hooked.main() == before


def test_replaced_objects_are_not_what_is_judged(hooked: Work) -> None:
    """refs/replace may be pushed by anybody: it must not show the judge another commit than the controller gets."""
    good = hooked.git("rev-parse", "HEAD")
    bad = hooked.commit(site_yaml=BROKEN)
    hooked.git("replace", bad, good)
    assert hooked.push(f"refs/replace/{bad}:refs/replace/{bad}").code == 0
    hooked.git("replace", "--delete", bad)
    assert hooked.git("for-each-ref", "refs/replace", at=hooked.bare) != ""
    pushed = hooked.push(f"{bad}:refs/heads/main")
    assert pushed.code != 0
    assert "refused: 2 problems" in pushed.terminal


def test_a_large_push_is_refused_by_its_size(work: Work) -> None:
    assert work.install("--max-push", "1") == 0
    (work.tree / "model.bin").write_bytes(os.urandom(2 << 20))
    work.commit()
    pushed = work.push()
    assert pushed.code != 0
    assert any("bytes, at most 1048576 are taken" in line for line in pushed.remote), pushed.terminal
    assert work.main() == ""


def test_files_that_are_too_many_are_refused_before_they_are_read(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_git, "MOST_FILES", 2)
    located = Located.around(work.tree)
    assert located is not None
    opened = located.open(None)
    assert getattr(opened, "code", "") == "git-too-many-files"


def test_manifests_in_a_folder(work: Work) -> None:
    assert work.install("--below", "sites/c") == 0
    assert "has no 'sites/c'" in work.push().terminal
    work.git("mv", "-k", "site.yaml", "known_hosts", "files", ".")
    work.commit(sites__c__site_yaml=CLUSTER, sites__c__files__motd="x\n", sites__c__known_hosts="", site_yaml=BROKEN)
    assert work.push().code == 0


@pytest.mark.parametrize("line", ["", "a b refs/heads/main", f"{'0' * 40} {'1' * 40} main", f"{'0' * 40} {'1' * 39} refs/heads/x"])
def test_what_git_does_not_say_is_refused(line: str) -> None:
    with pytest.raises(Exception, match="NotAHook"):
        incoming.updates([line])


def test_the_hook_survives_its_own_failure_with_words(hooked: Work, tmp_path: Path) -> None:
    """An object that is missing, or an environment that is wrong: the push is refused, and nobody sees a traceback."""
    hooked.git("config", "core.repositoryFormatVersion", "99", at=hooked.bare)
    hooked.commit()
    pushed = hooked.push()
    assert pushed.code != 0
    assert "Traceback" not in pushed.terminal
