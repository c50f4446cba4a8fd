"""The command line from outside: exit statuses, the nearest name, what is imported, what reaches a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.cli import COMMANDS

REPOSITORY = Path(__file__).parents[2]
SITE = """apiVersion: reconcile/v1
kind: Cluster
metadata: {name: lab}
spec:
  ssh: {user: root}
  nodes: {gpu01: {address: 127.0.0.1}}
"""


def call(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`reconcile ARGV`, with its output piped."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RECONCILE_", "PYTHONIOENCODING"))}
    return subprocess.run(
        [sys.executable, "-m", "reconciler", *argv],
        cwd=REPOSITORY,
        env={**kept, **environment},
        capture_output=True,
        encoding=environment.get("PYTHONIOENCODING", "utf-8"),
        timeout=60,
        check=False,
    )


@pytest.fixture
def repository(tmp_path: Path) -> str:
    """A repository with one cluster."""
    at = tmp_path / "site"
    at.mkdir()
    (at / "site.yaml").write_text(SITE)
    for argv in (("init", "-q"), ("add", "."), ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "one")):
        subprocess.run(("git", "-C", str(at), *argv), check=True)
    return str(at)


WRONG = [
    (["plam"], "No such command 'plam'. Did you mean 'plan'?"),
    (["valdate", "x"], "Did you mean 'validate'?"),
    (["frobnicate"], "There are: validate, schema"),
    (["snapshot", "tkae"], "Did you mean 'take'?"),
    (["state", "rebiuld"], "Did you mean 'rebuild'?"),
    (["plan", "--jsom"], "--json"),
    (["apply", "--targt", "x"], "--target"),
    (["--halp"], "--help"),
    (["status", "extra"], "unexpected extra argument"),
    (["plan", "--on"], "requires an argument"),
]


@pytest.mark.parametrize(("argv", "said"), WRONG, ids=[" ".join(argv) for argv, _ in WRONG])
def test_a_call_that_cannot_be_meant_exits_1_and_names_the_nearest(argv: list[str], said: str) -> None:
    done = call(*argv)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_call_under_json_is_an_object_too() -> None:
    done = call("plan", "--json", "--nope")
    assert done.returncode == 1
    found = json.loads(done.stdout)["error"]
    assert (found["reason"], found["transient"]) == ("Usage", False)
    assert "--nope" in found["message"]


@pytest.mark.parametrize("argv", [["--help"], ["-h"], [], ["--version"]])
def test_help_answers_without_the_heavy_libraries(argv: list[str]) -> None:
    heavy = ("fabric", "paramiko", "git", "pydantic", "deepdiff", "rich", "yaml", "ruamel.yaml")
    look = f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    program = f"import sys\nfrom reconciler.cli import run\nrun({argv!r})\n{look}"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_a_call_does_not_look_for_garbage_all_the_time(tmp_path: Path) -> None:
    """Python's own threshold has it look about a hundred times during a plan from recordings, for 15% of the CPU."""
    argv = ["plan", str(REPOSITORY / "manifests/lab-trio"), "--worktree", "--from", str(REPOSITORY / "snapshots/lab-trio")]
    program = (
        "import gc, os, sys\nfrom reconciler.cli import main\nphases = []\nos._exit = sys.exit\n"
        "gc.callbacks.append(lambda phase, about: phases.append(phase))\n"
        f"try:\n    main({argv!r})\nfinally:\n    print(phases.count('start'), file=sys.stderr)"
    )
    environment = {**os.environ, "RECONCILE_STATE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stderr.split()[-1]) <= 5


@pytest.mark.parametrize(("argv", "code"), [(["schema"], 0), (["plan", "--nope"], 1), (["schema", "--help"], 0)])
def test_the_process_is_not_taken_to_pieces_at_its_end(argv: list[str], code: int) -> None:
    """That would cost a quarter of a plan's CPU; everything that was said is written all the same, also into a pipe."""
    program = (
        f"import atexit\natexit.register(print, 'TAKEN TO PIECES', flush=True)\nfrom reconciler.cli import main\nmain({argv!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    as_told = call(*argv)
    assert (done.returncode, done.stdout, done.stderr) == (code, as_told.stdout, as_told.stderr)
    assert "TAKEN TO PIECES" not in done.stdout


def test_help_lists_every_command_with_its_line() -> None:
    done = call("--help")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    for name, (_, line) in COMMANDS.items():
        assert f"{name} {line}" in words


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    done = call(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: reconcile {name}")


ERRORS = [
    (["plan", "/nonexistent"], 1),
    (["apply", "/dev/null"], 1),
    (["history", "nope"], 1),
    (["snapshot", "show", "--", "--help"], 1),
    (["snapshot", "list"], 1),
    (["status", "--state-dir", "/dev/null"], 1),
]


@pytest.mark.parametrize(("argv", "code"), ERRORS, ids=[" ".join(argv) for argv, _ in ERRORS])
def test_an_error_is_one_sentence(argv: list[str], code: int, tmp_path: Path) -> None:
    done = call(*argv, RECONCILE_STATE_DIR=str(tmp_path))
    assert done.returncode == code
    assert "internal error" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize(
    "argv", [["history", "nope", "--json"], ["snapshot", "list", "--json"], ["plan", "/nonexistent", "--json"]]
)
def test_an_error_under_json_is_an_object_on_stdout(argv: list[str], tmp_path: Path) -> None:
    done = call(*argv, RECONCILE_STATE_DIR=str(tmp_path))
    found = json.loads(done.stdout)["error"]
    assert done.returncode == 1
    assert set(found) == {"reason", "message", "transient"}
    assert found["message"]


@pytest.mark.parametrize("value", ["0", "4000", "soon", "nan", "inf", "-5"])
def test_a_setting_that_cannot_be(value: str, tmp_path: Path) -> None:
    done = call("status", RECONCILE_STATE_DIR=str(tmp_path), RECONCILE_LEASE_TTL=value)
    assert done.returncode == 1
    assert f"RECONCILE_LEASE_TTL is {value}" in done.stderr


def test_the_lists_of_an_empty_state_directory(tmp_path: Path) -> None:
    for argv, said in ((["status"], "nothing is known yet"), (["history"], "nothing was applied yet")):
        done = call(*argv, "--state-dir", str(tmp_path / "none"))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(said)
    assert json.loads(call("history", "--json", "--state-dir", str(tmp_path)).stdout) == []
    assert json.loads(call("status", "--json", "--state-dir", str(tmp_path)).stdout)["nodes"] == {}
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_escape_reaches_a_pipe(repository: str, tmp_path: Path, environment: dict[str, str]) -> None:
    done = call("plan", repository, "--state-dir", str(tmp_path / "s"), **environment)
    assert done.returncode == 4
    assert "\x1b" not in done.stdout + done.stderr
    assert "1 node could not be observed" in done.stdout
    shown = call("status", "--state-dir", str(tmp_path / "s"), **environment)
    assert "\x1b" not in shown.stdout
    assert "not observed" in shown.stdout


WRONG_SELECTIONS = [
    (["--on", "gpu1"], "did you mean 'gpu01'?"),
    (["--on", "gpu[3-1]"], "is not a host list"),
    (["--target", "Hostnam"], "did you mean 'Hostname'?"),
    (["--target", "Hostname/gpu02"], "did you mean 'Hostname/gpu01'?"),
    (["--cluster", "labb"], "did you mean"),
    (["--commit", "nope"], "nope"),
]


@pytest.mark.parametrize(("argv", "said"), WRONG_SELECTIONS)
def test_a_selection_that_is_not_declared(repository: str, tmp_path: Path, argv: list[str], said: str) -> None:
    done = call("plan", repository, *argv, "--state-dir", str(tmp_path / "s"))
    assert done.returncode == 1
    assert said in done.stderr


def test_a_folder_outside_git_is_planned_and_not_applied(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(SITE)
    done = call("apply", str(tmp_path), "--state-dir", str(tmp_path / "s"))
    assert done.returncode == 1
    assert "commits only" in done.stderr


def test_a_saved_plan_takes_no_selection(repository: str, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    assert call("plan", repository, "--out", str(file), "--state-dir", str(tmp_path / "s")).returncode == 4
    done = call("apply", str(file), "--on", "gpu01", "--state-dir", str(tmp_path / "s"))
    assert done.returncode == 1
    assert "a saved plan says its own on" in done.stderr


def test_a_place_that_cannot_be_written(repository: str, tmp_path: Path) -> None:
    done = call("plan", repository, "--out", "/proc/nope/p.json", "--json", "--state-dir", str(tmp_path / "s"))
    assert done.returncode == 1
    assert "internal error" not in done.stderr
    assert json.loads(done.stdout)["error"]["reason"] == "ThisMachine"


def test_a_terminal_of_few_characters_is_sent_escapes(tmp_path: Path) -> None:
    done = call("history", "plän\U0001f600", "--state-dir", str(tmp_path), PYTHONIOENCODING="latin-1")
    assert done.returncode == 1
    assert "n\\U0001f600'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("argv", [["schema"], ["--help"], ["validate", "--help"]])
def test_a_reader_that_goes_is_told_nothing(argv: list[str]) -> None:
    command = [sys.executable, "-m", "reconciler", *argv]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


def test_a_fault_of_ours_is_told_without_its_traceback_unless_asked(tmp_path: Path) -> None:
    broken = "cli.COMMANDS['status'] = ('reconciler.errors:nothing', '')"
    program = f"import sys\nfrom reconciler import cli\n{broken}\nsys.exit(cli.run(['status', '--json']))"
    told = [
        subprocess.run(
            [sys.executable, "-c", program], cwd=REPOSITORY, env={**os.environ, **more}, capture_output=True, text=True, check=False
        )
        for more in ({}, {"RECONCILE_DEBUG": "1"})
    ]
    assert [done.returncode for done in told] == [1, 1]
    assert all(json.loads(done.stdout)["error"]["reason"] == "Internal" for done in told)
    assert ["Traceback" in done.stderr for done in told] == [False, True]
