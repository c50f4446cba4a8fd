"""Who uses the GPUs: processes that have a device of the NVIDIA driver open."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import given, raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

# proc(5): pid (comm) state ... starttime is the 22nd; comm may hold blanks and brackets
_STAT = re.compile(r"\d{1,10} \((.{0,64})\) (?:\S{1,24} ){19}(\d{1,20})\b", re.DOTALL)
_MINOR = re.compile(r"/dev/nvidia(\d{1,4})(?: \(deleted\))?\Z")
_UNIT = re.compile(r"[^/]{1,255}\.(?:service|scope|slice)\Z")
# slurmd's cgroup plugins: v1 .../slurm/uid_1000/job_123/step_0, v2 .../slurmstepd.scope/job_123/step_0
_JOB = re.compile(r"/job_(\d{1,10})(?:/|$)")


@dataclass(frozen=True, slots=True)
class GpuUser:
    """One process. `started`: seconds since boot. `argv0`: what its command line begins with; the rest may hold secrets.

    `user`: Absent(NotInPasswd) for one of a directory service. `unit`: the innermost systemd unit, `session` scopes included.
    `minors`: GPUs by device number; `devices`: all it has open, nvidiactl and nvidia-uvm too.
    """

    pid: Fact[int]
    started: Fact[float]
    command: Fact[str]
    argv0: Fact[str]
    uid: Fact[int]
    user: Fact[str]
    unit: Fact[str]
    slurm_job: Fact[int]
    minors: tuple[int, ...]
    devices: Fact[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class GpuUsers:
    """`complete`: Unknown(PermissionDenied) where open files of some processes may not be seen: there may be more users.

    Processes of other PID namespaces, such as the host's of a container, are seen by nobody in it.
    """

    users: tuple[GpuUser, ...]
    complete: Fact[bool]


def parse(raws: tuple[Raw, ...]) -> Fact[GpuUsers]:
    """Absent(DriverNotLoaded): nothing else makes the devices. Unknown where not one user was found and some may be hidden."""
    said = raw.fragment(raws[0])
    if not isinstance(said, Value):
        return said
    answer = said.value if isinstance(said.value, Mapping) else {}
    loaded, items, complete = given.flag(answer, "loaded"), given.objects(answer, "users"), _complete(answer)
    if not isinstance(loaded, Value):
        return loaded
    if not loaded.value:
        return Absent("DriverNotLoaded")
    if not isinstance(items, Value):
        return items
    if not items.value and isinstance(complete, Unknown):
        return complete
    hertz = given.whole(answer, "hertz")
    users = [_user(item, hertz, given.mapping(answer, "passwd")) for item in items.value]
    return Value(GpuUsers(tuple(sorted(users, key=_by_pid)), complete))


def _by_pid(user: GpuUser) -> int:
    return user.pid.value if isinstance(user.pid, Value) else -1


def _complete(answer: Mapping[str, Any]) -> Fact[bool]:
    seen, denied = given.whole(answer, "seen"), given.whole(answer, "denied")
    if not isinstance(denied, Value):
        return denied
    of = f"{denied.value} of {seen.value if isinstance(seen, Value) else '?'} processes"
    return Unknown("PermissionDenied", of) if denied.value else Value(True)


def _user(item: Mapping[str, Any], hertz: Fact[int], passwd: Mapping[str, Any]) -> GpuUser:
    stat, devices, groups = given.text(item, "stat"), given.texts(item, "devices"), given.text(item, "cgroup")
    found = _STAT.match(stat.value) if isinstance(stat, Value) else None
    uid = given.whole(item, "uid")
    shown = tuple(raw.clean(path, 80) for path in devices.value) if isinstance(devices, Value) else ()
    lines = groups.value.split("\n") if isinstance(groups, Value) else []
    return GpuUser(
        pid=given.whole(item, "pid"),
        started=_seconds(found, hertz),
        command=Value(raw.clean(found[1], 64)) if found else Unknown("UnreadableLine", "stat"),
        argv0=_cleaned(given.text(item, "argv0")),
        uid=uid,
        user=_cleaned(given.text(passwd, str(uid.value)) if str(uid.value) in passwd else Absent("NotInPasswd"))
        if isinstance(uid, Value)
        else uid,
        unit=_unit(lines) if isinstance(groups, Value) else groups,
        slurm_job=_job(lines) if isinstance(groups, Value) else groups,
        minors=tuple(sorted({int(minor[1]) for path in shown if (minor := _MINOR.match(path))})),
        devices=Value(shown) if isinstance(devices, Value) else devices,
    )


def _cleaned(fact: Fact[str]) -> Fact[str]:
    return Value(raw.clean(fact.value)) if isinstance(fact, Value) else fact


def _seconds(stat: re.Match[str] | None, hertz: Fact[int]) -> Fact[float]:
    if stat is None or not isinstance(hertz, Value) or hertz.value < 1:
        return Unknown("UnreadableLine", "stat")
    return Value(round(int(stat[2]) / hertz.value, 2))


def _paths(lines: list[str]) -> list[str]:
    """Of each hierarchy, systemd's own first: `0::PATH`, `1:name=systemd:PATH`."""
    cells = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    return [path for _, controller, path in sorted(cells, key=lambda cell: cell[1] not in ("", "name=systemd"))]


def _unit(lines: list[str]) -> Fact[str]:
    for path in _paths(lines):
        for part in reversed(path.split("/")):
            if _UNIT.match(part):
                return Value(raw.clean(part))
    return Absent("NoUnit")


def _job(lines: list[str]) -> Fact[int]:
    for path in _paths(lines):
        if job := _JOB.search(path):
            return Value(int(job[1]))
    return Absent("NoSlurmJob")


def stable(value: Any) -> Any:
    """Who holds which GPUs, without the numbers that change with each start."""
    users = [{key: user[key] for key in ("command", "uid", "unit", "minors")} for user in value["users"]]
    return {"users": sorted(users, key=str), "complete": value["complete"]}


FACT = LiveFact("gpu-users", lambda about: (Ask("gpu_users", deadline=10.0),), parse, stable, slow=True)
