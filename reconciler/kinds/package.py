"""Package: an OS package present, absent, or at one version that nothing else may move."""

from __future__ import annotations

import base64

from reconciler.facts import available, packages, raw
from reconciler.kinds.base import Context, Draft, Todo, Verdict, held
from reconciler.model.desired import PackageManager, PackageSpec, Resource, ResourceId, Spec
from reconciler.model.fact import Absent, Fact, Probe, Run, Unknown, Value
from reconciler.model.observed import Fields, Observation
from reconciler.model.plan import Action, FieldChange
from reconciler.model.version import Version

TRANSACTION_DEADLINE = 3600.0  # seconds that the controller follows a transaction; it is never killed half way
NEEDED = "still-needed"


class Package:
    """Named by the package. All packages of a node change in one transaction."""

    name = "Package"

    def rank(self, spec: Spec) -> int:
        return 20

    def probes(self, spec: Spec, manager: PackageManager | None) -> tuple[Probe, ...]:
        both = {"dnf": (packages.RPM, packages.LOCK), "apt": (packages.DEB,)}
        return both[manager] if manager else (*both["dnf"], *both["apt"])

    def observe(self, spec: Spec, context: Context) -> Observation:
        """Fields `version` and `lock` (the version it is kept at; None: free)."""
        assert isinstance(spec, PackageSpec)
        if context.manager is None:
            return Unknown("NoPackageManager")
        everything = packages.installed(context.facts, context.manager)
        if isinstance(everything, Absent):
            return Unknown("NoPackageManager", context.manager)
        if isinstance(everything, Unknown):
            return everything
        found = everything.value.get(spec.name, ())
        lock = self._lock(spec.name, found, context)
        if isinstance(lock, Unknown) and spec.version:
            return lock
        if not found:
            return Absent("NotInstalled")
        versions = sorted({p.version for p in found})
        shown = ", ".join(map(str, versions))
        if len(versions) > 1 and spec.ensure != "present":  # several kernels side by side are present all the same
            return Unknown("SeveralVersions", shown)
        if not all(p.whole for p in found):
            return Unknown("HalfInstalled", shown)
        if isinstance(lock, Unknown):
            return Value({"version": shown})
        return Value({"version": shown, "lock": lock.value if isinstance(lock, Value) else None})

    def _lock(self, name: str, found: tuple[packages.Installed, ...], context: Context) -> Fact[str]:
        if context.manager == "apt":
            return Value(str(found[0].version)) if found and all(p.held for p in found) else Absent("NotHeld")
        locks = packages.locks(context.facts)
        if not isinstance(locks, Value):
            return locks
        kept = locks.value.get(name, ())
        return Value(", ".join(map(str, kept))) if kept else Absent("NotLocked")

    def compare(self, spec: Spec, context: Context) -> Verdict:
        assert isinstance(spec, PackageSpec)
        found = self.observe(spec, context)
        if isinstance(found, Unknown):
            return held(found.why, detail=found.detail)
        observed = found.value if isinstance(found, Value) else None
        if spec.ensure == "absent":
            return self._remove(spec, observed, context)
        installed = self._version(spec.name, context) if observed else None
        if installed and _is_met(spec, installed):
            return self._keep(spec, observed or {}, installed)
        if spec.ensure == "prefix" and spec.locked is None:
            return held("NotPinned", observed, name=spec.name, wanted=spec.version)
        return self._install(spec, observed, context)

    def _version(self, name: str, context: Context) -> Version | None:
        everything = packages.installed(context.facts, context.manager or "dnf")
        return everything.value[name][0].version if isinstance(everything, Value) and name in everything.value else None

    def _keep(self, spec: PackageSpec, observed: Fields, installed: Version) -> Verdict:
        if spec.ensure == "present" or observed.get("lock") == str(installed):
            return Verdict(Action.NONE, observed=observed)
        return Verdict(Action.UPDATE, (FieldChange("lock", observed.get("lock"), str(installed)),), observed=observed)

    def _remove(self, spec: PackageSpec, observed: Fields | None, context: Context) -> Verdict:
        if observed is None:
            return Verdict(Action.NONE)
        needed = raw.part(context.facts, NEEDED)
        if needed and needed.error:
            unread = raw.command_text(needed)
            code, detail = (unread.why, unread.detail) if isinstance(unread, Unknown) else ("NoPackageManager", "")
            return held(code, observed, detail=detail)
        if needed and (needed.status != 0 or self._others(needed.out, context)):
            text = (needed.err + b" " + needed.out).decode("utf-8", "replace")
            return held("StillNeeded", observed, detail=raw.clean(text.rpartition("Failed dependencies:")[2]))
        return Verdict(Action.DELETE, (FieldChange("version", observed["version"], None),), observed=observed)

    def _others(self, simulated: bytes, context: Context) -> bool:
        """Whether apt's simulation (`Remv NAME ...` lines) would remove more than was asked for; rpm's fails by itself."""
        asked = self._asked(context)
        lines = [line.split() for line in simulated.decode("utf-8", "replace").splitlines() if line.startswith("Remv ")]
        return any(":".join(words[1:2]).partition(":")[0] not in asked for words in lines)

    def _asked(self, context: Context) -> frozenset[str]:
        needed = context.facts.readings.get(NEEDED)
        source = needed.raws[0].source if needed and needed.raws else ""
        return frozenset(source.split())

    def _install(self, spec: PackageSpec, observed: Fields | None, context: Context) -> Verdict:
        """Create or update; once the repositories were asked, to a version that they really have."""
        target = spec.locked or spec.version or "newest"
        if context.facts.raws(available.KEY) is not None:
            chosen = self._choose(spec, context)
            if isinstance(chosen, Unknown):
                return held("RepositoriesUnreadable", observed, detail=chosen.detail or chosen.why)
            if isinstance(chosen, Absent):
                offered = self._offered(spec.name, context)
                code = "VersionNotOffered" if offered else "PackageNotOffered"
                return held(code, observed, name=spec.name, wanted=spec.locked or spec.version, offered=[str(v) for v in offered])
            target = str(chosen.value)
        before = observed or {}
        fields = [FieldChange("version", before.get("version"), target)]
        if spec.version and before.get("lock") != target:
            fields.append(FieldChange("lock", before.get("lock"), target))
        return Verdict(Action.UPDATE if observed else Action.CREATE, tuple(fields), observed=observed)

    def _offered(self, name: str, context: Context) -> tuple[Version, ...]:
        offered = available.offered(context.facts, context.manager or "dnf")
        return offered.value.get(name, ()) if isinstance(offered, Value) else ()

    def _choose(self, spec: PackageSpec, context: Context) -> Fact[Version]:
        """The version on offer that the lock chose; without one the newest that the spec allows."""
        offered = available.offered(context.facts, context.manager or "dnf")
        if not isinstance(offered, Value):
            return offered
        fit = [v for v in offered.value.get(spec.name, ()) if _may_be(spec, v)]
        return Value(fit[-1]) if fit else Absent("NotOffered")

    def _marks(self, name: str, context: Context) -> list[str]:
        """What `apt-mark` has to be told: the name alone means the native architecture only."""
        everything = packages.installed(context.facts, "apt")
        found = everything.value.get(name, ()) if isinstance(everything, Value) else ()
        return [f"{name}:{p.arch}" for p in found] if len(found) > 1 else [name]

    def follow_up(self, todo: Todo, context: Context) -> tuple[Probe, ...]:
        """What the repositories offer for what is to be installed, and who needs what is to be removed."""
        if context.manager is None:
            return ()
        wanted = tuple(sorted(r.id.name for r, v in todo if _installs(v)))
        gone = tuple(sorted(r.id.name for r, v in todo if v.action is Action.DELETE))
        probes = []
        if wanted:
            probes.append(available.probe(context.manager, wanted, context.repositories))
        if gone:
            test = ("rpm", "-e", "--test") if context.manager == "dnf" else ("apt-get", "-s", "-q", "remove")
            probes.append(Probe(NEEDED, (Run((*test, *gone)),)))
        return tuple(probes)

    def steps(self, todo: Todo, context: Context) -> tuple[Draft, ...]:
        targets = {r.id: v for r, v in todo}
        moved = [r for r, v in todo if _installs(v) or v.action is Action.DELETE]
        locked = [r for r, v in todo if any(f.path == "lock" for f in v.fields) or v.action is Action.DELETE]
        drafts = []
        if moved:
            installs = [(r.id.name, _target(targets[r.id])) for r in moved if _installs(targets[r.id])]
            removals = [r.id.name for r in moved if targets[r.id].action is Action.DELETE]
            commands = _dnf(installs, removals) if context.manager == "dnf" else _apt(installs, removals)
            ids = tuple(r.id for r in moved)
            drafts.append(Draft("package-transaction", ids, {"commands": commands, "kill_after": 0}, TRANSACTION_DEADLINE))
        if locked:
            drafts += self._lock_steps(locked, targets, context)
        return tuple(drafts)

    def _former_locks(self, context: Context) -> tuple[str, ...]:
        """As they will be then: the packages of another kind may have been locked by a step before."""
        planned = context.files.get(packages.LOCK_FILE)
        return packages.lines_of(planned) if planned is not None else packages.lock_lines(context.facts)

    def _lock_steps(self, locked: list[Resource], targets: dict[ResourceId, Verdict], context: Context) -> list[Draft]:
        ids = tuple(r.id for r in locked)
        keep = {r.id.name: _lock_target(targets[r.id]) for r in locked}
        if context.manager == "apt":
            names = [mark for name, version in sorted(keep.items()) if version for mark in self._marks(name, context)]
            command = {"argv": ["apt-mark", "hold", *names]}
            return [Draft("version-lock", ids, {"commands": [command], "kill_after": 60})] if names else []
        former = self._former_locks(context)
        lines = [line for line in former if packages.lock_name(line) not in keep]
        lines += [_lock_line(name, version) for name, version in sorted(keep.items()) if version]
        if tuple(lines) == former:
            return []
        file = {
            "path": packages.LOCK_FILE,
            "content": base64.b64encode(packages.lock_file(tuple(lines))).decode(),
            "mode": 0o644,
            "owner": "root",
            "group": "root",
        }
        return [Draft("version-lock", ids, {"file": file})]


def _may_be(spec: PackageSpec, version: Version) -> bool:
    """Whether this is a version to install: the locked one, release included, where there is a lock."""
    return str(version) == spec.locked if spec.locked else spec.version is None or version.meets(spec.version)


def _is_met(spec: PackageSpec, installed: Version) -> bool:
    """Whether what is installed is as declared. A prefix is met by whatever begins so, also beside a lock."""
    return installed.meets(spec.version or "") if spec.ensure == "prefix" else _may_be(spec, installed)


def _installs(verdict: Verdict) -> bool:
    return any(f.path == "version" and f.after is not None for f in verdict.fields)


def _target(verdict: Verdict) -> str:
    return next(str(f.after) for f in verdict.fields if f.path == "version")


def _lock_target(verdict: Verdict) -> str | None:
    return next((str(f.after) for f in verdict.fields if f.path == "lock"), None)


def _lock_line(name: str, version: str) -> str:
    """As `dnf versionlock add` writes it; the epoch always stands there."""
    epoch, _, rest = version.rpartition(":")
    return f"{name}-{epoch or '0'}:{rest}.*"


def _dnf(installs: list[tuple[str, str]], removals: list[str]) -> list[dict[str, object]]:
    # our own locks must not forbid what they are about to be moved to; unused dependencies are not ours to remove
    common = ["dnf", "-y", "-q", "--disableplugin=versionlock", "--setopt=clean_requirements_on_remove=False"]
    specs = [f"{name}-{version}" for name, version in installs]
    if specs and removals:
        script = f"install {' '.join(specs)}\nremove {' '.join(removals)}\nrun\n"
        return [{"argv": [*common, "shell"], "stdin": script}]
    return [{"argv": [*common, "install", *specs] if specs else [*common, "remove", *removals]}]


def _apt(installs: list[tuple[str, str]], removals: list[str]) -> list[dict[str, object]]:
    wait = ["-o", "DPkg::Lock::Timeout=500"]
    commands: list[dict[str, object]] = [{"argv": ["apt-get", "-q", *wait, "update"]}] if installs else []
    install = ["apt-get", "-y", "-q", *wait, "-o", "Dpkg::Options::=--force-confold"]
    install += ["--allow-downgrades", "--allow-change-held-packages"]
    if not removals:
        install.append("--no-remove")  # an installation that would remove something else stops
    specs = [f"{name}={version}" for name, version in installs] + [f"{name}-" for name in removals]
    return [*commands, {"argv": [*install, "install", *specs]}]
