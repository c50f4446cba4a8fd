"""Builds of Python environments, for people and as data."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.facts.environment_builds import Build, Builds
from reconciler.model.fact import Fact, Unknown, Value
from reconciler.model.observed import Failure
from reconciler.render.reasons import sentence
from reconciler.render.style import Style
from reconciler.render.text import duration, safe, table

USERS = 3  # that are listed of one build
Seen = Mapping[str, Mapping[str, Fact[Builds]] | Failure]


def listing(seen: Seen, style: Style) -> list[str]:
    """One line a build, newest first; what could not be read is a line that says why."""
    rows: list[tuple[str, ...]] = [("NODE", "ENVIRONMENT", "BUILD", "SIZE", "AGE", "STATE")]
    rest = []
    for node, found in sorted(seen.items()):
        if isinstance(found, Failure):
            rest.append(f"{safe(node)}: {sentence(found.reason, found.data)}")
            continue
        for name, here in sorted(found.items()):
            if not isinstance(here, Value):
                why = here.why if isinstance(here, Unknown) else here.reason
                rest.append(f"{safe(node)}: {safe(name)}: {sentence(why, {'detail': getattr(here, 'detail', '')})}")
                continue
            rows += [(safe(node), safe(name), safe(b), *cells) for b, *cells in _builds(here.value)]
            if here.value.rejected:
                gone = here.value.rejected
                rest.append(f"{safe(node)}: {safe(name)}: lock {safe(gone.lock[:12])} is held back: rolled back by {safe(gone.by)}")
    return [*(table(rows) if len(rows) > 1 else [style("no builds", "bold")]), *rest]


def _builds(here: Builds) -> Iterator[tuple[str, ...]]:
    for name, build in sorted(here.builds.items(), key=lambda pair: -(pair[1].made or 0.0)):
        size = "?" if build.size is None else f"{build.size / 1e6:.1f} MB"
        age = duration(max(0.0, time.time() - build.made)) if build.made is not None else "?"
        yield name, size, age, ", ".join(_state(name, build, here)) or "-"


def _state(name: str, build: Build, here: Builds) -> Iterator[str]:
    if here.link == Value(name):
        yield "linked"
    if not build.sealed:
        yield "half"
    if build.damage:
        packages = ", ".join(map(safe, list(build.damage.packages)[:USERS]))
        yield f"damaged ({packages or f'{build.damage.files} files'})"
    if build.users:
        more = f" and {len(build.users) - USERS} more" if len(build.users) > USERS else ""
        yield f"used by {', '.join(map(safe, build.users[:USERS]))}{more}"


def as_data(seen: Seen) -> dict[str, Any]:
    """The same for programs."""
    return {node: {"failure": f.reason} if isinstance(f, Failure) else _data(f) for node, f in seen.items()}


def _data(found: Mapping[str, Fact[Builds]]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, here in found.items():
        if not isinstance(here, Value):
            told[name] = {"unknown": here.why} if isinstance(here, Unknown) else {"absent": here.reason}
            continue
        value = here.value
        told[name] = {
            "linked": value.link.value if isinstance(value.link, Value) else None,
            "rejected": value.rejected.lock if value.rejected else None,
            "builds": {b: _build(about) for b, about in value.builds.items()},
        }
    return told


def _build(build: Build) -> dict[str, Any]:
    damage = build.damage
    return {
        "sealed": build.sealed,
        "lock": build.lock,
        "made": build.made,
        "bytes": build.size,
        "users": list(build.users or ()),
        "damage": {"packages": {n: list(v) for n, v in damage.packages.items()}, "files": damage.files} if damage else None,
    }


def removed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What a clean-up took away, one line a node and environment."""
    lines = []
    for node, found in sorted(before.items()):
        for name, about in found.items():
            left = after.get(node, {}).get(name, {})
            if isinstance(about, Mapping) and "builds" in about and "builds" in left:
                gone = sorted(set(about["builds"]) - set(left["builds"]))
                lines += [f"{safe(node)}: {safe(name)}: removed {', '.join(map(safe, gone))}"] if gone else []
    return lines
