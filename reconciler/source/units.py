"""systemd units as declared: under `units`, and those that a file names to be restarted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from reconciler.model.desired import Resource, ResourceId, UnitSpec
from reconciler.model.units import is_template, unit_path
from reconciler.source.merge import Leaves, Said
from reconciler.source.report import Report


@dataclass(frozen=True, slots=True)
class Units:
    """Makes the units of nodes. `content`: the bytes that a `source` names; `first`: whether this was not said before."""

    report: Report
    content: Callable[[Said], bytes | None]
    first: Callable[[str, Said], bool]

    def of(self, units: Leaves, files: Leaves) -> tuple[Resource, ...]:
        """One resource a unit, in the order declared. One that only a file names is left as it is but for restarts."""
        drop_ins = tuple(path for path in dict.fromkeys(str(path[0]) for path in files) if is_drop_in(path))
        grouped: dict[str, dict[str, Said]] = {}
        for path, said in units.items():
            grouped.setdefault(str(path[0]), {})[str(path[1]) if len(path) > 1 else ""] = said
        made = {name: self._unit(name, words, drop_ins, files) for name, words in grouped.items()}
        for path, said in files.items():
            if path[1:] == ("restart",) and isinstance(said.value, tuple):
                self._check_restarts(said)
                for name in said.value:
                    if name not in made and not is_template(name):
                        spec = UnitSpec(name, drop_ins=drop_ins)
                        made[name] = Resource(ResourceId("SystemdUnit", name), spec, said.document.key(said.path))
        return tuple(resource for resource in made.values() if resource)

    def _check_restarts(self, said: Said) -> None:
        assert isinstance(said.value, tuple)
        wrong = next((name for name in said.value if is_template(name)), None)
        if wrong and self.first("restart-template", said):
            self.report.say(said.origin, "unit-template", said.path, found=wrong)

    def _unit(self, name: str, words: dict[str, Said], drop_ins: tuple[str, ...], files: Leaves) -> Resource | None:
        said = next(iter(words.values()))
        if "" in words or self._wrong(name, words, files):
            if "" in words and self.first("unit-says-nothing", said):
                self.report.say(said.document.key(said.path), "unit-says-nothing", said.path)
            return None
        content = None
        if "source" in words and (content := self.content(words["source"])) is None:
            return None
        enabled, state = (words[key].value if key in words else None for key in ("enabled", "state"))
        spec = UnitSpec(
            name,
            content,
            bool(enabled) if enabled is not None else None,
            "started" if state == "started" else "stopped" if state == "stopped" else None,
            drop_ins,
        )
        return Resource(ResourceId("SystemdUnit", name), spec, said.document.key(said.path[:-1]))

    def _wrong(self, name: str, words: dict[str, Said], files: Leaves) -> bool:
        """What no unit can be, told once."""
        if is_template(name) and (key := next((k for k in ("enabled", "state") if k in words), None)):
            if self.first("unit-template", words[key]):
                self.report.say(words[key].document.key(words[key].path), "unit-template", words[key].path, found=name)
            return True
        twice = "source" in words and any(path[0] == unit_path(name) for path in files)
        if twice and self.first("unit-and-file", words["source"]):
            source = words["source"]
            self.report.say(source.origin, "unit-and-file", source.path, found=unit_path(name))
        return twice


def is_drop_in(path: str) -> bool:
    """Whether systemd reads the file as an addition to a unit: /etc/systemd/system/NAME.d/X.conf."""
    at = PurePosixPath(path)
    return at.suffix == ".conf" and at.parent.suffix == ".d" and str(at.parent.parent) == "/etc/systemd/system"
