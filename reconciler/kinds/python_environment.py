"""PythonEnvironment: exactly what a lock says, as sealed builds; the environment's name leads to one of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.facts import environment_builds as fact
from reconciler.facts.environment_builds import ROOT, Builds, Damage
from reconciler.kinds.base import Context, Draft, Todo, Verdict, held
from reconciler.model.desired import PackageManager, PythonEnvironmentSpec, Spec
from reconciler.model.fact import Absent, Fact, Facts, Probe, Unknown, Value
from reconciler.model.observed import Fields, Observation
from reconciler.model.plan import Action, FieldChange

BUILD_DEADLINE = 3600.0  # seconds; a build that takes longer is killed, and never linked
SWITCH_DEADLINE = 300.0
SHOWN = 10  # damaged packages, and users, that are listed one by one
BY_NAME = " by name"  # as the node says of a process that was started by the environment's name, not by a build's path


class PythonEnvironment:
    """Named by the environment. Damage is never mended in place: a new build is made, and the old one stays while it is used."""

    name = "PythonEnvironment"

    def rank(self, spec: Spec) -> int:
        return 40

    def probes(self, spec: Spec, manager: PackageManager | None) -> tuple[Probe, ...]:
        assert isinstance(spec, PythonEnvironmentSpec)
        wanted = {"lock": spec.digest[:12], "python": spec.python, "wheelhouse": spec.wheelhouse, "versions": dict(spec.versions)}
        return (fact.probe(spec.name, wanted, shared=spec.shared),)

    def observe(self, spec: Spec, context: Context) -> Observation:
        """Fields `build`, `lock` (12 hex digits) and `damage` (None: none) of what the name leads to."""
        assert isinstance(spec, PythonEnvironmentSpec)
        found = fact.found(context.facts, spec.name)
        if not isinstance(found, Value):
            return found
        return _linked(found.value)

    def compare(self, spec: Spec, context: Context) -> Verdict:
        assert isinstance(spec, PythonEnvironmentSpec)
        found = fact.found(context.facts, spec.name)
        if not isinstance(found, Value):
            why = found if isinstance(found, Unknown) else Unknown("NotReadable", found.reason)
            return held(why.why, detail=why.detail)
        here = found.value
        linked = _linked(here)
        if isinstance(linked, Unknown):
            return held(linked.why, path=f"{ROOT}/{spec.name}", detail=linked.detail)
        observed = linked.value if isinstance(linked, Value) else None
        usable = here.usable(spec.digest)
        if usable is not None and observed and observed["build"] == usable:
            return Verdict(Action.NONE, observed=observed)
        if stopped := self._stopped(spec, here, observed, usable):
            return stopped
        fields = _changes(here, observed, usable or here.next(spec.digest))
        return Verdict(Action.UPDATE if observed else Action.CREATE, fields, observed=observed)

    def _stopped(self, spec: PythonEnvironmentSpec, here: Builds, observed: Fields | None, usable: str | None) -> Verdict | None:
        """Why it is left as it is: somebody decided so, or what a build needs is not there."""
        if here.rejected and here.rejected.lock == spec.digest:
            return held("RolledBack", observed, lock=spec.digest[:12], by=here.rejected.by)
        if spec.builder is not None:
            return held("BuilderFirst", observed, builder=spec.builder)
        if usable is not None:
            return None
        if here.python is None:
            return held("NoPythonSeries", observed, python=spec.python)
        if here.installer is None:
            return held("NoInstaller", observed, python=spec.python)
        missing = here.missing
        if isinstance(missing, Absent):
            return held("NoWheelhouse", observed)
        if isinstance(missing, Unknown):
            return held(missing.why, observed, wheelhouse=spec.wheelhouse, detail=missing.detail)
        if missing.value:
            return held("WheelsMissing", observed, wheelhouse=spec.wheelhouse, names=list(missing.value))
        return None

    def follow_up(self, todo: Todo, context: Context) -> tuple[Probe, ...]:
        return ()

    def steps(self, todo: Todo, context: Context) -> tuple[Draft, ...]:
        """A build takes two: its requirements as a file, then the build, which also moves the link. A switch takes one."""
        drafts = []
        for resource, verdict in todo:
            spec = resource.spec
            assert isinstance(spec, PythonEnvironmentSpec)
            build = next(str(f.after) for f in verdict.fields if f.path == "build")
            found = fact.found(context.facts, spec.name)
            ids = (resource.id,)
            if isinstance(found, Value) and found.value.usable(spec.digest) == build:
                drafts.append(Draft("switch-environment", ids, switch(spec.name, build), SWITCH_DEADLINE))
                continue
            drafts.append(Draft("write-environment-lock", ids, {"file": _lock_file(spec)}))
            spared = _spared(spec.name, found, context.others.get(resource.id, ()))
            drafts.append(Draft("build-environment", ids, _build(spec, build, spared), BUILD_DEADLINE + 60))
        return tuple(drafts)


def _spared(name: str, here: Fact[Builds], others: tuple[Facts | None, ...]) -> tuple[str, ...] | None:
    """Builds that may not go, as nodes that see the same folder need them; None: one of them did not say, and nothing may go."""
    if not others:
        return ()
    link = here.value.link if isinstance(here, Value) else here
    elsewhere = [fact.found(facts, name) if facts else Unknown("NotAsked") for facts in others]
    # also what is linked until the build is made: a process may start from it there meanwhile
    return fact.used(elsewhere, link.value if isinstance(link, Value) else None)


def _linked(here: Builds) -> Observation:
    link = here.link
    if not isinstance(link, Value):
        return link
    build = here.builds.get(link.value)
    damage = None if build and build.sealed else "not a whole build"
    if build and build.damage:
        damage = _damage_text(build.damage)
    return Value({"build": link.value, "lock": link.value[:12], "damage": damage})


def _damage_text(damage: Damage) -> str:
    moved = [f"{name} {after or '-'} (sealed {before or '-'})" for name, (before, after) in damage.packages.items()]
    return ", ".join([*moved[:SHOWN], f"{damage.files} files: {', '.join(damage.first)}"])


def _changes(here: Builds, observed: Fields | None, target: str) -> tuple[FieldChange, ...]:
    """The build, the lock where it is another, what is damaged in the build that is linked now, and who uses that."""
    before = observed or {"build": None, "lock": None}
    build = here.builds.get(str(before["build"]))
    fields = [FieldChange("build", before["build"], target)]
    if before["lock"] != target[:12]:
        fields.append(FieldChange("lock", before["lock"], target[:12]))
    elif build is None or not build.sealed:
        fields.append(FieldChange("seal", None, "whole"))
    elif build.damage:
        fields += _damaged(build.damage)
    return (*fields, *_running(build.users or (), str(before["build"]), target)) if build else tuple(fields)


def _running(users: tuple[str, ...], build: str, target: str) -> Iterator[FieldChange]:
    """What runs is the third layer: it goes on with what it was started from, by its path or by the environment's name."""
    named = [user for user in users if user.startswith("pid ") and user.endswith(BY_NAME)]
    for path, of, after in (
        ("users", [user for user in users if user not in named], f"stay on {build}"),
        ("users by name", [user.removesuffix(BY_NAME) for user in named], f"keep what they imported, import from {target} then"),
    ):
        if of:
            more = f" and {len(of) - SHOWN} more" if len(of) > SHOWN else ""
            yield FieldChange(path, f"{', '.join(of[:SHOWN])}{more}", after)


def _damaged(damage: Damage) -> list[FieldChange]:
    packages = list(damage.packages.items())[:SHOWN]
    fields = [FieldChange(f"package {name}", after, sealed) for name, (sealed, after) in packages]
    if damage.files:
        fields.append(FieldChange("files", f"{damage.files} differ ({', '.join(damage.first)})", "as sealed"))
    return fields


def _lock_file(spec: PythonEnvironmentSpec) -> dict[str, Any]:
    content = base64.b64encode(spec.requirements.encode()).decode()
    path = f"{ROOT}/{spec.name}.d/{spec.digest[:12]}.txt"
    return {"path": path, "content": content, "mode": 0o644, "owner": "root", "group": "root"}


def _act(name: str, do: str, kill_after: float, **more: Any) -> Mapping[str, Any]:
    arguments = {"do": do, "path": ROOT, "name": name, **more}
    command = {"argv": [f"{do}-environment", name], "fragment": "build", "needs": ["builds", "build"], "arguments": arguments}
    return {"commands": [command], "kill_after": kill_after}


def _build(spec: PythonEnvironmentSpec, build: str, spared: tuple[str, ...] | None) -> Mapping[str, Any]:
    return _act(
        spec.name,
        "build",
        BUILD_DEADLINE,
        build=build,
        lock=spec.digest[:12],
        digest=spec.digest,
        python=spec.python,
        versions=[name for name, _ in spec.versions],
        pins=[name.partition("[")[0] for name in spec.pins],
        wheelhouse=spec.wheelhouse,
        keep=spec.keep,
        spared=spared,
    )


def switch(name: str, build: str, rejected: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """The action that lets an environment's name lead to a build. `rejected`: what the next apply must not bring back."""
    return _act(name, "switch", SWITCH_DEADLINE, build=build, rejected=rejected)


def collect(name: str, keep: int, spared: tuple[str, ...]) -> Mapping[str, Any]:
    """The action that removes builds beyond the newest `keep` which nobody needs. `spared`: those that other nodes need."""
    return _act(name, "collect", SWITCH_DEADLINE, keep=keep, spared=spared)
