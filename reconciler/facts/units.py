"""Units of systemd that are loaded: services, timers and mounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.facts import raw, scalars
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Fact, Raw, Run, Unknown, Value

PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "NRestarts",
    "Result",
    "ExecMainStatus",
    "MainPID",
    "ActiveEnterTimestampMonotonic",
    "Type",
    "FragmentPath",
)
_NO_SYSTEMD = ("System has not been booted with systemd", "Failed to connect to bus", "Failed to get D-Bus connection")


@dataclass(frozen=True, slots=True)
class Unit:
    """One loaded unit. Absent(NotSaid) for what its kind has not: a mount has no restarts.

    `file_state`: enabled, disabled, static, masked ..., Absent(NoUnitFile) for a unit that was made at run time. `active_since`:
    microseconds of the node's monotonic clock. `exit_status` of the main process; `main_pid` Absent(NotRunning) for none.
    """

    load: Fact[str]
    active: Fact[str]
    sub: Fact[str]
    file_state: Fact[str]
    type: Fact[str]
    file: Fact[str]
    result: Fact[str]
    exit_status: Fact[int]
    restarts: Fact[int]
    main_pid: Fact[int]
    active_since: Fact[int]


def _word(fields: dict[str, str], key: str, missing: str = "NotSaid") -> Fact[str]:
    return Value(fields[key]) if fields.get(key) else Absent(missing)


def _number(fields: dict[str, str], key: str, zero: str = "") -> Fact[int]:
    """`zero`: the reason that a 0 stands for, where it is no number."""
    if not fields.get(key):
        return Absent("NotSaid")
    found = scalars.whole(fields[key])
    return Absent(zero) if zero and found == Value(0) else found


def unit(fields: dict[str, str]) -> Unit:
    return Unit(
        load=_word(fields, "LoadState"),
        active=_word(fields, "ActiveState"),
        sub=_word(fields, "SubState"),
        file_state=_word(fields, "UnitFileState", "NoUnitFile"),
        type=_word(fields, "Type"),
        file=_word(fields, "FragmentPath", "NoUnitFile"),
        result=_word(fields, "Result"),
        exit_status=_number(fields, "ExecMainStatus"),
        restarts=_number(fields, "NRestarts"),
        main_pid=_number(fields, "MainPID", "NotRunning"),
        active_since=_number(fields, "ActiveEnterTimestampMonotonic", "NeverActive"),
    )


def blocks(text: str) -> list[dict[str, str]]:
    """`KEY=value` lines; a blank line stands between units."""
    found: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if not line:
            found.append({})
        elif equals and key in PROPERTIES:
            found[-1].setdefault(key, value.strip())
    return [fields for fields in found if fields]


def parse(raws: tuple[Raw, ...]) -> Fact[dict[str, Unit]]:
    """By name. Absent(NotInstalled) without systemctl, Absent(NotBooted) where systemd is not what runs this machine.

    Units that are only named by others and have no file are left out.
    """
    text = raw.command_text(raws[0])
    if isinstance(text, Unknown) and text.why == "CommandFailed" and text.detail.startswith(_NO_SYSTEMD):
        return Absent("NotBooted")
    if not isinstance(text, Value):
        return text
    found = {fields["Id"]: unit(fields) for fields in blocks(text.value) if fields.get("Id")}
    kept = {name: one for name, one in sorted(found.items()) if one.load != Value("not-found")}
    return Value(kept) if kept else Unknown("NothingListed", raw.clean(text.value[:400], 120))


def stable(value: Any) -> Any:
    """What is enabled, from which file, and what failed; whether it runs, but for what comes and goes by itself."""
    found = {}
    for name, one in value.items():
        if one["file_state"] == {"absent": "NoUnitFile"} and one["active"] != "failed":
            continue  # made at run time: a session's mount, a step of ours
        passing = one["type"] in ("oneshot", "idle") and one["active"] != "failed"
        found[name] = {k: one[k] for k in ("load", "file_state", "file")} | ({} if passing else {"active": one["active"]})
    return found


_SHOW = ("systemctl", "show", "--property=" + ",".join(PROPERTIES), "--", "*.service", "*.timer", "*.mount")
FACT = LiveFact("units", lambda about: (Run(_SHOW, 10.0),), parse, stable, slow=True)
