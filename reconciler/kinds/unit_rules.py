"""What a unit's state means against what is declared of it: what has to change, and what keeps it from being changed."""

from __future__ import annotations

from reconciler.facts.declared_units import UnitState
from reconciler.model.desired import UnitSpec
from reconciler.model.fact import Fact, Unknown, Value
from reconciler.model.plan import FieldChange, HoldReason
from reconciler.model.units import unit_path

_MASKED = ("masked", "masked-runtime")
_ON = ("enabled",)
_FIXED = ("static", "indirect", "generated", "transient", "alias")  # nothing that enabling or disabling would change
_AT_WORK = ("started", "working", "ended")
_AT_REST = ("stopped", "failed", "ended")
_UNFIT = ("error", "bad-setting", "merged", "stub")
# drop-ins of packages and of generators belong to the system that is declared otherwise
_SYSTEMS = ("/usr/lib/", "/lib/", "/run/systemd/generator")


def text(fact: Fact[str]) -> str | None:
    return fact.value if isinstance(fact, Value) else None


def fields(spec: UnitSpec, state: UnitState) -> dict[str, str | int | bool | None]:
    """What was found of what is declared."""
    found: dict[str, str | int | bool | None] = {}
    if spec.enabled is not None:
        found["enabled"] = text(state.file_state)
    if spec.state is not None:
        found["state"] = text(state.standing)
    return found or {"load": text(state.load)}


def runs(spec: UnitSpec, state: UnitState) -> bool:
    """Whether there is something to restart, and nobody wants it stopped."""
    return spec.state != "stopped" and text(state.standing) in ("started", "starting", "crash-looping")


def own_drop_ins(spec: UnitSpec) -> list[str]:
    """Declared drop-ins of this very unit, of its template, of its type, or of its name's beginning (systemd.unit(5))."""
    head, _, kind = spec.name.rpartition(".")
    word, at, _ = head.partition("@")
    owners = {spec.name, kind, *([f"{word}@.{kind}"] if at else [])}
    owners |= {f"{head[: i + 1]}.{kind}" for i, sign in enumerate(head) if sign == "-"}
    return [path for path in spec.drop_ins if path.split("/")[-2].removesuffix(".d") in owners]


def hold(spec: UnitSpec, state: UnitState, *, changing: bool, due: bool) -> HoldReason | None:
    """Why the unit is left as it is. `changing`: its content is about to be another, so that what it is now says little."""
    load, standing = text(state.load), text(state.standing)
    for fact in (state.load, state.standing, state.needs_reload):
        if isinstance(fact, Unknown):
            return HoldReason(fact.why, {"detail": fact.detail})
    if load == "not-found" and spec.content is None:
        return HoldReason("NoSuchUnit", {"unit": spec.name})
    if load in _UNFIT and not changing:
        return HoldReason("UnitUnfit", {"unit": spec.name, "load": load})
    if found := _overridden(spec, state, changing=changing):
        return found
    if load == "masked" and spec.content is None and spec.enabled is not True and spec.state != "started":
        return None
    return _enabling(spec, state, changing=changing) or _running(spec, state, str(standing), changing=changing or due)


def _overridden(spec: UnitSpec, state: UnitState, *, changing: bool) -> HoldReason | None:
    """A declared content that is not, or not alone, what systemd goes by."""
    if spec.content is None:
        return None
    foreign = [path for path in state.drop_ins if path not in spec.drop_ins and not path.startswith(_SYSTEMS)]
    if foreign:
        return HoldReason("ForeignDropIn", {"unit": spec.name, "paths": foreign})
    fragment = text(state.fragment)
    settled = not changing and state.needs_reload == Value(False)
    if settled and fragment is not None and fragment != unit_path(spec.name):
        return HoldReason("OtherFragment", {"unit": spec.name, "path": fragment, "ours": unit_path(spec.name)})
    return None


def _enabling(spec: UnitSpec, state: UnitState, *, changing: bool) -> HoldReason | None:
    found = text(state.file_state)
    if spec.enabled is None or (changing and spec.content is not None):
        if spec.enabled and spec.content is not None and not has_install(spec.content) and not own_drop_ins(spec):
            return HoldReason("NotEnableable", {"unit": spec.name, "found": "static"})
        return None
    if found == "bad" or (spec.enabled and found in _FIXED) or (not spec.enabled and found == "generated"):
        return HoldReason("NotEnableable", {"unit": spec.name, "found": found})
    return None


def settings(content: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Section, key and value of each line of a unit file that says any; systemd.syntax(7), but for continued lines."""
    section, found = b"", []
    for line in content.splitlines():
        words = line.strip()
        if words.startswith(b"["):
            section = words.strip(b"[]")
        elif words[:1] not in (b"#", b";") and b"=" in words:
            key, _, value = words.partition(b"=")
            found.append((section, key.strip(), value.strip()))
    return found


def has_install(content: bytes) -> bool:
    """Whether the text says anything in [Install]."""
    return any(section == b"Install" for section, _, _ in settings(content))


def _passing(spec: UnitSpec, state: UnitState) -> bool:
    """Whether it is a oneshot that is over when it has ended, by what is declared or, where that is nothing, by what is there."""
    if spec.content is None:
        return state.passing
    said = {key: value.lower() for section, key, value in settings(spec.content) if section == b"Service"}
    return said.get(b"Type") == b"oneshot" and said.get(b"RemainAfterExit") not in (b"yes", b"true", b"on", b"1")


def _running(spec: UnitSpec, state: UnitState, standing: str, *, changing: bool) -> HoldReason | None:
    about = {"unit": spec.name}
    if spec.state is not None and standing in ("starting", "stopping"):
        return HoldReason("UnitInTransition", {**about, "state": standing})
    if spec.state != "started":
        return None
    if _passing(spec, state) and standing == "stopped" and not state.referred and not spec.enabled:
        return HoldReason("NotRemembered", about)
    if changing:
        return None
    if standing == "crash-looping":
        said = {"restarts": state.restarts, "result": state.result, "status": state.exit_status}
        return HoldReason("CrashLooping", {**about, **{k: v.value if isinstance(v, Value) else None for k, v in said.items()}})
    if standing == "stopped" and state.skipped:
        return HoldReason("ConditionsNotMet", about)
    return None


def changes(spec: UnitSpec, state: UnitState, *, content: bool, drop_ins: bool, due: tuple[str, ...]) -> list[FieldChange]:
    """What has to become different beside the content. `content`, `drop_ins`: whether this plan writes it, or one of those."""
    found: list[FieldChange] = []
    file_state, standing = text(state.file_state), text(state.standing)
    if spec.enabled is not None and _other_enabling(spec.enabled, file_state):
        found.append(FieldChange("enabled", file_state, "enabled" if spec.enabled else "disabled"))
    elif file_state in _MASKED and spec.state == "started":
        found.append(FieldChange("enabled", file_state, "unmasked"))
    unknown = spec.content is not None and text(state.load) == "not-found"
    if not content and (drop_ins or unknown or state.needs_reload == Value(True)):
        found.append(FieldChange("loaded", "outdated", "current"))
    if spec.state == "started" and standing not in _AT_WORK:
        found.append(FieldChange("state", standing, "started"))
    if spec.state == "stopped" and standing not in _AT_REST:
        found.append(FieldChange("state", standing, "stopped"))
    return found + [FieldChange("startedAfter", None, path) for path in due]


def _other_enabling(wanted: bool, found: str | None) -> bool:
    if wanted:
        return found not in _ON
    return found in _ON or found == "enabled-runtime"
