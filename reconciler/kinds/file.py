"""File: a regular file with this content, owner, group and mode, replaced atomically."""

from __future__ import annotations

import base64
import difflib
import hashlib

from reconciler.facts import file as fact
from reconciler.facts import raw
from reconciler.kinds.base import Context, Draft, Todo, Verdict, held
from reconciler.model.desired import FileSpec, PackageManager, Spec
from reconciler.model.fact import Absent, Probe, Read, Unknown, Value
from reconciler.model.observed import Fields, Observation
from reconciler.model.plan import Action, FieldChange

DIFF_LIMIT = 64 << 10  # bytes of a file whose differences are shown line by line
WORLD_READABLE = 0o004


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()[:16]


def _mode(mode: int) -> str:
    return f"{mode:04o}"


def _everybodys(spec: FileSpec, observed: Fields | None) -> bool:
    """Whether everybody on the node may read the file as it is and as it shall be: only then may a plan show its content."""
    if observed is None or observed["type"] != "file":
        return False
    return bool(spec.mode & int(str(observed["mode"]), 8) & WORLD_READABLE)


class File:
    """Named by its absolute path."""

    name = "File"

    def rank(self, spec: Spec) -> int:
        assert isinstance(spec, FileSpec)
        return 10 if spec.repository else 30

    def probes(self, spec: Spec, manager: PackageManager | None) -> tuple[Probe, ...]:
        assert isinstance(spec, FileSpec)
        return (fact.probe(spec.path, spec.owner, spec.group),)

    def observe(self, spec: Spec, context: Context) -> Observation:
        assert isinstance(spec, FileSpec)
        found = fact.place(context.facts, spec.path)
        if not isinstance(found, Value):
            return found
        entry = found.value.entry
        if entry is None:
            return Absent("NoSuchFile")
        fields: dict[str, str | int | bool | None] = {"type": entry.type, "owner": entry.owner, "group": entry.group}
        if entry.type == "file":
            content = f"sha256:{entry.sha256[:16]}" if entry.sha256 else f"{entry.size} bytes"
            fields |= {"mode": _mode(entry.mode), "content": content}
        return Value(fields)

    def compare(self, spec: Spec, context: Context) -> Verdict:
        assert isinstance(spec, FileSpec)
        found = self.observe(spec, context)
        if isinstance(found, Unknown):
            return held(found.why, detail=found.detail)
        observed = found.value if isinstance(found, Value) else None
        if blocked := self._blocked(spec, context, observed):
            return blocked
        wanted: Fields = {
            "type": "file",
            "owner": spec.owner,
            "group": spec.group,
            "mode": _mode(spec.mode),
            "content": _digest(spec.content),
        }
        fields = tuple(
            FieldChange(name, (observed or {}).get(name), value)
            for name, value in wanted.items()
            if (observed or {}).get(name) != value and not (observed is None and name == "type")
        )
        if observed is None:
            action = Action.CREATE
        elif observed["type"] != "file":
            action = Action.REPLACE
        else:
            action = Action.UPDATE if fields else Action.NONE
        diff = self._diff(spec, context) if _everybodys(spec, observed) else ()
        return Verdict(action, fields, observed=observed, diff=diff)

    def _blocked(self, spec: FileSpec, context: Context, observed: Fields | None) -> Verdict | None:
        """What stands in the way and is not ours to remove."""
        place = fact.place(context.facts, spec.path)
        assert isinstance(place, Value)
        if observed and observed["type"] in ("directory", "special"):
            return held("NotAFile", observed, type=observed["type"])
        if not place.value.parent_is_directory:
            return held("ParentNotDirectory", observed)
        if not place.value.owner_exists:
            return held("NoSuchUser", observed, user=spec.owner)
        if not place.value.group_exists:
            return held("NoSuchGroup", observed, group=spec.group)
        return None

    def _diff(self, spec: FileSpec, context: Context) -> tuple[str, ...]:
        """Unified diff of the content where both sides are small text that everybody on the node may read."""
        before = raw.part(context.facts, f"content:{spec.path}")
        if before is None or before.error:
            return ()
        try:
            old, new = before.out.decode("utf-8"), spec.content.decode("utf-8")
        except UnicodeDecodeError:
            return ()
        return tuple(difflib.unified_diff(old.splitlines(), new.splitlines(), "on the node", "in Git", lineterm=""))

    def follow_up(self, todo: Todo, context: Context) -> tuple[Probe, ...]:
        probes = []
        for resource, verdict in todo:
            assert isinstance(resource.spec, FileSpec)
            if _everybodys(resource.spec, verdict.observed) and any(f.path == "content" for f in verdict.fields):
                probes.append(Probe(f"content:{resource.spec.path}", (Read(resource.spec.path, DIFF_LIMIT),)))
        return tuple(probes)

    def steps(self, todo: Todo, context: Context) -> tuple[Draft, ...]:
        drafts = []
        for resource, _ in todo:
            spec = resource.spec
            assert isinstance(spec, FileSpec)
            file: dict[str, object] = {
                "path": spec.path,
                "content": base64.b64encode(spec.content).decode(),
                "mode": spec.mode,
                "owner": spec.owner,
                "group": spec.group,
            }
            if spec.restart:
                file["restart"] = list(spec.restart)
            drafts.append(Draft("write-file", (resource.id,), {"file": file}))
        return tuple(drafts)
