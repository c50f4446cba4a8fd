"""Which torch each Python environment has, from the text of its torch/version.py: nothing is imported."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.facts import answered, raw
from reconciler.facts.live import About, LiveFact
from reconciler.facts.repositories import texts
from reconciler.model.fact import Absent, Ask, Fact, Part, Raw, Unknown, Value

_LIMIT = 64 << 10
_ASSIGNED = re.compile(r"^(__version__|cuda|hip|git_version|debug)(?:\s*:[^=\n]*)?\s*=\s*(.+?)\s*$", re.MULTILINE)
_TEXT = re.compile(r"'([^'\\\n]*)'|\"([^\"\\\n]*)\"")
_FILE = "{0}/lib/python3*/site-packages/torch/version.py"
_SYSTEM = (
    "/usr/local/lib*/python3*/site-packages/torch/version.py",
    "/usr/local/lib/python3*/dist-packages/torch/version.py",
    "/usr/lib/python3/dist-packages/torch/version.py",
)


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """`cuda`: 13.0, Absent(NoCudaBuild) for a build without; `hip`: Absent(NoHipBuild); `revision`: of torch's own Git."""

    version: Fact[str]
    cuda: Fact[str]
    hip: Fact[str]
    revision: Fact[str]
    debug: Fact[bool]


def _said(fields: Mapping[str, str], key: str, none: str) -> Fact[str]:
    """A text, or None, as Python writes them."""
    value = fields.get(key)
    if value is None:
        return Unknown("Missing", key)
    if value == "None":
        return Absent(none)
    text = _TEXT.fullmatch(value)
    return Value(text[1] or text[2] or "") if text else Unknown("UnreadableText", raw.clean(value, 80))


def parse_version(text: Fact[str]) -> Fact[TorchBuild]:
    """The assignments of version.py; Unknown(NoVersionLine) where there is none."""
    if not isinstance(text, Value):
        return text
    fields = dict(_ASSIGNED.findall(text.value))
    if not fields:
        return Unknown("NoVersionLine", raw.clean(text.value, 80))
    debug = fields.get("debug")
    return Value(
        TorchBuild(
            version=_said(fields, "__version__", "Missing"),
            cuda=_said(fields, "cuda", "NoCudaBuild"),
            hip=_said(fields, "hip", "NoHipBuild"),
            revision=_said(fields, "git_version", "NotSaid"),
            debug=Value(debug == "True") if debug in ("True", "False") else Unknown("Missing", "debug"),
        )
    )


def parse(raws: tuple[Raw, ...]) -> Fact[dict[str, Fact[TorchBuild]]]:
    """By path of version.py; two names of one environment both stand here. Absent(NotInstalled) where there is no torch."""
    found = raw.fragment(raws[0])
    if not isinstance(found, Value):
        return found
    fields = answered.mapping(found.value)
    if not isinstance(fields.get("files"), Mapping):
        return Unknown("UnexpectedAnswer")
    builds = {path: parse_version(text) for path, text in texts(fields, _LIMIT).items()}
    return Value(builds) if builds else Absent("NotInstalled")


def parts(about: About) -> tuple[Part, ...]:
    files = [_FILE.format(pattern) for pattern in about.environments]
    return (Ask("tree", json.dumps({"files": [*files, *_SYSTEM], "links": (), "limit": _LIMIT}), 5.0, quick=True),)


FACT = LiveFact("torch", parts, parse)
