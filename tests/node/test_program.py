"""The loop: nothing that arrives ends it, and the bundle runs on every Python that a node may have."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.desired import DesiredNode, SshAccess
from reconciler.node import main
from reconciler.transport import base, program
from reconciler.transport.local import LocalTransport
from tests.node.conftest import Asked, Systemctl

OPERATIONS = ("probe", "lease", "renew", "release", "begin", "wait", "settle", "records", "nonsense")
FIELDS = ("facts", "holder", "plan", "ttl", "token", "step", "seconds", "steps", "action", "resources", "inventory", "title", "all")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
# never a command: `do` is anything but a name of a part, or the part lacks what it needs
PART = st.fixed_dictionaries({}, optional={"do": st.sampled_from(["read", "stat", "run", "x"]), "path": JSON, "limit": JSON})
REQUEST = st.fixed_dictionaries(
    {"id": JSON, "op": st.sampled_from(OPERATIONS)},
    optional={**dict.fromkeys(FIELDS, JSON), "facts": JSON | st.dictionaries(st.text(max_size=3), st.lists(PART, max_size=2))},
)
FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(line=st.binary(max_size=200) | JSON.map(lambda j: json.dumps(j).encode()) | st.just(b"[" * 100_000))
def test_no_line_ends_the_program(ask: Asked, systemctl: Systemctl, line: bytes) -> None:
    ask.answers.clear()
    ask.program.handle(line)
    assert [set(a) for a in ask.answers] == [{"id", "refused", "data"}]


@FUZZ
@given(request=REQUEST)
def test_no_request_ends_the_program(ask: Asked, systemctl: Systemctl, request: dict[str, Any]) -> None:
    ask.answers.clear()
    ask.program.handle(json.dumps(request).encode())
    ask.program.look_at(list(ask.program.waiters))
    assert len(ask.answers) + len(ask.program.waiters) >= 1
    assert all(set(a) in ({"id", "ok"}, {"id", "refused", "data"}) for a in ask.answers)
    ask.program.waiters.clear()


def test_an_answer_that_is_too_long_is_refused_and_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []

    def write(_: int, data: bytes) -> int:
        sent.append(data)
        return len(data)

    monkeypatch.setattr(main, "ANSWER_LIMIT", 1000)
    monkeypatch.setattr(os, "write", write)
    main._send({"id": 4, "ok": {"out": "".join(map(str, range(5000)))}})
    answer = base.parse_answer(sent[0])
    assert (answer["id"], answer["refused"], answer["data"]["limit"]) == (4, "AnswerTooLong", 1000)


def test_the_limits_of_both_sides_are_the_same() -> None:
    from reconciler.transport import channel

    assert main.ANSWER_LIMIT <= base.LINE_LIMIT
    assert channel.REQUEST_LIMIT == main.REQUEST_LIMIT
    assert base.PROTOCOL == main.PROTOCOL
    assert base.HELLO.decode().strip() == main.HELLO


def interpreters() -> list[str]:
    """Python 3.6 and whatever else is installed here beside the one that runs the tests."""
    found = [str(p) for p in sorted(Path("/root/.pyenv/versions").glob("3.*/bin/python3"))]
    return [sys.executable, *found]


@pytest.mark.parametrize("python", interpreters())
def test_the_bundle_runs(python: str) -> None:
    transport = LocalTransport(python)
    channel = transport.open(DesiredNode("localhost", SshAccess("localhost"), ()), 20)
    version = subprocess.run(
        (python, "-c", "import platform;print(platform.python_version())"), capture_output=True, text=True, check=False
    )
    assert channel.hello.python == version.stdout.strip()
    parts = [
        {"do": "run", "argv": ["printf", r"\377"], "deadline": 5},
        {"do": "read", "path": "/proc/version", "limit": 1000},
        {"do": "stat", "path": "/etc", "owner": "root", "group": "root"},
        {"do": "run", "argv": ["sleep", "9"], "deadline": 0.1},
    ]
    ran, text, etc, slept = channel.request("probe", 20, facts={"k": parts})["facts"]["k"]
    assert (ran["out64"], text["out"][:5], json.loads(etc["out"])["type"], slept["error"]) == (
        "/w==",
        "Linux",
        "directory",
        "deadline",
    )
    channel.close()
    transport.close()


def test_vermin_agrees_that_it_is_python_3_6() -> None:
    node = Path(main.__file__).parent
    argv = (sys.executable, "-c", "from vermin.main import main; main()", "--no-tips", "-t=3.6-", str(node))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "Minimum required versions: 3.6" in done.stdout


@pytest.mark.parametrize(
    "sent", [b"", b"12", b"100\nabc", b"5\nabcde"], ids=["nothing", "half-a-length", "half-a-program", "no-program"]
)
def test_a_start_that_is_cut_off_ends_the_process(sent: bytes) -> None:
    """Else every lost connection would leave a process on the node, spinning."""
    began = time.monotonic()
    done = subprocess.run(program.argv(sys.executable), input=sent, capture_output=True, timeout=20, check=False)
    assert done.returncode != 0
    assert time.monotonic() - began < 10


def test_the_end_of_input_ends_the_program() -> None:
    done = subprocess.run(program.argv(sys.executable), input=program.preamble(), capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert base.parse_hello(done.stdout.strip()).uid == 0


def test_requests_in_pieces_and_several_at_once() -> None:
    argv = program.argv(sys.executable)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin
        assert process.stdout
        lines = b"".join(b'{"id":%d,"op":"probe","facts":{}}\n' % i for i in range(3))
        process.stdin.write(program.preamble())
        process.stdout.read(1)  # it has read the program
        for i in range(0, len(lines), 7):
            process.stdin.write(lines[i : i + 7])
        process.stdin.close()
        answers = process.stdout.read().splitlines()[1:]
    assert [(a["id"], a["ok"]["facts"]) for a in map(base.parse_answer, answers)] == [(i, {}) for i in range(3)]


def test_a_request_over_the_limit_ends_the_program() -> None:
    sent = program.preamble() + b"x" * (main.REQUEST_LIMIT + (1 << 17))
    done = subprocess.run(program.argv(sys.executable), input=sent, capture_output=True, timeout=30, check=False)
    assert done.returncode == 1


def test_a_command_does_not_outlive_the_one_who_asked(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    part = {"do": "run", "argv": ["sh", "-c", f"echo $$ > {pid}; exec sleep 61"], "deadline": 60}
    with subprocess.Popen(program.argv(sys.executable), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin
        process.stdin.write(program.preamble() + json.dumps({"id": 1, "op": "probe", "facts": {"k": [part]}}).encode() + b"\n")
        until = time.monotonic() + 20
        while not (pid.exists() and pid.read_text().endswith("\n")):
            assert time.monotonic() < until
            time.sleep(0.01)
        command = os.pidfd_open(int(pid.read_text()))
        process.stdin.close()
        assert process.wait(20) == 0
        assert select.select([command], [], [], 5)[0]
        os.close(command)
