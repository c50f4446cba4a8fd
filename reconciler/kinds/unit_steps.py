"""The commands that bring a unit where it is wanted, and the watch that says whether it stays there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.kinds.base import Draft, Verdict
from reconciler.model.desired import ResourceId, UnitSpec
from reconciler.model.plan import FieldChange
from reconciler.model.units import is_template

DEADLINE = 300.0  # seconds: a stop of 90 s (systemd's default), a start of 90 s, and the watch
KILL_AFTER = 600


def reload(units: tuple[ResourceId, ...]) -> Draft:
    """Let systemd read what was written of `units`."""
    return Draft(
        "reload-units", units, {"commands": [{"argv": ["systemctl", "daemon-reload"]}], "kill_after": KILL_AFTER}, DEADLINE
    )


def draft(identity: ResourceId, spec: UnitSpec, verdict: Verdict, *, writes: bool) -> Draft | None:
    """One step for all of a unit that is not a file's content. `writes`: the content was written by a step before."""
    if is_template(spec.name):
        return None
    changed = {f.path: f for f in verdict.fields}
    title, running = _running(spec, changed)
    commands = _enabling(spec, changed, writes=writes) + running
    return Draft(title, (identity,), {"commands": commands, "kill_after": KILL_AFTER}, DEADLINE) if commands else None


def _enabling(spec: UnitSpec, changed: Mapping[str, FieldChange], *, writes: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    before = changed["enabled"].before if "enabled" in changed else None
    if before in ("masked", "masked-runtime"):
        runtime = ["--runtime"] if before == "masked-runtime" else []
        found.append({"argv": ["systemctl", "unmask", *runtime, spec.name]})
    if spec.enabled and ("enabled" in changed or writes):
        # anew: links that a former [Install] wanted go
        found.append({"argv": ["systemctl", "reenable" if writes else "enable", spec.name]})
    if spec.enabled is False and "enabled" in changed:
        runtime = ["--runtime"] if before == "enabled-runtime" else []
        found.append({"argv": ["systemctl", "disable", *runtime, spec.name]})
    return found


def _running(spec: UnitSpec, changed: Mapping[str, FieldChange]) -> tuple[str, list[dict[str, Any]]]:
    """The step's title and what it runs: a start and a restart are watched, since systemctl says only that they were asked for."""
    state = changed.get("state")
    watch = {"argv": ["reconcile-watch", spec.name], "watch": spec.name}
    if state and state.after == "stopped":
        return "stop-unit", [{"argv": ["systemctl", "stop", spec.name]}]
    if "startedAfter" in changed:
        verb = "restart" if spec.state == "started" else "try-restart"
        return "restart-unit", [{"argv": ["systemctl", "--no-block", verb, spec.name]}, watch]
    if state and state.after == "started":
        # a unit that failed too often is refused a start until that is forgotten
        forget = [{"argv": ["systemctl", "reset-failed", spec.name]}] if state.before == "failed" else []
        return "start-unit", [*forget, {"argv": ["systemctl", "--no-block", "start", spec.name]}, watch]
    return "set-unit", []
