"""Versions with `extends` followed: what each stack says for each distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.model.manifest import Versions
from reconciler.source.environments import Declared as Environment
from reconciler.source.environments import environments
from reconciler.source.load import Declared, Documents
from reconciler.source.merge import NOTHING, Layer, Nulls, Said, flatten, overlay
from reconciler.source.report import Report


@dataclass(frozen=True, slots=True)
class Stack:
    """A Versions. `distributions` empty: any. `packages` holds, by name, what is said for each distribution;
    `environments` the Python environments by name, `driver` the version of the GPU driver and `modules` its kind."""

    name: str
    distributions: tuple[str, ...]
    packages: dict[str, dict[str, Said]]
    environments: Mapping[str, Environment] = field(default_factory=dict)
    driver: Said | None = None
    modules: str = "open"


class Stacks:
    """All stacks by name; None where one cannot be known because it, or what it extends, has a mistake."""

    def __init__(self, documents: Documents, report: Report, nulls: Nulls) -> None:
        self._documents, self._report, self._nulls = documents, report, nulls
        self._layers: dict[str, Layer | None] = {}
        for name in documents.versions:
            self._follow(name)
        self._stacks = {name: _stack(name, layer) for name, layer in self._layers.items()}

    def __iter__(self) -> Iterator[Stack]:
        """Those that are known, by name."""
        return (stack for _, stack in sorted(self._stacks.items()) if stack)

    def named(self, said: Said, who: str) -> Stack | None:
        """The stack that `said` names; None after saying that there is none, or that `who` cannot be judged."""
        name = str(said.value)
        if name in self._stacks:
            if self._stacks[name] is None:
                self._report.unchecked.add(who)
            return self._stacks[name]
        if ("Versions", name) in self._documents.broken or not self._documents.complete:
            self._report.unchecked.add(who)
        else:
            choice = self._report.choice(name, self._stacks)
            self._report.say(said.origin, "unknown-versions", data=choice)
        return None

    def _follow(self, name: str) -> None:
        """Resolve `name` and all that it extends, farthest first."""
        chain: list[str] = []
        while name not in self._layers and name in self._documents.versions and name not in chain:
            chain.append(name)
            parent = _parent(self._documents.versions[name])
            if parent is None:
                break
            name = parent
        layer: Layer | None = {}
        if chain and _parent(self._documents.versions[chain[-1]]) is not None:
            layer = self._layers.get(name)
            if name not in self._layers:
                self._say_no_parent(chain, name)
        for member in reversed(chain):
            if layer is not None:
                layer = overlay(layer, _layer(self._documents.versions[member]), self._nulls)
            self._layers[member] = layer
            if layer is None:
                self._report.unchecked.add(f"Versions {member}")

    def _say_no_parent(self, chain: list[str], parent: str) -> None:
        """Say why the last of `chain` cannot extend `parent`."""
        at = self._documents.versions[chain[-1]].document.value(("spec", "extends"))
        if parent in chain:
            circle = (*chain[chain.index(parent) :], parent)
            self._report.say(at, "extends-circle", circle=" -> ".join(circle if len(circle) < 8 else (*circle[:6], "...")))
        elif ("Versions", parent) not in self._documents.broken and self._documents.complete:
            choice = self._report.choice(parent, self._documents.versions)
            self._report.say(at, "unknown-versions", data=choice)


def _parent(declared: Declared) -> str | None:
    return declared.manifest.spec.extends if isinstance(declared.manifest, Versions) else None


def _layer(declared: Declared) -> Layer:
    return flatten(
        declared.manifest.spec, declared.document, ("spec",), ("driver", "driverModules", "os", "python", "environments")
    )


def _stack(name: str, layer: Layer | None) -> Stack | None:
    if layer is None:
        return None
    packages: dict[str, dict[str, Said]] = {}
    for path, said in layer.get("os", NOTHING).items():
        if len(path) == 3:  # DISTRIBUTION, "packages", NAME
            packages.setdefault(str(path[2]), {})[str(path[0])] = said
    distributions = dict.fromkeys(str(path[0]) for path in layer.get("os", NOTHING) if path)
    driver, modules = (layer.get(key, NOTHING).get(()) for key in ("driver", "driverModules"))
    kind = str(modules.value) if modules else "open"
    return Stack(name, tuple(distributions), packages, environments(name, layer), driver, kind)
