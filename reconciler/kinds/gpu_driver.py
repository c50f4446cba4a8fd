"""GpuDriver: NVIDIA's driver as packages of one version, the module that a boot would load, and the one that is loaded."""

from __future__ import annotations

import base64
import dataclasses

from reconciler.facts import available, packages, raw
from reconciler.kinds import driver_holds
from reconciler.kinds.base import Context, Draft, Todo, Verdict, held
from reconciler.kinds.driver_layers import Layers, layers, probes
from reconciler.kinds.package import Package
from reconciler.model.desired import GpuDriverSpec, Origin, PackageManager, Resource, ResourceId, Spec
from reconciler.model.fact import Absent, Fact, Facts, Probe, Read, Unknown, Value
from reconciler.model.observed import Fields, Observation
from reconciler.model.plan import RESTART_DEADLINE, WRITING, Action, FieldChange
from reconciler.model.version import Version, is_prefix

STREAM_FILE = "/etc/dnf/modules.d/nvidia-driver.module"
STREAM = Probe("driver-stream", (Read(STREAM_FILE, 64 << 10),))
OFFERED = "available-driver"  # beside the probe of Package, which must not see packages of streams that are not enabled
LOADED_FILE = "/proc/driver/nvidia/version"  # has the version of the loaded module as one word
QUIET = frozenset({"lock", "stream"})  # fields whose change no process on a GPU can feel

_PACKAGE = Package()
_NOWHERE = Origin("")  # members are declared by what the driver's version stands for
_Members = list[tuple[Resource, Verdict]]


ID = "GpuDriver/nvidia"


class GpuDriver:
    """Named nvidia. All its packages change in one transaction, and a node is restarted at most once for it."""

    name = "GpuDriver"

    def rank(self, spec: Spec) -> int:
        return 25  # after other packages (headers and compilers among them), before what runs on GPUs

    def probes(self, spec: Spec, manager: PackageManager | None) -> tuple[Probe, ...]:
        assert isinstance(spec, GpuDriverSpec)
        stream = (STREAM,) if spec.stream else ()
        return (*_PACKAGE.probes(spec.packages[0], manager), *stream, *probes())

    def observe(self, spec: Spec, context: Context) -> Observation:
        """Fields `packages` (their version, several where they differ), `stream`, `onDisk`, `loaded`."""
        assert isinstance(spec, GpuDriverSpec)
        return self._observed(spec, context, layers(context.facts, ID))

    def _observed(self, spec: GpuDriverSpec, context: Context, found: Layers) -> Observation:
        installed = _installed(spec, context)
        if isinstance(installed, Unknown):
            return installed
        assert isinstance(installed, Value)
        stream = _stream(context) if spec.stream else Absent("NoStream")
        for fact in (found.on_disk, found.loaded, stream):
            if isinstance(fact, Unknown):
                return fact
        fields: dict[str, str | int | bool | None] = {"packages": _summary(installed.value, len(spec.packages))}
        fields |= {"onDisk": _plain(found.on_disk), "loaded": _plain(found.loaded)}
        if spec.stream:
            fields["stream"] = _plain(stream)
        return Value(fields)

    def compare(self, spec: Spec, context: Context) -> Verdict:
        assert isinstance(spec, GpuDriverSpec)
        seen = layers(context.facts, ID)
        found = self._observed(spec, context, seen)
        if not isinstance(found, Value):
            return held(found.why, detail=found.detail) if isinstance(found, Unknown) else held("NotAsked")
        members = self._judged(spec, context)
        if hold := next((v.hold for _, v in members if v.hold), None):
            return Verdict(Action.HOLD, hold=hold, observed=found.value)
        target = _target(spec, members, found.value)
        fields = _fields(spec, found.value, members, target, seen)
        moving = {f.path for f in fields if f.moves}
        if not moving:
            return Verdict(Action.NONE, observed=found.value)
        if moving - QUIET and (reason := driver_holds.hold(spec, seen, moving, target, spare=context.spare)):
            return Verdict(Action.HOLD, fields, hold=reason, observed=found.value)
        created = found.value["packages"] is None
        return Verdict(Action.CREATE if created else Action.UPDATE, fields, observed=found.value)

    def _judged(self, spec: GpuDriverSpec, context: Context) -> _Members:
        sub = _own_offers(context)
        return [
            (Resource(ResourceId(_PACKAGE.name, member.name), member, _NOWHERE), _PACKAGE.compare(member, sub))
            for member in spec.packages
        ]

    def follow_up(self, todo: Todo, context: Context) -> tuple[Probe, ...]:
        """Which versions the repositories have, those of the stream that will be enabled included."""
        asked = []
        for resource, _ in todo:
            assert isinstance(resource.spec, GpuDriverSpec)
            names = tuple(r.id.name for r, v in self._judged(resource.spec, context) if any(f.path == "version" for f in v.fields))
            if names and context.manager:
                asked.append(available.probe(context.manager, names, context.repositories, OFFERED, every_stream=True))
        return tuple(asked)

    def steps(self, todo: Todo, context: Context) -> tuple[Draft, ...]:
        drafts: list[Draft] = []
        for resource, verdict in todo:
            assert isinstance(resource.spec, GpuDriverSpec)
            changed = {f.path: f for f in verdict.fields if f.moves}
            if "stream" in changed:
                drafts.append(_stream_step(resource, str(resource.spec.stream)))
            members = [(r, v) for r, v in self._judged(resource.spec, context) if v.action in WRITING]
            own = _PACKAGE.steps(members, _own_offers(context)) if members else ()
            drafts += [dataclasses.replace(draft, resources=(resource.id,)) for draft in own]
            if "loaded" in changed:
                drafts.append(_reboot(resource, str(changed["loaded"].after)))
        return tuple(drafts)


def _own_offers(context: Context) -> Context:
    """What was asked for the driver alone, where Package looks for it."""
    readings = {k: v for k, v in context.facts.readings.items() if k != available.KEY}
    if OFFERED in readings:
        readings[available.KEY] = readings[OFFERED]
    return dataclasses.replace(context, facts=Facts(readings))


def _installed(spec: GpuDriverSpec, context: Context) -> Fact[dict[str, Version]]:
    """Which of the driver's packages are there, and in which version. Several of one name are for Package to hold."""
    if context.manager is None:
        return Unknown("NoPackageManager")
    everything = packages.installed(context.facts, context.manager)
    if not isinstance(everything, Value):
        return everything if isinstance(everything, Unknown) else Unknown("NoPackageManager", context.manager)
    return Value({name: everything.value[name][0].version for name in spec.names if name in everything.value})


def _summary(installed: dict[str, Version], wanted: int) -> str | None:
    """`580.95.05-1.el9`; where they differ or some are missing each version, and how many of the `wanted` packages have it."""
    versions = sorted(installed.values())
    each = {v.plain: sum(1 for other in versions if other == v) for v in versions}
    if not each or each == {versions[0].plain: wanted}:
        return next(iter(each), None)
    return ", ".join(f"{version} ({number} of {wanted} packages)" for version, number in each.items())


def _plain(fact: Fact[str]) -> str | None:
    return fact.value if isinstance(fact, Value) else None


def _stream(context: Context) -> Fact[str]:
    """The stream of dnf's module nvidia-driver that is enabled."""
    text = raw.file_text(raw.part(context.facts, STREAM.key))
    if not isinstance(text, Value):
        return text
    lines = dict(line.strip().partition("=")[::2] for line in text.value.splitlines())
    named = lines.get("state") == "enabled" and lines.get("stream")
    return Value(raw.clean(str(named), 80)) if named else Absent("NotEnabled")


def _target(spec: GpuDriverSpec, members: _Members, observed: Fields) -> str:
    """The version without epoch and release that is to be loaded: of a prefix the one that is there, or that will be."""
    if not is_prefix(spec.version):
        return spec.version
    coming = [str(f.after) for _, v in members for f in v.fields if f.path == "version"]
    return Version.parse(coming[0] if coming else str(observed["packages"])).version


def _fields(spec: GpuDriverSpec, observed: Fields, members: _Members, target: str, seen: Layers) -> tuple[FieldChange, ...]:
    """All layers, those too that stay as they are: who reads a plan for a driver has to see each."""
    moved = [f for _, v in members for f in v.fields if f.path == "version"]
    locks = [f for _, v in members for f in v.fields if f.path == "lock"]
    found = []
    if spec.stream and observed["stream"] != spec.stream:
        found.append(FieldChange("stream", observed["stream"], spec.stream))
    if locks and not moved:
        found.append(FieldChange("lock", f"{len(members) - len(locks)} of {len(members)} packages", f"{len(members)} packages"))
    after = str(moved[0].after).rpartition(":")[2] if moved else observed["packages"]
    found.append(FieldChange("packages", observed["packages"], after))
    found.append(FieldChange("onDisk", observed["onDisk"], target))
    found.append(FieldChange("loaded", observed["loaded"], target))
    users = len(seen.users.value) if isinstance(seen.users, Value) else None
    found.append(FieldChange("inUse", users, users))
    return tuple(found)


def _stream_step(resource: Resource, stream: str) -> Draft:
    """What `dnf module enable` writes; the command refuses to go from one stream to another."""
    text = f"[nvidia-driver]\nname=nvidia-driver\nstream={stream}\nprofiles=\nstate=enabled\n\n"
    content = base64.b64encode(text.encode()).decode()
    file = {"path": STREAM_FILE, "content": content, "mode": 0o644, "owner": "root", "group": "root"}
    return Draft("enable-stream", (resource.id,), {"file": file})


def _reboot(resource: Resource, version: str) -> Draft:
    """Only once nothing but what is loaded is left to differ: a module that was not built is not there after a reboot either."""
    reboot = {"resource": str(resource.id), "wanted": version, "left": ["loaded"], "path": LOADED_FILE}
    commands = [{"argv": ["systemctl", "--no-block", "reboot"]}]
    return Draft("reboot", (resource.id,), {"commands": commands, "kill_after": 0, "reboot": reboot}, RESTART_DEADLINE)
