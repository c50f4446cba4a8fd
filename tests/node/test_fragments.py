"""Fragments: parts of the program that come with their probe, each in a process of its own."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reconciler.facts.live import About, LiveFact
from reconciler.facts.raw import fragment
from reconciler.model.desired import DesiredNode, SshAccess
from reconciler.model.fact import Ask, Probe, Raw, Run, Unknown, Value
from reconciler.node import probe, work
from reconciler.node.fragments import take, tree
from reconciler.observe import ask
from reconciler.transport import program
from reconciler.transport.local import LocalTransport

NODE = DesiredNode("here", SshAccess("localhost"), ())


def asked(*parts: Ask | Run) -> tuple[Raw, ...]:
    """What a real program answers, started as on a node."""
    transport = LocalTransport()
    channel = transport.open(NODE, 20)
    try:
        facts, _ = ask(channel, (Probe("k", parts),))
    finally:
        channel.close()
        transport.close()
    return facts.readings["k"].raws


def test_a_fragment_travels_with_its_probe(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").symlink_to("a")
    arguments = {"files": [f"{tmp_path}/*", f"{tmp_path}/none"], "links": [f"{tmp_path}/*"], "limit": 100}
    (raw,) = asked(Ask("tree", json.dumps(arguments)))
    found = fragment(raw)
    assert found == Value(
        {
            "files": {f"{tmp_path}/a": "one\n", f"{tmp_path}/b": "one\n"},
            "links": {f"{tmp_path}/a": {"error": "io"}, f"{tmp_path}/b": "a"},
        }
    )
    assert raw.source == "fragment tree"


def test_what_cannot_be_read_says_so_and_loses_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "large").write_text("x" * 100)
    found = tree.look({"files": [f"{tmp_path}/*"], "limit": 10})["files"]
    assert found == {f"{tmp_path}/directory": {"error": "io"}, f"{tmp_path}/large": "x" * 10}


def test_wrong_arguments_are_that_parts_failure_alone() -> None:
    broken, whole = asked(Ask("tree", '{"files": ["/proc/version"]}'), Run(("echo", "a")))
    assert fragment(broken) == Unknown("FragmentFailed", "KeyError: 'limit'")
    assert whole.out == b"a\n"


def job(function: Any, deadline: float = 10.0) -> dict[str, Any]:
    return work.run_all([{"function": function, "deadline": deadline}])[0]


def test_a_function_that_hangs_is_ended_and_one_that_dies_says_how() -> None:
    began = time.monotonic()
    assert job(lambda: time.sleep(60), 0.3)["error"] == "deadline"
    assert time.monotonic() - began < 3
    killed = job(lambda: os.kill(os.getpid(), 9))
    assert (killed["status"], killed["error"], killed["out"]) == (-9, "", b"")
    failed = job(lambda: 1 / 0)
    assert (failed["status"], failed["err"]) == (1, b"ZeroDivisionError: division by zero")
    assert job(lambda: sys.exit(0))["status"] == 1  # leaving is no answer


def test_a_function_cannot_reach_the_channel_or_read_requests() -> None:
    def mischief() -> str:
        os.write(1, b"")
        return os.read(0, 10).decode() + "x" * 300_000

    assert json.loads(job(mischief)["out"]) == "x" * 300_000


def test_the_processor_time_of_each_part_is_its_own() -> None:
    def busy() -> int:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        return 1

    idle, at_work, command = work.run_all(
        [
            {"function": lambda: time.sleep(0.2), "deadline": 10},
            {"function": busy, "deadline": 10},
            {"argv": [sys.executable, "-S", "-c", "import time\nwhile time.process_time() < 0.2: pass"], "deadline": 10},
        ]
    )
    assert idle["cpu"] < 100
    assert at_work["cpu"] >= 190
    assert command["cpu"] >= 190


def test_a_fragment_that_is_there_is_not_loaded_again() -> None:
    take({"tree": "not even base64"})


def test_one_that_does_not_load_is_refused_and_leaves_nothing() -> None:
    with pytest.raises(SyntaxError):
        take({"wrong": _packed("def look(:")})
    assert "reconciler.node.fragments.wrong" not in sys.modules


def _packed(source: str) -> str:
    import base64
    import zlib

    return base64.b64encode(zlib.compress(source.encode())).decode()


def test_every_fragment_is_small_and_has_its_function() -> None:
    folder = Path(program.__file__).parents[1] / "node" / "fragments"
    for file in folder.glob("[a-z]*.py"):
        assert ("def look(" in file.read_text()) != ("def run(" in file.read_text()), file  # it looks or it acts
        assert len(program.fragment(file.stem)) < 6000, file


def test_a_fact_that_was_not_asked_is_unknown() -> None:
    fact = LiveFact("x", lambda about: (Run(("true",)),), lambda raws: Value(len(raws)))
    assert fact.read(None) == Unknown("NotAsked")
    assert fact.probe(About("n")) == Probe("x", (Run(("true",)),))


MADE = {
    "well": "import os\ndef look(arguments):\n    return [arguments, os.getpid()]\n",
    "wrong": "def look(arguments):\n    return 1 / 0\n",
    "stuck": "import time\ndef look(arguments):\n    time.sleep(60)\n",
    "dead": "import os\ndef look(arguments):\n    os.kill(os.getpid(), 9)\n",
    "leaving": "import sys\ndef look(arguments):\n    sys.exit(0)\n",
    "no-json": "def look(arguments):\n    return {1, 2}\n",
}


def quick(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[dict[str, Any]]:
    """What fragments answer that share a process; only one that hangs is waited for at all."""
    if "stuck" in names:
        monkeypatch.setattr(probe, "TOGETHER", 1.0)
    take({name: _packed(source) for name, source in MADE.items()})
    deadlines = {"stuck": 1.0}
    parts = [
        {"do": "ask", "fragment": name, "arguments": {}, "deadline": deadlines.get(name, 30.0), "quick": True} for name in names
    ]
    try:
        return probe.probe({"k": parts})["k"]
    finally:
        for name in MADE:
            del sys.modules[f"reconciler.node.fragments.{name}"]


def test_quick_fragments_share_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = quick(monkeypatch, "well", "well")
    assert json.loads(first["out"]) == json.loads(second["out"])
    assert json.loads(first["out"])[1] != os.getpid()
    assert {"status", "out", "ms", "cpu"} == set(first)


@pytest.mark.parametrize("name", ["wrong", "no-json"])
def test_a_quick_fragment_that_fails_fails_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before, failed, after = quick(monkeypatch, "well", name, "well")
    assert (failed["status"], "out" in failed) == (1, False)
    assert "Error" in failed["err"]
    assert json.loads(before["out"]) == json.loads(after["out"])


@pytest.mark.parametrize(("name", "status", "error"), [("stuck", -9, "deadline"), ("dead", -9, None), ("leaving", 1, None)])
def test_one_that_takes_the_shared_process_with_it_costs_no_other_its_answer(
    monkeypatch: pytest.MonkeyPatch, name: str, status: int, error: str | None
) -> None:
    before, failed, after = quick(monkeypatch, "well", name, "well")
    assert (failed["status"], failed.get("error"), "out" in failed) == (status, error, False)
    assert json.loads(before["out"])[0] == json.loads(after["out"])[0] == {}
    assert json.loads(before["out"])[1] != json.loads(after["out"])[1]  # each had one of its own then
