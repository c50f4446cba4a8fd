"""make, CI, hooks, lanes and acceptance scripts: what is promised of each is there."""

from __future__ import annotations

import ast
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tools import check, lanes, train_env
from tools.sources import ROOT

TARGETS = {"demo", "demo-offline", "test", "test-deep", "check", "lab-up", "lab-down", "clean", "help"}
SCRIPTS = lanes.promises()


def make(*argv: str) -> subprocess.CompletedProcess[str]:
    """A make of its own, also where these tests were started by one."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(("make", *argv), cwd=ROOT, env=outside, capture_output=True, text=True, check=False)


def test_make_help_lists_every_target() -> None:
    assert {line.split()[1] for line in make("help").stdout.splitlines()} == TARGETS


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_make_knows_every_target(target: str) -> None:
    done = make("--dry-run", target)
    assert done.returncode == 0, done.stderr


def test_ci_is_executable_bash_and_reads_nothing() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(("bash", "-n", str(script)), check=True)
    text = script.read_text()
    assert "timeout --kill-after=60s 90m" in text
    assert "exec </dev/null" in text


def test_hooks_fetch_nothing() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert {repository["repo"] for repository in hooks["repos"]} == {"local"}
    assert {hook["language"] for repository in hooks["repos"] for hook in repository["hooks"]} == {"system"}


def test_an_unknown_lane_or_check_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert lanes.main(["quick"]) == 2
    assert "fast, train, lab, deep, acceptance" in capsys.readouterr().out
    assert check.main(["style"]) == 2
    assert "contracts" in capsys.readouterr().out


def test_the_lab_lane_says_why_it_cannot_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert lanes.missing_for_lab() != ""
    assert lanes.run_lane("lab", []) == lanes.RED
    assert "lane lab: cannot run here" in capsys.readouterr().out


def test_lanes_stop_at_the_first_red_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def lane(name: str, arguments: object) -> int:
        ran.append(name)
        return 1 if name == "lab" else 0

    monkeypatch.setattr(lanes, "run_lane", lane)
    monkeypatch.setattr(lanes, "coverage", lambda *argv: 0)
    assert lanes.main(["fast", "lab", "deep"]) == 1
    assert ran == ["fast", "lab"]
    assert lanes.main(["fast"]) == 0


def test_every_test_is_in_one_lane() -> None:
    """The three marks leave no combination out, and none is in two."""
    for marks in itertools.product((False, True), repeat=3):
        named = dict(zip(("lab", "deep", "train"), marks, strict=True))
        assert len([lane for lane, mark in lanes.MARKS.items() if eval(mark, named)]) == 1


def test_the_trainer_s_lane_runs_in_its_own_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], **_: object) -> SimpleNamespace:
        called.append(argv)
        return SimpleNamespace(returncode=3)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(train_env, "ensure", lambda: Path("/cache/env"))
    assert lanes.run_lane("train", ["-x"]) == 3
    assert called[0][0] == "/cache/env/bin/python"
    assert called[0][-2:] == ("tests/trainer", "-x")

    def none() -> Path:
        raise train_env.Failed("no room")

    monkeypatch.setattr(train_env, "ensure", none)
    assert lanes.run_lane("train", []) == lanes.RED
    assert "its environment cannot be made: no room" in capsys.readouterr().out


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_acceptance_script_says_what_it_proves_and_can_be_called(name: str) -> None:
    tree = ast.parse((ROOT / "acceptance" / f"{name}.py").read_text(encoding="utf-8"))
    docstring = ast.get_docstring(tree)
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":"))
    assert any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)
    done = subprocess.run(
        (sys.executable, "-c", f"import acceptance.{name}"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_acceptance_scripts_are_found() -> None:
    assert SCRIPTS


def test_a_run_leaves_nothing_that_git_would_take() -> None:
    """Every folder that make, the demo and the tests fill is ignored."""
    made = (
        ".venv/x",
        ".demo/x",
        ".coverage.host.1",
        ".mypy_cache/x",
        ".ruff_cache/x",
        ".pytest_cache/x",
        ".hypothesis/x",
        "build/x",
    )
    done = subprocess.run(("git", "check-ignore", *made), cwd=ROOT, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == set(made)


def test_manifests_of_the_demo_have_what_it_edits() -> None:
    """demo/site.py rewrites the lab's address and key, demo/run.py moves tmux: all three have to be there."""
    site = (ROOT / "manifests" / "lab-trio" / "site.yaml").read_text()
    assert all(text in site for text in ("10.88.0.", "/run/reconcile-lab/id_ed25519", "tmux: 3.2a-4.el9", "numactl: 2.0.19-3.el9"))
    assert Path(ROOT / "manifests" / "lab-trio" / "files" / "motd").is_file()
