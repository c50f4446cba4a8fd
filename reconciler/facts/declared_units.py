"""systemd units that are declared for a node: what systemd says of each, all asked in one call."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.facts import raw, scalars
from reconciler.model.fact import Absent, Fact, Facts, Probe, Run, Unknown, Value

KEY = "declared-units"
PROPERTIES = (
    "Id",
    "Names",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "Result",
    "NRestarts",
    "Type",
    "ExecMainStatus",
    "NeedDaemonReload",
    "FragmentPath",
    "DropInPaths",
    "ConditionResult",
    "ConditionTimestampMonotonic",
    "InactiveExitTimestampMonotonic",
    "ExecMainExitTimestampMonotonic",
    "RemainAfterExit",
    "TriggeredBy",
    "WantedBy",
    "RequiredBy",
)
_SHOW = ("systemctl", "show", "--no-pager", "--property=" + ",".join(PROPERTIES), "--")
# ActiveState -> how the unit stands, where that word alone says it
_STANDING = {
    "active": "started",
    "reloading": "started",
    "refreshing": "started",
    "deactivating": "stopping",
    "failed": "failed",
    "maintenance": "stopping",
}


@dataclass(frozen=True, slots=True)
class UnitState:
    """One unit. `file_state`: enabled, disabled, static, masked ...; Absent(NoUnitFile) for one that no file makes.

    `standing`: started, starting, stopping, stopped, failed, working and ended (a oneshot at, and after, its work), crash-looping
    (it died and systemd is about to start it again). `since`: when it last began to start, in microseconds of the node's monotonic
    clock, Absent(NeverStarted) where it did not. `skipped`: its conditions were not met when it was to be started last.
    `passing`: a oneshot without RemainAfterExit; `referred`: something loaded wants or triggers the unit. A passing one that is not
    referred to is forgotten at its end: systemd no longer knows that it ran.
    """

    load: Fact[str]
    standing: Fact[str]
    file_state: Fact[str]
    fragment: Fact[str]
    needs_reload: Fact[bool]
    since: Fact[int]
    restarts: Fact[int]
    result: Fact[str]
    exit_status: Fact[int]
    drop_ins: tuple[str, ...]
    skipped: bool
    passing: bool
    referred: bool


def probe(name: str) -> Probe:
    """Probes of several units are put together: one call of systemctl for all."""
    return Probe(KEY, (Run(_SHOW, gathered=(name,)),))


def blocks(text: str) -> list[dict[str, str]]:
    """`KEY=value` lines of those properties that we asked for; a blank line stands between units."""
    found: list[dict[str, str]] = [{}]
    for line in text.split("\n"):
        key, equals, value = line.partition("=")
        if not line.strip():
            found.append({})
        elif equals and key in PROPERTIES:
            found[-1].setdefault(key, value.strip())
    return [fields for fields in found if fields]


def _standing(fields: dict[str, str]) -> Fact[str]:
    active, sub, oneshot = fields.get("ActiveState", ""), fields.get("SubState", ""), fields.get("Type") == "oneshot"
    if active in _STANDING:
        return Value(_STANDING[active])
    if active == "activating":
        looping = sub.startswith("auto-restart")
        return Value("crash-looping" if looping else "working" if oneshot and sub == "start" else "starting")
    if active == "inactive":
        ran = fields.get("ExecMainExitTimestampMonotonic", "0") not in ("", "0") and fields.get("Result") == "success"
        return Value("ended" if oneshot and ran else "stopped")
    return Unknown("UnexpectedWord", raw.clean(active, 40)) if active else Unknown("Missing", "ActiveState")


def _word(fields: dict[str, str], key: str, missing: str) -> Fact[str]:
    return Value(fields[key]) if fields.get(key) else Absent(missing)


def _whole(fields: dict[str, str], key: str, zero: str = "") -> Fact[int]:
    """`zero`: the reason that a 0 stands for, where it is no number."""
    if not fields.get(key):
        return Absent("NotSaid")
    found = scalars.whole(fields[key])
    return Absent(zero) if zero and found == Value(0) else found


def _switch(fields: dict[str, str], key: str) -> Fact[bool]:
    said = fields.get(key, "")
    return Value(said == "yes") if said in ("yes", "no") else Unknown("Missing", key)


def unit_state(fields: dict[str, str]) -> UnitState:
    passing = fields.get("Type") == "oneshot" and fields.get("RemainAfterExit") != "yes"
    tried = fields.get("ConditionTimestampMonotonic", "0") not in ("", "0")
    return UnitState(
        load=scalars.wanted(fields, "LoadState"),
        standing=_standing(fields),
        file_state=_word(fields, "UnitFileState", "NoUnitFile"),
        fragment=_word(fields, "FragmentPath", "NoUnitFile"),
        needs_reload=_switch(fields, "NeedDaemonReload"),
        since=_whole(fields, "InactiveExitTimestampMonotonic", "NeverStarted"),
        restarts=_whole(fields, "NRestarts"),
        result=_word(fields, "Result", "NotSaid"),
        exit_status=_whole(fields, "ExecMainStatus"),
        drop_ins=tuple(fields.get("DropInPaths", "").split()),
        skipped=tried and fields.get("ConditionResult") == "no",
        passing=passing,
        referred=any(fields.get(key) for key in ("TriggeredBy", "WantedBy", "RequiredBy")),
    )


def parse(text: Fact[str]) -> Fact[dict[str, dict[str, str]]]:
    """The properties of every unit of the answer, by its name and by its aliases; what is said first counts."""
    if isinstance(text, Absent):
        return Unknown("NoSystemd", "systemctl is not installed")
    if not isinstance(text, Value):
        return text
    found: dict[str, dict[str, str]] = {}
    for fields in blocks(text.value):
        for name in (fields.get("Id", ""), *fields.get("Names", "").split()):
            found.setdefault(name, fields)
    return Value(found)


def _all(facts: Facts) -> Fact[dict[str, dict[str, str]]]:
    return parse(raw.command_text(raw.part(facts, KEY)))


def unit(facts: Facts, name: str) -> Fact[UnitState]:
    """What systemd says of the unit: a unit that it does not know has the load state `not-found`."""
    everything = facts.once(_all)
    if not isinstance(everything, Value):
        return everything
    fields = everything.value.get(name)
    return Value(unit_state(fields)) if fields else Unknown("UnitNotSaid", name)
