"""The history of node states: a bare Git repository that changes only when a node did."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reconciler.apply import history
from reconciler.apply.history import History
from reconciler.errors import SourceError, Usage

ONE = {"gpu01": {"hostname": "gpu01"}, "gpu02": {"hostname": "gpu02"}}


@pytest.fixture
def kept(tmp_path: Path) -> History:
    return History(tmp_path / "state.git")


def git(kept: History, *argv: str) -> str:
    return subprocess.run(("git", "-C", str(kept._path), *argv), check=True, capture_output=True, text=True).stdout


def test_a_commit_only_for_what_differs(kept: History) -> None:
    first = kept.record("lab", ONE, "first", asked=True)
    assert kept.record("lab", ONE, "again", asked=True) is None
    second = kept.record("lab", {"gpu02": {"hostname": "new"}}, "second", asked=True)
    assert first != second
    entries = kept.entries()
    assert [(e.id, e.message, e.changed) for e in entries] == [
        (second, "second", ("lab/gpu02",)),
        (first, "first", ("lab/gpu01", "lab/gpu02")),
    ]
    assert git(kept, "rev-parse", "--is-bare-repository").strip() == "true"
    assert git(kept, "fsck", "--strict") == ""


def test_unasked_commits_of_one_minute_are_one(kept: History, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = kept.record("lab", {"a": {"n": 0}}, "asked", asked=True)
    kept.record("lab", {"a": {"n": 1}}, "apply p1", asked=False)
    kept.record("lab", {"b": {"n": 2}}, "apply p2", asked=False)
    assert [e.message for e in kept.entries()] == ["apply p2", "asked"]
    assert kept.show("latest", None) == {"lab/a": {"n": 1}, "lab/b": {"n": 2}}
    assert asked
    assert kept.show(asked, None) == {"lab/a": {"n": 0}}
    monkeypatch.setattr(history, "QUIET", -1.0)
    kept.record("lab", {"a": {"n": 3}}, "apply p3", asked=False)
    assert [e.message for e in kept.entries()] == ["apply p3", "apply p2", "asked"]


def test_one_node_or_all_at_a_commit(kept: History) -> None:
    first = kept.record("lab", ONE, "first", asked=True)
    kept.record("lab", {"gpu01": {"hostname": "new"}}, "second", asked=True)
    assert first
    assert kept.show("latest", "gpu01") == {"lab/gpu01": {"hostname": "new"}}
    assert kept.show(first[:8], "lab/gpu01") == {"lab/gpu01": {"hostname": "gpu01"}}
    assert set(kept.show(first, None)) == {"lab/gpu01", "lab/gpu02"}


BAD = [
    "-x",
    "--help",
    "--output=/tmp/x",
    "",
    " ",
    "nope",
    "0" * 40,
    "HEAD~9",
    "main:snapshots",
    "a..b",
    "\x00",
    "@{9}",
    ":/x",
    "é",
    "x" * 5000,
    "HEAD^{tree}",
]


@pytest.mark.parametrize("name", BAD)
def test_an_id_that_is_no_snapshot(kept: History, name: str) -> None:
    kept.record("lab", ONE, "first", asked=True)
    with pytest.raises(Usage, match="NoSuchSnapshot"):
        kept.show(name, None)


@pytest.mark.parametrize("node", ["gpu09", "lab", "", "../gpu01"])
def test_a_node_that_was_not_recorded(kept: History, node: str) -> None:
    kept.record("lab", ONE, "first", asked=True)
    with pytest.raises(Usage, match="NoSuchSnapshot"):
        kept.show("latest", node)


def test_nothing_recorded_yet(kept: History) -> None:
    for use in (kept.entries, lambda: kept.show("latest", None)):
        with pytest.raises(Usage, match="NoSnapshots"):
            use()
    kept.record("lab", {}, "nothing", asked=True)
    assert kept.entries() == []


def test_a_folder_that_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "state.git").mkdir()
    with pytest.raises(SourceError, match="Unreadable"):
        History(tmp_path / "state.git").entries()


def test_a_message_of_any_text_is_one_line_of_the_list(kept: History) -> None:
    kept.record("lab", ONE, "first line\nfrom 123\nM 100644 inline x\né\u2028", asked=True)
    assert [e.message for e in kept.entries()] == ["first line"]
