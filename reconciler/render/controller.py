"""The controller for people: its settings' mistakes, what happens in it as lines, and conditions as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from reconciler.controller.settings import Wrong
from reconciler.render.progress import step_text
from reconciler.render.reasons import sentence
from reconciler.render.style import Style
from reconciler.render.text import count, duration, fold, safe, table

_WRONG = {
    "not-toml": "not TOML: {detail}",
    "unknown-key": "unknown key '{key}'; there are: {allowed}",
    "missing-key": "no repository: say `--repository PATH-or-URL`, or `repository` in the file",
    "not-text": "{key}: has to be text in quotes, not {found}",
    "not-a-span": "{key}: '{found}' is not {allowed}, from {low:g} s to {high:g} s",
    "not-a-ref": "{key}: '{found}' is not a branch or a full reference, such as main or refs/heads/main",
    "not-below": "{key}: '{found}' is not a folder inside the repository, such as sites/a",
    "not-one-of": "{key}: '{found}' is not one of {allowed}",
    "not-an-address": "{key}: '{found}' is not HOST:PORT, such as 127.0.0.1:8787",
    "not-absolute": "{key}: '{found}' is not an absolute path",
    "needs-key": "{key} needs {other} beside it",
    "not-a-repository": "{key}: '{found}' is neither a path nor a URL",
}
Message = Mapping[str, Any]


def wrong(found: Sequence[Wrong], file: str) -> list[str]:
    """One line a mistake, where it stands first."""
    out = []
    for one in found:
        data = {k: ", ".join(v) if isinstance(v, list) else v if isinstance(v, float) else safe(v) for k, v in one.data.items()}
        near = f"; did you mean '{one.data['nearest']}'?" if one.data.get("nearest") else ""
        place = f"{safe(file)}:{one.place[0]}:{one.place[1]}: " if one.place[0] else ""
        out.append(place + _WRONG[one.code].format(key=safe(one.key), **data) + near)
    return out


def why(reason: str, data: Mapping[str, Any]) -> str:
    """A reason in words; times and spans as people read them."""
    shown = dict(data)
    if isinstance(shown.get("until"), int | float):
        shown["until"] = moment(shown["until"])
    if isinstance(shown.get("window"), int | float):
        shown["window"] = duration(shown["window"])
    if isinstance(shown.get("commit"), str):
        shown["commit"] = shown["commit"][:12]
    if isinstance(shown.get("accepted"), str):
        shown["accepted"] = shown["accepted"][:12]
    return sentence(reason, shown) if reason else ""


def moment(then: float) -> str:
    return datetime.fromtimestamp(then).astimezone().isoformat(sep=" ", timespec="seconds")


def line(message: Message) -> str | None:
    """One message of the controller's stream as a line, None for what is not worth one."""
    kind = message["event"]
    if kind in _LINES:
        return _LINES[kind](message)
    return None


def _turn_started(m: Message) -> str | None:
    return f"revision {safe(m['commit'])[:12]}: looking at the nodes" if m["why"] == "revision" else None


def _planned(m: Message) -> str | None:
    if not m["changes"] and not m["held"]:
        return None
    return f"plan {safe(m['id'])}: {count(m['changes'], 'change')}, {m['held']} held"


def _step(m: Message) -> str:
    from reconciler.events import Event

    text = step_text(Event(m["event"], m["node"], m))
    return f"{safe(m['node'])}: {text} {'ok' if m['ok'] else 'failed'} {m['seconds']:.1f} s"


def _node(m: Message) -> str:
    said = f": {sentence(m['reason'], m['data'])}" if m["reason"] else ""
    return f"{safe(m['node'])}: {safe(m['end'])}{said}"


def _condition(m: Message) -> str | None:
    if (m["status"], m["reason"]) == ("Unknown", "NotCarriedOut"):
        return None  # that the revision is pending was said once, for all nodes
    said = why(m["reason"], m["data"])
    return f"{subject_name(m['subject'])}: {safe(m['type'])} is {safe(m['status'])}" + (f": {said}" if said else "")


def _revision(m: Message) -> str:
    said = why(m["reason"], m["data"])
    return f"revision {safe(m['commit'])[:12]}: {safe(m['state'])}" + (f": {said}" if said else "")


_LINES: dict[str, Callable[[Message], str | None]] = {
    "turn-started": _turn_started,
    "planned": _planned,
    "step-finished": _step,
    "node-finished": _node,
    "condition": _condition,
    "revision": _revision,
    "wave-started": lambda m: f"wave {m['wave']}: {fold(m['nodes'])}{' (canary)' if m['canary'] else ''}",
    "approval-asked": lambda m: f"plan {safe(m['plan'])} waits for `reconcile approve {safe(m['plan'])}`: {fold(m['nodes'])}",
    "approval-stale": lambda m: f"plan {safe(m['plan'])} was approved and does not fit any more: a new one waits",
}


def subject_name(name: str) -> str:
    """`gpu01`, `stack a`, `the cluster`."""
    kind, _, own = name.partition("/")
    return "the cluster" if kind == "cluster" else safe(own) if kind == "node" else f"{safe(kind)} {safe(own)}"


def conditions(subjects: Mapping[str, Any], about: Mapping[str, Any], now: float, style: Style) -> list[str]:
    """What a controller says, or said last where it does not run: the verdict, then one line a subject."""
    of_cluster = _by_type(subjects.get("cluster", {}))
    nodes = {name: _by_type(s) for name, s in subjects.items() if name.startswith("node/")}
    ready = sum(1 for found in nodes.values() if _is(found, "Ready"))
    good = bool(nodes) and ready == len(nodes) and _is(of_cluster, "Ready") and about["running"]
    age = "" if about["running"] else f" (as of {duration(max(0.0, now - about['asOf']))} ago: the controller does not run)"
    out = [style(f"{ready} of {count(len(nodes), 'node')} ready", "bold", "green" if good else "yellow") + age]
    out += [f"  {text}" for text in _cluster_lines(of_cluster, about)]
    rows = [("subject", "ready", "since", "why", "also")]
    for name in sorted(subjects, key=lambda n: (n != "cluster", n)):
        found = _by_type(subjects[name])
        head = found.get("Ready", {"status": "Unknown", "reason": "", "data": {}, "since": now})
        also = [t for t, c in found.items() if t != "Ready" and c["status"] == "True"]
        said = why(head["reason"], head["data"]) if head["status"] != "True" else ""
        rows.append((subject_name(name), head["status"], f"{duration(max(0.0, now - head['since']))}", said[:70], ", ".join(also)))
    return [*out, *table(rows)]


def _cluster_lines(found: Mapping[str, Any], about: Mapping[str, Any]) -> list[str]:
    out = []
    for type_ in ("Stalled", "Suspended", "Reconciling"):
        said = why(found[type_]["reason"], found[type_]["data"]) if _is(found, type_) else ""
        if said:
            out.append(f"{type_}: {said}")
    waiting = about.get("approval")
    if waiting and not waiting["by"]:
        out.append(f"plan {safe(waiting['plan'])} waits for approval: {fold(waiting['nodes'])} (`reconcile approve` shows it)")
    return out


def _by_type(subject: Mapping[str, Any]) -> dict[str, Any]:
    return {c["type"]: c for c in subject.get("conditions", ())}


def _is(found: Mapping[str, Any], type_: str) -> bool:
    return type_ in found and found[type_]["status"] == "True"
