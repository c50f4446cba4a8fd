"""How an apply ended, for people: the verdict, then each node that did not just converge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.model.outcome import End, NodeOutcome
from reconciler.render.reasons import sentence
from reconciler.render.style import Style
from reconciler.render.text import count, fold, lines, safe

_COLOURS = {
    End.CONVERGED: "green",
    End.UNCHANGED: "green",
    End.SKIPPED: "yellow",
    End.INTERRUPTED: "yellow",
    End.PREEMPTED: "yellow",
}
_CALM = (End.CONVERGED, End.UNCHANGED)


def verdict(outcomes: Mapping[str, NodeOutcome]) -> str:
    """`9 changes on 3 nodes`, and what else there is to know."""
    changed = sum(o.changed for o in outcomes.values())
    parts = [
        f"{count(changed, 'change')}" + (f" on {count(sum(1 for o in outcomes.values() if o.changed), 'node')}" if changed else "")
    ]
    held = sum(o.held for o in outcomes.values())
    if held:
        parts.append(f"{held} held")
    for end in End:
        number = sum(1 for o in outcomes.values() if o.end is end)
        if number and end not in _CALM:
            parts.append(f"{count(number, 'node')} {end.value}")
    return ", ".join(parts)


def render(outcomes: Mapping[str, NodeOutcome], style: Style) -> list[str]:
    """All lines of an apply's end; nodes that ended alike are one line."""
    good = all(o.end in _CALM for o in outcomes.values())
    out = [style(verdict(outcomes), "bold", "green" if good else "red")]
    alike: dict[tuple[Any, ...], list[str]] = {}
    for name, outcome in outcomes.items():
        alike.setdefault((outcome.end, outcome.changed, outcome.held, outcome.reason, repr(dict(outcome.data))), []).append(name)
    for names in alike.values():
        outcome = outcomes[names[0]]
        out += _node(fold(names), outcome, style)
    return out


def _node(names: str, outcome: NodeOutcome, style: Style) -> list[str]:
    what = style(outcome.end.value, _COLOURS.get(outcome.end, "red"))
    held = f", {outcome.held} held" if outcome.held else ""
    why = f": {sentence(outcome.reason, outcome.data)}" if outcome.reason else ""
    each = f", {count(outcome.changed, 'change')}" if outcome.changed else ""
    return [f"  {safe(names)}  {what}{each}{held}{why}", *_details(outcome.data)]


def _details(data: Mapping[str, Any]) -> list[str]:
    """What a failed step said, and what is still not as declared."""
    out = []
    if data.get("argv"):
        out.append(f"      {safe(' '.join(map(str, data['argv'])))} ended with {safe(data.get('status'))}")
    out += [f"      | {line}" for line in lines(str(data.get("output", "")))]
    if data.get("error") and not data.get("argv"):  # a command said it in its own words
        out.append(f"      {sentence(str(data['error']), data)}")
    for still in data.get("still", ()):
        fields = ", ".join(f"{safe(path)} is {_shown(before)}, declared {_shown(after)}" for path, before, after in still["fields"])
        hold = still.get("hold")
        out.append(f"      {safe(still['resource'])}: {sentence(hold['code'], hold['data']) if hold else fields}")
    return out


def _shown(value: Any) -> str:
    return "absent" if value is None else safe(value, 80)
