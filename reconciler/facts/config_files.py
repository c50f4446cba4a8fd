"""Settings of the operating system by digest: enough to see which of several nodes, that should be alike, is not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answered, raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

PATTERNS = (
    "/etc/security/limits.conf",
    "/etc/security/limits.d/*",
    "/etc/modprobe.d/*",
    "/etc/sysctl.conf",
    "/etc/sysctl.d/*",
    "/etc/ld.so.conf.d/*",
    "/etc/nccl.conf",
    "/etc/chrony.conf",
    "/etc/chrony/chrony.conf",
    "/etc/fstab",
    "/etc/exports",
)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """`mode`: 0644 in octal digits. `link`: where the path leads, Absent(NotALink)."""

    mode: Fact[str]
    owner: Fact[str]
    group: Fact[str]
    sha256: Fact[str]
    link: Fact[str]


def _file(found: Any) -> ConfigFile:
    fields = answered.mapping(found)
    error = fields.get("error")
    failed = answered.failure(error, "DanglingLink") if error is not None else None
    unseen: Absent | Unknown = failed or Unknown("UnexpectedAnswer")
    mode, digest = answered.number(fields.get("mode"), "NoSuchFile"), fields.get("sha256")
    good = isinstance(digest, str) and _SHA256.fullmatch(digest)
    return ConfigFile(
        mode=Value(f"{mode.value:04o}") if isinstance(mode, Value) and mode.value < 1 << 12 else unseen,
        owner=Value(fields["owner"]) if isinstance(fields.get("owner"), str) else unseen,
        group=Value(fields["group"]) if isinstance(fields.get("group"), str) else unseen,
        sha256=Value(str(digest)) if good and not failed else unseen,
        link=answered.text(fields.get("link"), "NotALink"),
    )


def parse(raws: tuple[Raw, ...]) -> Fact[dict[str, ConfigFile]]:
    """By path; one that is not in it is not on the node."""
    found = raw.fragment(raws[0])
    if not isinstance(found, Value):
        return found
    if not isinstance(found.value, Mapping):
        return Unknown("UnexpectedAnswer")
    return Value({path: _file(one) for path, one in found.value.items()})


FACT = LiveFact("config", lambda about: (Ask("digests", json.dumps({"patterns": PATTERNS}), 5.0, quick=True),), parse)
