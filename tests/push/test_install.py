"""Hooks: installed twice, foreign ones left, removed; the repository that is none; what calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler import cli
from tests.push.conftest import Work

Capture = pytest.CaptureFixture[str]


def states(work: Work, capsys: Capture) -> tuple[int, dict[str, str]]:
    capsys.readouterr()
    code = cli.run(["hook", "status", str(work.bare), "--json"])
    return code, {name: hook["state"] for name, hook in json.loads(capsys.readouterr().out)["hooks"].items()}


def test_twice_is_once(work: Work, capsys: Capture) -> None:
    assert states(work, capsys) == (2, {"pre-receive": "absent", "post-receive": "absent"})
    assert work.install() == 0
    first = {path.name: path.stat().st_mtime_ns for path in (work.bare / "hooks").iterdir()}
    capsys.readouterr()
    assert work.install() == 0
    assert "there already" in capsys.readouterr().out
    assert {path.name: path.stat().st_mtime_ns for path in (work.bare / "hooks").iterdir()} == first
    assert states(work, capsys) == (0, {"pre-receive": "current", "post-receive": "current"})
    assert work.install("--max-push", "7") == 0
    assert "replaced by this installation's" in capsys.readouterr().out
    assert "--max-push 7" in (work.bare / "hooks" / "pre-receive").read_text()


def test_a_hook_is_three_lines_that_call_this_installation(hooked: Work) -> None:
    shebang, mark, call = (hooked.bare / "hooks" / "post-receive").read_text().splitlines()
    assert (shebang, mark[:1]) == ("#!/bin/sh", "#")
    assert " -P -m reconciler hook post-receive --ref refs/heads/main --state-dir " in call


def test_a_foreign_hook_is_left_and_told_how_to_chain(work: Work, capsys: Capture) -> None:
    foreign = work.bare / "hooks" / "pre-receive"
    foreign.write_text("#!/bin/sh\ngrep -q refs/heads/ && echo foreign was asked\n")
    foreign.chmod(0o755)
    assert work.install() == 1
    told = capsys.readouterr().err
    assert "is not ours, and nothing was changed" in told
    assert not (work.bare / "hooks" / "post-receive").exists()
    lines = [line.strip() for line in told.splitlines() if line.startswith("  ")]
    foreign.rename(foreign.with_name("pre-receive.first"))
    foreign.write_text("\n".join(lines) + "\n")
    foreign.chmod(0o755)
    pushed = work.push()
    assert (pushed.code, pushed.remote[:2]) == (0, ["foreign was asked", "valid: 1 Cluster, 2 nodes"])
    assert states(work, capsys)[1]["pre-receive"] == "foreign"
    assert cli.run(["hook", "uninstall", str(work.bare)]) == 0
    assert foreign.exists()


def test_uninstall(hooked: Work, capsys: Capture) -> None:
    assert cli.run(["hook", "uninstall", str(hooked.bare)]) == 0
    assert [path for path in (hooked.bare / "hooks").iterdir() if path.suffix != ".sample"] == []
    hooked.commit(site_yaml="broken")
    assert hooked.push().remote == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere",), "nowhere does not exist"),
        (("work",), "it has a work tree"),
        (("keys",), "not a git repository"),
        (("site.git", "--ref", "main"), "main is not the full name of a branch"),
        (("site.git", "--below", "../x"), "not a folder inside the repository"),
        (("site.git", "--signed", "strict"), "nobody could sign"),
        (("site.git", "--signed", "head", "--gpg-keyring", "nowhere"), "nowhere cannot be read"),
        (("site.git", "--signed", "often"), "'often' is not one of"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "keys").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cli.run(["hook", "install", *words, "--state-dir", "s"]) == 1
    assert told in capsys.readouterr().err
    assert not (work.bare / "hooks" / "pre-receive").exists()


def test_hooks_elsewhere(work: Work, tmp_path: Path) -> None:
    (tmp_path / "hooks").mkdir()
    work.git("config", "core.hooksPath", str(tmp_path / "hooks"), at=work.bare)
    assert work.install() == 0
    assert sorted(path.name for path in (tmp_path / "hooks").iterdir()) == ["post-receive", "pre-receive"]
    assert work.push().remote[0] == "valid: 1 Cluster, 2 nodes"
