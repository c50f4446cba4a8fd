"""Pins of Python packages as manifests write them, in the meaning that pip gives to versions (PEP 440)."""

from __future__ import annotations

import re
from functools import cache

_BARE = re.compile(r"[0-9][^,<>=!~]*")


@cache
def specifier(pin: str) -> str:
    """A pin in pip's form: `2.13.0` and `2.13.*` become `==` clauses, a range stays as it is."""
    return f"=={pin}" if _BARE.fullmatch(pin) else pin


@cache
def meets(version: str, pin: str) -> bool:
    """Whether a locked version is what a pin asks for. A pin without a build (`+cu128`) takes any build of that version."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # only sites with Python environments pay for it
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version) in SpecifierSet(specifier(pin), prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        return False
