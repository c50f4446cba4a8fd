"""The CUDA compiler of a tree: `nvcc --version`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import raw, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_RELEASE = re.compile(r"Cuda compilation tools, release ([0-9]{1,3}\.[0-9]{1,3})\b(?:, V([0-9]{1,3}(?:\.[0-9]{1,6}){1,3}))?")
_BUILT = re.compile(r"Built on ([A-Z][a-z]{2}_[\w:]{10,40})")
_BUILD = re.compile(r"Build (cuda_[\w./-]{1,100})")
_NOT_FOUND = re.compile(r"nvcc[^\n]{0,40}(?:command )?not found|nvcc[^\n]{0,20}: No such file or directory")


@dataclass(frozen=True, slots=True)
class Nvcc:
    """`release`: 12.8, the number of the toolkit. `version`: 12.8.61, of the compiler. `built` and `build` as printed."""

    release: Fact[str]
    version: Fact[str]
    built: Fact[str]
    build: Fact[str]


def parse(output: str) -> Fact[Nvcc]:
    """Absent(NotInstalled) where the shell has no nvcc. A version that ends the text may be cut: Unknown."""
    whole, last = text.ended(output)
    content = whole + last
    found = _RELEASE.search(content)
    if not found:
        if _NOT_FOUND.search(content[:2000]):
            return Absent("NotInstalled")
        return Unknown("NoReleaseLine", raw.clean(content[:1000]))
    release, version = found.groups()
    cut = content[found.end() : found.end() + 1] in ("", ".")
    built, build = _BUILT.search(whole), _BUILD.search(whole)
    return Value(
        Nvcc(
            release=Unknown("MayBeCut", release) if cut and not version else Value(release),
            version=Unknown("Missing") if not version else Unknown("MayBeCut", version) if cut else Value(version),
            built=Value(built[1]) if built else Unknown("Missing"),
            build=Value(build[1]) if build else Unknown("Missing"),
        )
    )
