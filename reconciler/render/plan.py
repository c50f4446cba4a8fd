"""A plan for people: the verdict, then what differs; the same change on many nodes is one line."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.plan import Action, Change, FieldChange, Plan, Reason
from reconciler.render.driver import driver_layers
from reconciler.render.reasons import sentence
from reconciler.render.style import Style
from reconciler.render.text import count, duration, fold, safe

SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.REPLACE: "±", Action.DELETE: "-", Action.HOLD: "!"}
COLOURS = {Action.CREATE: "green", Action.UPDATE: "yellow", Action.REPLACE: "yellow", Action.DELETE: "red", Action.HOLD: "magenta"}
WHY = {Reason.GIT: "git change", Reason.DRIFT: "drift"}
DIFF_LINES = 20


def revision(plan: Plan) -> str:
    """`lab-trio at 1a2b3c4d (subject)`."""
    commit = plan.revision.commit
    at = safe(commit[:8]) if commit else "no commit"
    dirty = " + uncommitted changes" if plan.revision.dirty else ""
    subject = f" ({safe(plan.revision.summary, 60)})" if plan.revision.summary else ""
    return f"{safe(plan.cluster)} at {at}{dirty}{subject}"


def verdict(plan: Plan) -> str:
    """The one line that says it all."""
    changed = sum(1 for node in plan.nodes.values() if node.writes())
    down = sum(1 for node in plan.nodes.values() if node.failure)
    parts = [f"{count(plan.changes, 'change')} on {count(changed, 'node')}" if plan.changes else "0 changes"]
    if plan.holds:
        parts.append(f"{plan.holds} held")
    if down:
        parts.append(f"{count(down, 'node')} could not be observed")
    return ", ".join(parts)


def render(plan: Plan, style: Style, *, only: Reason | None = None) -> list[str]:
    """All lines of a plan; `only`: changes for that reason alone (held ones always show)."""
    colour = "green" if not plan.changes and not plan.holds else "yellow"
    out = [style(verdict(plan), "bold", colour) + f": {revision(plan)}"]
    out += _cost(plan)
    for names, changes in _sections(plan, only):
        out += ["", style(fold(names), "bold")]
        for change in changes:
            out += _change(change, style)
    failures = [(name, node.failure) for name, node in plan.nodes.items() if node.failure]
    if failures:
        out += ["", style("not observed", "bold", "red")]
        out += [f"  {safe(name)}: {sentence(why.reason, why.data)}" for name, why in failures]
    return out


def _cost(plan: Plan) -> list[str]:
    if not plan.waves:
        return []
    cost = plan.cost
    time = f"about {duration(cost.seconds)} a node" if cost.seconds is not None else "time not known yet"
    waves = [fold(w.nodes) + (_canary(w.instead_of) if w.canary else "") for w in plan.waves]
    return [
        f"  cost: {count(cost.steps, 'step')}, {count(cost.transactions, 'package transaction')}, "
        f"{count(cost.reboots, 'reboot')}, {count(cost.interrupts, 'interrupted unit')}, {time}",
        f"  order: {', then '.join(waves)}",
    ]


def _canary(instead_of: str | None) -> str:
    return f" (canary, since {safe(instead_of)} is down or left alone)" if instead_of else " (canary)"


def _sections(plan: Plan, only: Reason | None) -> Iterable[tuple[tuple[str, ...], list[Change]]]:
    """Changes by the set of nodes that share them, larger sets first."""
    shared: dict[tuple[object, ...], tuple[Change, list[str]]] = {}
    for name, node in plan.nodes.items():
        for change in node.changes:
            if change.action is Action.NONE or (only and change.action is not Action.HOLD and change.reason is not only):
                continue
            key = (change.id, change.action, change.reason, change.fields, repr(change.hold), change.diff)
            shared.setdefault(key, (change, []))[1].append(name)
    sections: dict[tuple[str, ...], list[Change]] = {}
    for change, names in shared.values():
        sections.setdefault(tuple(names), []).append(change)
    return sorted(sections.items(), key=lambda item: (-len(item[0]), item[0]))


def _change(change: Change, style: Style) -> list[str]:
    sign = style(SIGNS[change.action], COLOURS[change.action])
    words = [WHY[change.reason]] if change.reason else []
    words += [f"held: {sentence(change.hold.code, change.hold.data)}"] if change.hold else []
    why = ", ".join(words)
    out = [f"  {sign} {safe(change.id)}  {style(why, 'dim')}  {style(safe(change.origin), 'dim')}"]
    fields = [field for field in change.fields if not (change.diff and field.path == "content")]
    if change.id.kind == "GpuDriver" and fields:
        out.append(f"      {driver_layers(fields)}")
    elif change.action is Action.CREATE and fields:
        out.append("      " + ", ".join(f"{safe(f.path)} {safe(f.after, 80)}" for f in fields))
    else:
        out += [f"      {_field(field)}" for field in fields]
    out += [f"      {_diff_line(line, style)}" for line in change.diff[2 : 2 + DIFF_LINES]]
    if len(change.diff) > 2 + DIFF_LINES:
        out.append(f"      ... {count(len(change.diff) - 2 - DIFF_LINES, 'more line')}")
    return out


def _field(field: FieldChange) -> str:
    before, after = ("absent" if v is None else safe(v, 80) for v in (field.before, field.after))
    return f"{safe(field.path)}: {before} -> {after}"


def _diff_line(line: str, style: Style) -> str:
    colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
    return style(safe(line, 160), colour)
