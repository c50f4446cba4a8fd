"""What people say to a controller where none runs: it is kept for the next one, or said to be impossible; and wrong settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.apply import journal
from tests.cli.conftest import Run

WRONG = [
    (("suspend", "--reason", "r", "--until", "2h"), 1, "say one of --on, --all"),
    (("suspend", "--all", "--on", "gpu01", "--reason", "r", "--until", "2h"), 1, "say one of --on, --all"),
    (("suspend", "--all", "--reason", "r", "--until", "soon"), 1, "--until is soon; allowed: a number with a unit"),
    (("suspend", "--all", "--reason", " ", "--until", "2h"), 1, "a suspension needs"),
    (("suspend", "--all", "--reason", "r", "--until", "2001-01-01"), 1, "a suspension needs"),
    (("approve", "abc"), 1, "nothing with the name 'abc' waits for approval (none)"),
    (("wait", "--for", "Ready"), 1, "no controller listens at "),
    (("wait", "--for", "Ready", "--timeout", "5"), 1, "--timeout is 5; allowed: a number with a unit"),
    (("events", "--follow"), 1, "no controller listens at "),
    (("status", "--follow", "abc"), 1, "no controller listens at "),
    (("status", "--follow", "abc", "--watch"), 1, "--watch and --follow cannot be said together"),
    (("controller",), 1, "no repository: say `--repository"),
    (("controller", "--repository", "-x", "--interval", "5"), 1, "interval: '5' is not a number with a unit"),
    (("controller", "--config", "/none/such"), 1, "/none/such cannot be read"),
]


@pytest.mark.parametrize(("argv", "code", "said"), WRONG, ids=[" ".join(case[0]) for case in WRONG])
def test_what_cannot_be_meant_is_said(run: Run, argv: tuple[str, ...], code: int, said: str) -> None:
    found, stdout, stderr = run(*argv)
    assert (found, said in stderr, "Traceback" in stderr) == (code, True, False), stderr
    assert stdout == ""


def test_that_no_plan_waits_is_said(run: Run) -> None:
    assert run("approve") == (0, "no plan waits for approval\n", "")
    assert json.loads(run("approve", "--json")[1]) == {"plan": None, "by": ""}


def test_a_suspension_is_kept_for_the_next_controller(run: Run, tmp_path: Path) -> None:
    code, stdout, _ = run("suspend", "--on", "gpu[01-02]", "--reason", "disks", "--until", "2h", "--json")
    assert (code, json.loads(stdout)["reason"]) == (0, "NowSuspended")
    assert run("resume", "--all")[0] == 0
    records = journal.read(tmp_path / "controller" / "journal.jsonl")
    assert [(r["type"], r["scope"]) for r in records] == [("suspended", ["gpu01", "gpu02"]), ("resumed", [])]
    shown = run("events", "--json")[1].splitlines()
    assert [json.loads(line)["type"] for line in shown] == ["suspended", "resumed"]
    assert json.loads(run("status", "--json")[1])["controller"] == {"running": False}
