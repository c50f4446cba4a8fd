"""What a pusher sees of the controller, which is played here by a socket: plan and outcome, then the end, whatever it is."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.controller import protocol
from reconciler.controller.protocol import Request
from reconciler.events import Event
from reconciler.model.outcome import End, NodeOutcome
from reconciler.model.plan import Plan
from reconciler.plan import wire
from reconciler.render import data, outcome
from reconciler.render import plan as render_plan
from reconciler.render.style import Style
from tests import golden
from tests.push.conftest import Work
from tests.render.test_pages import big_plan

Answer = Callable[[Request], Iterator[Mapping[str, Any]]]


@contextmanager
def controller(state: Path, answer: Answer) -> Iterator[list[Request]]:
    """Listens where a controller would, answers each request by `answer`, and keeps what was asked."""
    asked: list[Request] = []
    state.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(state / protocol.SOCKET))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    request = protocol.read_request(connection)
                    assert isinstance(request, Request)
                    asked.append(request)
                    for message in answer(request):
                        connection.sendall(protocol.encode(message))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield asked
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(5)


OUTCOMES = {
    "gpu01": NodeOutcome(End.CONVERGED, changed=4),
    "gpu02": NodeOutcome(
        End.FAILED, changed=1, reason="StepFailed", data={"step": "1-1", "argv": ["dnf"], "status": 1, "output": "no"}
    ),
    "gpu04": NodeOutcome(End.UNREACHABLE, reason="ConnectTimedOut", data={"host": "10.0.0.4", "port": 22}),
}
STEP = {"title": "write-file", "resources": ["File//etc/motd"], "ok": True, "seconds": 0.25, "warnings": [], "step": "1-1"}


def events(plan: Plan) -> list[dict[str, Any]]:
    """A whole apply, as the controller streams it."""
    found = [
        Event("observing", data={"nodes": ["gpu01"]}, time=1.0),
        Event("observed", "gpu01", time=1.0),
        Event("planned", data=data.plan(plan, "/srv/site.git"), time=1.0),
        Event("wave-started", data={"wave": 1, "nodes": ["gpu01"], "canary": True}, time=1.0),
        Event("step-started", "gpu01", data=STEP, time=1.0),
        Event("step-finished", "gpu01", data=STEP, time=1.0),
        Event("a-kind-of-a-later-version", "gpu01", data={"what": 1}, time=1.0),
        Event("finished", data={"exit": 3, "nodes": data.outcomes(OUTCOMES)}, time=1.0),
    ]
    return [protocol.event(json.loads(json.dumps(data.event(event), default=str))) for event in found]


ENDS: dict[str, Sequence[Mapping[str, Any]]] = {
    "applied": [*events(big_plan()), protocol.end(3)],
    "applied, told node by node": [
        protocol.event({"event": "node-finished", "time": 1.0, "node": "gpu01", **data.outcomes(OUTCOMES)["gpu01"]}),
        protocol.end(0, "", id="4f2a"),
    ],
    "detached": [*events(big_plan())[:2], protocol.end(0, "Detached", id="4f2a")],
    "another controller": [protocol.end(6, "OtherController", holder="h", node="gpu01", age=5.0)],
    "an event that was too long": [protocol.event({"event": "planned", "omitted": 2_000_000}), protocol.end(0)],
    "no plan": [protocol.event({"event": "planned", "nodes": 7})],
    "lost half way": events(big_plan())[:2],
    "nothing at all": [],
}


@pytest.mark.parametrize("case", ENDS)
def test_what_the_pusher_sees(work: Work, case: str) -> None:
    """The push is taken in every case."""
    assert work.install() == 0
    with controller(work.state, lambda request: iter(ENDS[case])) as asked:
        pushed = work.push()
    assert pushed.code == 0
    tip = work.git("rev-parse", "HEAD")
    assert work.main() == tip
    (request,) = asked
    fields = {"repository": str(work.bare), "ref": "refs/heads/main", "old": "0" * 40, "new": tip, "detach_s": 60.0}
    assert {name: request.fields[name] for name in fields} == fields
    golden.check("push", case, [line.replace(str(work.state), "STATE") for line in pushed.remote])


def test_no_golden_text_without_its_case() -> None:
    assert golden.cases("push") == set(ENDS)


def test_other_refs_tell_nobody(hooked: Work) -> None:
    with controller(hooked.state, lambda request: iter(())) as asked:
        assert hooked.push("HEAD:refs/heads/try", "HEAD:refs/tags/v1").code == 0
    assert asked == []


def test_a_pusher_that_goes_away_leaves_the_push(hooked: Work) -> None:
    """The controller hears of it, and nothing waits for the pusher."""
    began, gone = threading.Event(), threading.Event()

    def answer(request: Request) -> Iterator[Mapping[str, Any]]:
        began.set()
        assert gone.wait(60)
        yield protocol.end(0, "Detached", id="1")

    tip = hooked.commit()
    with controller(hooked.state, answer):
        argv = ("git", "push", "origin", "HEAD:main")
        process = subprocess.Popen(argv, cwd=hooked.tree, env=hooked.environment, stderr=subprocess.DEVNULL)
        assert began.wait(60)
        process.kill()
        process.wait()
        assert hooked.main() == tip
        gone.set()


def test_as_json(hooked: Work) -> None:
    line = f"{'0' * 40} {'1' * 40} refs/heads/main\n"
    argv = (*hooked.command, "hook", "post-receive", "--ref", "refs/heads/main", "--state-dir", str(hooked.state), "--json")
    with controller(hooked.state, lambda request: iter(ENDS["detached"])):
        done = subprocess.run(argv, cwd=hooked.bare, env=hooked.environment, input=line, capture_output=True, text=True, check=True)
    assert [json.loads(told) for told in done.stdout.splitlines()] == json.loads(json.dumps(ENDS["detached"]))


def test_a_plan_comes_back_as_it_was_but_for_what_json_leaves_out() -> None:
    plan = big_plan()
    found = wire.plan(json.loads(json.dumps(data.plan(plan, "x"), default=str)))
    nodes = {
        name: replace(node, changes=tuple(replace(change, diff=()) for change in node.changes)) for name, node in plan.nodes.items()
    }
    assert render_plan.render(found, Style(False)) == render_plan.render(replace(plan, nodes=nodes), Style(False))
    back = wire.outcomes(json.loads(json.dumps(data.outcomes(OUTCOMES))))
    assert outcome.render(back, Style(False)) == outcome.render(OUTCOMES, Style(False))
