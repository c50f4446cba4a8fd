"""Declared packages into a lock, by uv. What an earlier lock chose stays as long as it fits."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from reconciler.errors import SourceError
from reconciler.model import lock as locks
from reconciler.model.lock import Lock, Pinned
from reconciler.model.pins import specifier
from reconciler.pinning.tools import Origins, interpreter, last_words, run, uv
from reconciler.source.environments import Declared

# the glibc of the oldest distribution that a stack may be for (EL 9: 2.34; Ubuntu 22.04: 2.35; Debian 12: 2.36)
PLATFORM = "x86_64-manylinux_2_34"


def resolve(declared: Declared, before: Lock | None, origins: Origins, *, upgrade: bool = False) -> Lock:
    """The lock of one environment. Raises SourceError PinFailed with uv's own words, Usage NoUv."""
    python = str(declared.python.value) if declared.python else ""
    wanted = "".join(f"{name}{specifier(pin)}\n" for name, pin in sorted(declared.pins.items()))
    head = _head(declared, python)
    with tempfile.TemporaryDirectory(prefix="reconcile-pin-") as folder:
        out = Path(folder) / "lock.txt"
        if before is not None and not upgrade:
            out.write_text(before.requirements())
        done = run(_argv(python, out, origins), origins.environment(), wanted)
        if done.returncode:
            raise SourceError("PinFailed", environment=f"{declared.stack}/{declared.name}", detail=last_words(done))
        text = out.read_text()
    found, flaws = locks.parse((head + text).encode())
    if found is None:
        said = f"{flaws[0].code}: {flaws[0].data.get('found')}"
        raise SourceError("PinFailed", environment=f"{declared.stack}/{declared.name}", detail=said)
    return _with_built(found, before)


def _head(declared: Declared, python: str) -> str:
    packages = locks.declared_digest(declared.pins)
    return Lock(packages, python, PLATFORM, {}).text()


def _argv(python: str, out: Path, origins: Origins) -> list[str]:
    argv = [uv(), "pip", "compile", "-", "--output-file", str(out), "--quiet", "--no-config", "--no-header", "--no-annotate"]
    argv += ["--generate-hashes", "--python", interpreter(python), "--python-version", python, "--python-platform", PLATFORM]
    # as pip does: all places are equal, the best version wins
    argv += ["--index-strategy", "unsafe-best-match", *origins.arguments()]
    return argv + [word for place in origins.constraints for word in ("--constraint", place)]


def _with_built(found: Lock, before: Lock | None) -> Lock:
    """Wheels that were built once from a source which is still the same keep their hash."""
    kept: dict[str, Pinned] = {}
    for name, pinned in found.pinned.items():
        old = before.pinned.get(name) if before else None
        kept[name] = pinned
        if old and old.built and old.version == pinned.version:
            sources = set(old.hashes) - {old.built[1]}
            if sources and sources <= set(pinned.hashes):
                hashes = (*(h for h in pinned.hashes if h != old.built[1]), old.built[1])
                kept[name] = dataclasses.replace(pinned, hashes=hashes, built=old.built)
    return dataclasses.replace(found, pinned=kept)


def differences(before: Lock | None, after: Lock) -> list[tuple[str, str | None, str | None]]:
    """(name, version before, version after) of each distribution that is another now."""
    old = {n: p.version for n, p in before.pinned.items()} if before else {}
    new = {n: p.version for n, p in after.pinned.items()}
    return [(name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
