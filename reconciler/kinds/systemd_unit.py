"""SystemdUnit: a unit's content, whether it starts at boot, whether it runs, and with what it was started."""

from __future__ import annotations

from reconciler.facts import declared_units, restarts
from reconciler.facts.declared_units import UnitState
from reconciler.kinds import unit_rules, unit_steps
from reconciler.kinds.base import Context, Draft, Todo, Verdict, held
from reconciler.kinds.file import File
from reconciler.model.desired import FileSpec, PackageManager, Resource, ResourceId, Spec, UnitSpec
from reconciler.model.fact import Absent, Probe, Unknown, Value
from reconciler.model.observed import Observation
from reconciler.model.plan import Action
from reconciler.model.units import is_template, restarts_itself, template_of, unit_path

_FILE = File()


def file_of(spec: UnitSpec) -> FileSpec | None:
    """The file that a declared content is, root's and 0644."""
    if spec.content is None:
        return None
    return FileSpec(unit_path(spec.name), spec.content, restart=(spec.name,) if restarts_itself(spec.name) else ())


def new_content(verdict: Verdict) -> bool:
    """Whether what is written says something else: a mode or an owner alone is no reason to restart."""
    return any(field.path in ("content", "type") for field in verdict.fields)


class SystemdUnit:
    """Named by the unit, its type included. A template has a content and nothing else."""

    name = "SystemdUnit"

    def rank(self, spec: Spec) -> int:
        return 50  # after Python environments, which a service may run from

    def probes(self, spec: Spec, manager: PackageManager | None) -> tuple[Probe, ...]:
        assert isinstance(spec, UnitSpec)
        file = file_of(spec)
        own = _FILE.probes(file, manager) if file else ()
        return own if is_template(spec.name) else (*own, declared_units.probe(spec.name), restarts.PROBE)

    def observe(self, spec: Spec, context: Context) -> Observation:
        """Fields of what is declared only: `content`, `mode`, `owner`, `group`, `enabled`, `state`."""
        assert isinstance(spec, UnitSpec)
        fields: dict[str, str | int | bool | None] = {}
        if file := file_of(spec):
            content = _FILE.observe(file, context)
            if isinstance(content, Unknown):
                return content
            fields |= content.value if isinstance(content, Value) else {}
        if is_template(spec.name):
            return Value(fields) if fields else Absent("NoSuchFile")
        found = declared_units.unit(context.facts, spec.name)
        if isinstance(found, Unknown):
            return found
        if isinstance(found, Value) and found.value.load != Value("not-found"):
            fields |= unit_rules.fields(spec, found.value)
        return Value(fields) if fields else Absent("NoSuchUnit")

    def compare(self, spec: Spec, context: Context) -> Verdict:
        assert isinstance(spec, UnitSpec)
        found = self.observe(spec, context)
        if isinstance(found, Unknown):
            return held(found.why, detail=found.detail)
        observed = found.value if isinstance(found, Value) else None
        file = file_of(spec)
        content = _FILE.compare(file, context) if file else Verdict(Action.NONE)
        if content.action is Action.HOLD:
            return content
        fields = list(content.fields)
        if not is_template(spec.name):
            state = declared_units.unit(context.facts, spec.name)
            assert isinstance(state, Value)
            due = self._due(spec, state.value, context)
            if isinstance(due, Unknown):
                return held(due.why, observed, detail=due.detail)
            writes, drop_ins = bool(content.fields), any(path in context.written for path in unit_rules.own_drop_ins(spec))
            if hold := unit_rules.hold(spec, state.value, changing=writes or drop_ins, due=bool(due)):
                return Verdict(Action.HOLD, hold=hold, observed=observed)
            fields += unit_rules.changes(spec, state.value, content=writes, drop_ins=drop_ins, due=due)
        if not fields:
            return Verdict(Action.NONE, observed=observed)
        created = observed is None
        return Verdict(Action.CREATE if created else Action.UPDATE, tuple(fields), observed=observed, diff=content.diff)

    def _due(self, spec: UnitSpec, state: UnitState, context: Context) -> tuple[str, ...] | Unknown:
        """Files that were, or in this plan are, written after the unit began to start: why it has to be started anew."""
        names = {spec.name, template_of(spec.name)}
        now = [path for path, units in context.written.items() if names & set(units)]
        notes = restarts.notes(context.facts)
        if isinstance(notes, Unknown):
            return notes
        found = notes.value if isinstance(notes, Value) else {}
        since = state.since.value if isinstance(state.since, Value) else 0
        before = [found[name].path for name in names if name in found and found[name].at >= since]
        return tuple(dict.fromkeys([*now, *before])) if unit_rules.runs(spec, state) else ()

    def follow_up(self, todo: Todo, context: Context) -> tuple[Probe, ...]:
        return _FILE.follow_up([(self._as_file(r), v) for r, v in todo if self._writes(v)], context)

    def _writes(self, verdict: Verdict) -> bool:
        return any(f.path in ("content", "mode", "owner", "group", "type") for f in verdict.fields)

    def _as_file(self, resource: Resource) -> Resource:
        assert isinstance(resource.spec, UnitSpec)
        file = file_of(resource.spec)
        assert file is not None
        return Resource(ResourceId("File", file.path), file, resource.origin)

    def steps(self, todo: Todo, context: Context) -> tuple[Draft, ...]:
        """All contents first, then one reload of systemd that sees all of them, then unit after unit."""
        drafts = []
        for resource, verdict in todo:
            if self._writes(verdict):
                (draft,) = _FILE.steps([(self._as_file(resource), verdict)], context)
                file = dict(draft.action["file"])
                if not new_content(verdict):
                    file.pop("restart", None)
                drafts.append(Draft("write-unit", (resource.id,), {"file": file}))
        loaded = tuple(r.id for r, v in todo if self._writes(v) or any(f.path == "loaded" for f in v.fields))
        if loaded:
            drafts.append(unit_steps.reload(loaded))
        for resource, verdict in todo:
            assert isinstance(resource.spec, UnitSpec)
            if draft_of_unit := unit_steps.draft(resource.id, resource.spec, verdict, writes=self._writes(verdict)):
                drafts.append(draft_of_unit)
        return tuple(drafts)
