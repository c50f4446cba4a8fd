"""Plans, outcomes, status and progress as people read them, and that no text in them reaches the terminal as it came."""

from __future__ import annotations

import io
import json
import os
import re
import select
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.events import Event
from reconciler.model.desired import Origin, ResourceId, Revision
from reconciler.model.observed import Failure, Known, NodeState
from reconciler.model.outcome import End, NodeOutcome
from reconciler.model.plan import Action, Change, Cost, FieldChange, HoldReason, NodePlan, Plan, Reason, Selection, Step, Wave
from reconciler.plan.stale import Moved
from reconciler.render import data, outcome, stale
from reconciler.render import plan as render_plan
from reconciler.render import status as render_status
from reconciler.render.progress import Progress
from reconciler.render.style import Style
from reconciler.status import Apply, NodeStatus
from tests import golden
from tests.plan.worlds import Case, look, node, plan_of, state
from tests.render.test_text import is_safe

PLAIN, COLOURED = Style(False), Style(True)
DECLARED: Case = {
    "declared": [
        {"hostname": "gpu01"},
        {"package": "tmux", "ensure": "3.2a-4.el9"},
        {"package": "telnet", "ensure": "absent"},
        {"file": "/etc/motd", "content": "".join(f"line {n}\n" for n in range(30))},
        {"file": "/etc/new", "content": "x"},
        {"file": "/etc/held", "content": "x"},
    ],
    "found": {
        "hostname": ["gpu01", "gpu01"],
        "rpm": ["telnet 1 0.17 85.el9 x86_64"],
        "offered": ["tmux 0 3.2a 4.el9 x86_64"],
        "files": {"/etc/motd": {"content": "old\n"}, "/etc/held": {"type": "directory", "mode": 0o755}},
    },
}


def big_plan(**about: Any) -> Plan:
    nodes = [node(DECLARED, name) for name in ("gpu01", "gpu02", "gpu03", "gpu04")]
    found: dict[str, Any] = {n.name: NodeState(look(n, DECLARED, Selection()), "b") for n in nodes}
    found["gpu04"] = Failure("unreachable", "ConnectTimedOut", {"host": "10.0.0.4", "port": 22})
    drifted = {str(c.id): c.spec_digest for c in plan_of(state(nodes[0]), {"gpu01": found["gpu01"]}).nodes["gpu01"].changes}
    known = Known({"gpu02": drifted}, {"write-file": 0.1, "package-transaction": 30.0, "version-lock": 0.2})
    made = plan_of(replace(state(*nodes, max_unavailable="2"), revision=Revision("1a2b3c4d" * 5, "motd")), found, known)
    return replace(made, **about)


PLANS: dict[str, list[str]] = {
    "many-nodes": render_plan.render(big_plan(), PLAIN),
    "only-drift": render_plan.render(big_plan(), PLAIN, only=Reason.DRIFT),
    "nothing-to-do": render_plan.render(plan_of(state(), {}), PLAIN),
    "no-commit-and-changes": render_plan.render(replace(plan_of(state(), {}), revision=Revision(None, "", True)), PLAIN),
    "canary-down-and-time-not-known": render_plan.render(
        big_plan(waves=(Wave(("gpu02",), True, "gpu01"), Wave(("gpu03",))), cost=Cost(2, 0, 0, 0, None)), PLAIN
    ),
}


@pytest.mark.parametrize("case", PLANS)
def test_a_plan(case: str) -> None:
    golden.check("render_plan", case, PLANS[case])


STILL = [{"resource": "File//etc/motd", "fields": [["mode", "0600", "0644"], ["owner", None, "root"]]}]
FAILED: dict[str, Any] = {
    "step": "package-transaction",
    "argv": ["dnf", "install", "x"],
    "status": 1,
    "output": "a\nb\nNo space left\n",
}
OUTCOMES: dict[str, dict[str, NodeOutcome]] = {
    "all-converged": {f"gpu0{n}": NodeOutcome(End.CONVERGED, 3) for n in range(1, 4)},
    "nothing-to-do": {"gpu01": NodeOutcome(End.UNCHANGED), "gpu02": NodeOutcome(End.UNCHANGED)},
    "every-end": {end.value: NodeOutcome(end, 1, 2) for end in End},
    "step-failed": {"gpu01": NodeOutcome(End.FAILED, 0, 0, "StepFailed", FAILED), "gpu02": NodeOutcome(End.CONVERGED, 1)},
    "still-differs": {"gpu01": NodeOutcome(End.FAILED, 0, 0, "StillDiffers", {"step": "write-file", "still": STILL})},
    "skipped": {n: NodeOutcome(End.SKIPPED, 0, 0, "CanaryFailed", {"canary": "gpu01"}) for n in ("gpu02", "gpu03")},
    "lost": {"gpu01": NodeOutcome(End.LOST, 0, 0, "ConnectionLost")},
    "file-refused": {
        "gpu01": NodeOutcome(End.FAILED, 0, 0, "StepFailed", {"step": "write-file", "error": "NoSuchUser", "user": "ops"})
    },
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_an_outcome(case: str) -> None:
    golden.check("render_outcome", case, outcome.render(OUTCOMES[case], PLAIN))


NOW = 1_000_000.0
NODES = {
    "gpu01": NodeStatus("gpu01", "lab", "p1", NOW - 5, 0, 0, "converged", applied=NOW - 4000, commit="1a2b3c4d5e"),
    "gpu02": NodeStatus("gpu02", "lab", "p1", NOW - 5, 2, 1, "failed", "StepFailed", {"step": "write-file"}, NOW - 90_000),
    "gpu03": NodeStatus("gpu03", "lab", "p1", NOW + 50),
}
APPLIES = (
    Apply("p1", "lab", "1a2b3c4d5e", NOW - 200_000, NOW - 199_990, 0, {"gpu01": "converged", "gpu02": "converged"}, 6),
    Apply("p2", "lab", None, NOW - 60, None, None, {}, 0),
)
RECORD = {"seq": 1, "time": 0.0, "type": "intent", "plan": "p1", "node": "gpu01", "title": "write-file"}
STATUS = {
    "nodes": render_status.nodes(NODES, NOW, PLAIN),
    "one-node-as-planned": render_status.nodes({"gpu01": NODES["gpu01"]}, NOW, PLAIN),
    "changed-and-converged-since": render_status.nodes(
        {"gpu01": replace(NODES["gpu01"], changes=2, applied=NOW, after_plan=True)}, NOW, PLAIN
    ),
    "changed-before-the-last-plan": render_status.nodes({"gpu01": replace(NODES["gpu01"], changes=2)}, NOW, PLAIN),
    "no-node": render_status.nodes({}, NOW, PLAIN),
    "applies": render_status.applies(APPLIES, NOW, PLAIN),
    "no-apply": render_status.applies((), NOW, PLAIN),
    "moved": stale.moved_lines({"moved": (Moved("", "commit", "a", "b"), Moved("gpu01", "File//x.content", None, "y"))}),
    "records": [re.sub(r"^\S+", "TIME", line) for line in render_status.records([RECORD])],
}


@pytest.mark.parametrize("case", STATUS)
def test_status_and_history(case: str) -> None:
    golden.check("render_status", case, STATUS[case])


EVIL = ["a\nb", "\x1b]0;x\x07", "\x9b2J", "a\u202eb", "\"'`$(id)", "x" * 10_000, "\udc80", "{", "%s", "\u2028", ""]
evil = st.sampled_from(EVIL) | st.text(max_size=40)


def hostile_plan(draw: Any) -> Plan:
    """A plan in which each text is one that somebody hostile chose."""

    def text() -> str:
        return str(draw(evil))

    def change(action: Action) -> Change:
        hold = HoldReason(draw(st.sampled_from(["SeveralVersions", "{", text()])), {"detail": text(), "x": [text()]})
        diff = ("---", "+++", f"-{text()}", f"+{text()}", text())
        fields = (FieldChange(text(), text(), text()), FieldChange("content", None, 5))
        reason = Reason.GIT if action is not Action.HOLD else None
        return Change(
            ResourceId(text(), text()),
            action,
            Origin(text()),
            "0",
            reason,
            fields,
            hold if action is Action.HOLD else None,
            (1,),
            diff,
        )

    names = draw(st.lists(evil, min_size=1, max_size=3, unique=True))
    nodes: dict[str, NodePlan] = {n: NodePlan(n, tuple(change(a) for a in Action), (Step(1, text(), (), {}),)) for n in names}
    nodes[f"{text()}down"] = NodePlan("down", failure=Failure("unreachable", text(), {"host": text()}))
    waves = (Wave(tuple(names), True, text()), Wave((text(),)))
    return Plan(text(), 1.0, text(), Revision(text(), text()), text(), text(), Selection(), nodes, waves, Cost(1, 1, 0, 0, 2.0))


def bare(line: str) -> str:
    """A line without the colours that we put there."""
    return re.sub(r"\x1b\[[0-9;]+m", "", line)


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_no_text_of_a_plan_reaches_the_terminal_as_it_came(given_data: st.DataObject) -> None:
    made = hostile_plan(given_data.draw)
    for style in (PLAIN, COLOURED):
        for line in render_plan.render(made, style):
            assert is_safe(bare(line)), line
    json.loads(json.dumps(data.plan(made, "x")))


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_no_text_of_an_outcome_or_a_status_reaches_it(given_data: st.DataObject) -> None:
    def text() -> str:
        return str(given_data.draw(evil))

    about: dict[str, Any] = {
        "step": text(),
        "argv": [text(), text()],
        "status": text(),
        "output": f"{text()}\n{text()}",
        "error": text(),
    }
    about |= {"detail": text(), "still": [{"resource": text(), "fields": [[text(), text(), text()]]}], "warnings": [text()]}
    ended = {text(): NodeOutcome(End.FAILED, 1, 1, given_data.draw(st.sampled_from(["StepFailed", text()])), about)}
    status = {"n": NodeStatus(text(), text(), text(), 1.0, 1, 1, text(), text(), {"step": text()}, 1.0, text())}
    applies = [Apply(text(), text(), text(), 1.0, None, None, {text(): text()}, 1)]
    moved = {"moved": [Moved(text(), text(), text(), text())]}
    pages = outcome.render(ended, PLAIN) + render_status.nodes(status, 2.0, PLAIN) + render_status.applies(applies, 2.0, PLAIN)
    pages += stale.moved_lines(moved) + render_status.records([{"type": text(), "time": 1.0, text() + "k": text()}])
    for line in pages:
        assert is_safe(line), line
    json.loads(json.dumps(data.outcomes(ended)))


def events(text: str) -> list[Event]:
    step = {"step": 1, "title": text, "resources": [f"File/{text}", *(f"Package/p{n}{text}" for n in range(6))]}
    return [
        Event("observing", data={"nodes": [text, "other"]}),
        Event("observed", text),
        Event("adopting", text, {"token": 1, "step": 1, "title": text}),
        Event("adopted", text, {"token": 1, "step": 1, "title": text, "state": text}),
        Event("wave-started", data={"wave": 1, "nodes": [text], "canary": True}),
        Event("step-started", text, step),
        Event("step-finished", text, {**step, "ok": False, "seconds": 1.25, "warnings": [text]}),
        Event("step-started", text, {**step, "title": "write-file"}),
        Event("step-finished", text, {**step, "title": "write-file", "ok": True, "seconds": 0.1, "warnings": []}),
        Event("lease-not-renewed", text, {"reason": text}),
        Event("node-finished", text, {"end": "failed", "reason": text, "changed": 0, "data": {}}),
    ]


def test_progress_where_it_is_kept() -> None:
    stream = io.StringIO()
    with Progress(stream) as shown:
        shown._began -= 100
        for event in events("gpu01"):
            shown(event)
    golden.check("render_progress", "kept", stream.getvalue().splitlines())


@pytest.mark.parametrize("text", EVIL)
def test_no_text_of_an_event_reaches_it(text: str) -> None:
    stream = io.StringIO()
    with Progress(stream) as shown:
        shown._began -= 100
        for event in events(text):
            shown(event)
        assert is_safe(shown._picture().plain.replace("\n", ""))
    assert all(is_safe(line) for line in stream.getvalue().split("\n"))
    for event in events(text):
        json.loads(json.dumps(data.event(event)))


def test_progress_on_a_terminal_clears_itself() -> None:
    main, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        with Progress(stream) as shown:
            for event in events("gpu01")[:6]:
                shown(event)
            time.sleep(0.3)
        assert shown._live
        stream.flush()
        said = b""
        while select.select([main], [], [], 0.2)[0]:
            said += os.read(main, 1 << 16)
    os.close(main)
    assert b"wave 1: gpu01 (canary)" in said
    assert said.endswith((b"\x1b[2K", b"\x1b[?25h"))


def test_a_plan_as_data_holds_no_content() -> None:
    text = json.dumps(data.plan(big_plan(), "/srv"))
    assert "line 7" not in text
    assert "old" not in text.replace("hold", "")
    assert json.loads(text)["nodes"]["gpu04"]["failure"]["message"] == "no answer from 10.0.0.4 port 22"
    assert data.event(Event("planned", data={"plan": big_plan()}, time=2.0)) == {"event": "planned", "time": 2.0}


def test_a_resource_is_shown_with_its_place() -> None:
    made = big_plan()
    places = {str(c.origin) for c in made.nodes["gpu01"].changes}
    assert {f"site.yaml:{n}:1" for n in range(1, 7)} == places
