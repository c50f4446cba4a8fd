"""Hostname: the static name and the one the kernel answers to."""

from __future__ import annotations

from reconciler.facts import hostname as fact
from reconciler.kinds.base import Context, Draft, Todo, Verdict, held
from reconciler.model.desired import HostnameSpec, PackageManager, Spec
from reconciler.model.fact import Absent, Probe, Unknown, Value
from reconciler.model.observed import Observation
from reconciler.model.plan import Action, FieldChange


class Hostname:
    """One a node, named after it."""

    name = "Hostname"

    def rank(self, spec: Spec) -> int:
        return 0

    def probes(self, spec: Spec, manager: PackageManager | None) -> tuple[Probe, ...]:
        return (fact.PROBE,)

    def observe(self, spec: Spec, context: Context) -> Observation:
        static, running = fact.static(context.facts), fact.running(context.facts)
        if isinstance(running, Unknown):
            return running
        if isinstance(static, Unknown):
            return static
        return Value(
            {
                "static": static.value if isinstance(static, Value) else None,
                "running": running.value if isinstance(running, Value) else None,
            }
        )

    def compare(self, spec: Spec, context: Context) -> Verdict:
        assert isinstance(spec, HostnameSpec)
        found = self.observe(spec, context)
        if isinstance(found, Unknown):
            return held(found.why, detail=found.detail)
        if isinstance(found, Absent):
            return held("NotReadable", detail=found.reason)
        wanted = {"static": spec.hostname, "running": spec.hostname}
        fields = tuple(FieldChange(k, found.value[k], v) for k, v in wanted.items() if found.value[k] != v)
        return Verdict(Action.UPDATE if fields else Action.NONE, fields, observed=found.value)

    def follow_up(self, todo: Todo, context: Context) -> tuple[Probe, ...]:
        return ()

    def steps(self, todo: Todo, context: Context) -> tuple[Draft, ...]:
        drafts = []
        for resource, _ in todo:
            assert isinstance(resource.spec, HostnameSpec)
            command = {"argv": ["hostnamectl", "set-hostname", "--", resource.spec.hostname]}
            drafts.append(Draft("set-hostname", (resource.id,), {"commands": [command], "kill_after": 60}))
        return tuple(drafts)
