"""Python environments of a node: interpreter, settings, and every installed distribution."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answered, raw
from reconciler.facts.live import About, LiveFact
from reconciler.facts.python_distributions import Damaged, Distribution, Shadowed, installed
from reconciler.model.fact import Absent, Ask, Fact, Part, Raw, Unknown, Value

# the system's, and (empty) the one that runs the program on the node
INTERPRETERS = ("/usr/bin/python3", "")


@dataclass(frozen=True, slots=True)
class Settings:
    """pyvenv.cfg. `version`: of the interpreter that made the environment, which may be another by now."""

    home: Fact[str]
    version: Fact[str]
    system_packages: Fact[bool]


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`path` as it stands in the environment, `real` without links; `version` as it says itself now."""

    path: str
    real: Fact[str]
    version: str
    implementation: Fact[str]
    prefix: Fact[str]


@dataclass(frozen=True, slots=True)
class Environment:
    """`sites`: the directories that it searches, in that order; guessed from the layout where the interpreter does not run."""

    settings: Fact[Settings]
    interpreter: Fact[Interpreter]
    sites: tuple[str, ...]
    distributions: dict[str, Distribution]
    shadowed: tuple[Shadowed, ...]
    damaged: tuple[Damaged, ...]


@dataclass(frozen=True, slots=True)
class Environments:
    """`names`: the real path of each name that was found; `environments` by real path."""

    names: dict[str, str]
    environments: dict[str, Environment]


def parse_settings(text: Fact[str]) -> Fact[Settings]:
    """`key = value` lines, as Python's site.py reads them. virtualenv and uv write `version_info`."""
    if not isinstance(text, Value):
        return text
    found = {}
    for line in text.value.splitlines():
        key, sign, value = line.partition("=")
        if sign:
            found[key.strip().lower()] = value.strip()
    version = found.get("version") or found.get("version_info", "")
    system = found.get("include-system-site-packages", "").lower()
    return Value(
        Settings(
            home=Value(found["home"]) if found.get("home") else Unknown("Missing", "home"),
            version=Value(version) if version else Unknown("Missing", "version"),
            system_packages=Value(system == "true")
            if system in ("true", "false")
            else Unknown("Missing", "include-system-site-packages"),
        )
    )


def parse_interpreter(found: Mapping[str, Any]) -> Fact[Interpreter]:
    """Absent(NoInterpreter) where the directory has none; Unknown where it does not run: its base was removed, say."""
    path = answered.text(found.get("python"), "NoInterpreter")
    if not isinstance(path, Value):
        return path
    if found.get("error"):
        return answered.failure(found["error"], "BrokenInterpreter", found.get("err", ""))
    if found.get("status") != 0:
        return Unknown("InterpreterFailed", raw.clean(str(found.get("err", "")).rstrip().rpartition("\n")[2]))
    try:
        said = answered.mapping(json.loads(str(found.get("said"))))
    except (ValueError, RecursionError):
        said = {}
    version = said.get("version")
    if not isinstance(version, str):
        return Unknown("InterpreterFailed", raw.clean(str(found.get("said")), 120))
    return Value(
        Interpreter(
            path=path.value,
            real=answered.text(found.get("real")),
            version=version,
            implementation=answered.text(said.get("implementation"), "NotSaid"),
            prefix=answered.text(said.get("prefix"), "NotSaid"),
        )
    )


def parse_environment(found: Any) -> Environment:
    fields = answered.mapping(found)
    sites = answered.items(fields.get("sites"))
    here = installed(sites)
    return Environment(
        settings=parse_settings(answered.text(fields.get("cfg"), "NotVirtual")),
        interpreter=parse_interpreter(fields),
        sites=tuple(str(answered.mapping(site).get("path")) for site in sites),
        distributions=here.distributions,
        shadowed=here.shadowed,
        damaged=here.damaged,
    )


def parse(raws: tuple[Raw, ...]) -> Fact[Environments]:
    """Absent(NoEnvironments) where there is neither an environment nor an interpreter at the places that were looked at."""
    found = raw.fragment(raws[0])
    if not isinstance(found, Value):
        return found
    fields = answered.mapping(found.value)
    if not isinstance(fields.get("names"), Mapping) or not isinstance(fields.get("environments"), Mapping):
        return Unknown("UnexpectedAnswer")
    if not fields["names"]:
        return Absent("NoEnvironments")
    names = {name: str(target) for name, target in fields["names"].items()}
    paths = dict.fromkeys([*names.values(), *fields["environments"]])
    return Value(Environments(names, {path: parse_environment(fields["environments"].get(path)) for path in paths}))


def stable(value: Any) -> Any:
    """All but the times at which packages were installed."""
    return {
        "names": value["names"],
        "environments": {
            path: {**one, "distributions": {name: _timeless(d) for name, d in one["distributions"].items()}}
            for path, one in value["environments"].items()
        },
    }


def _timeless(distribution: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in distribution.items() if key != "recorded"}


def parts(about: About) -> tuple[Part, ...]:
    arguments = {"patterns": about.environments, "interpreters": INTERPRETERS}
    return (Ask("environments", json.dumps(arguments), 30.0),)


FACT = LiveFact("python-environments", parts, parse, stable, slow=True)
