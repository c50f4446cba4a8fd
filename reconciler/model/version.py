"""Versions of OS packages, and what a pin of a manifest asks of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PARTS = re.compile(r"(?:([0-9]+):)?(.+?)(?:-([^-]+))?", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """Epoch, version, release: rpm's words. A Debian revision is the release; a native Debian package has none."""

    epoch: str
    version: str
    release: str

    @classmethod
    def parse(cls, text: str) -> Version:
        """What `str` of a version is, also with an epoch of 0. Any text has an answer."""
        found = _PARTS.fullmatch(text)
        epoch, version, release = found.groups() if found else (None, text, None)
        return cls(epoch or "0", version, release or "")

    @property
    def plain(self) -> str:
        """Version and release, without the epoch."""
        return self.version + (f"-{self.release}" if self.release else "")

    def __str__(self) -> str:
        return (f"{self.epoch}:" if self.epoch != "0" else "") + self.plain

    def meets(self, pin: str) -> bool:
        """Whether this is what `pin` says: exact with or without epoch and release, or a prefix (`580.*`, `5.14.0-*`)."""
        with_epoch = f"{self.epoch}:{self.plain}"
        if is_prefix(pin):
            return self.plain.startswith(pin[:-1]) or with_epoch.startswith(pin[:-1])
        return pin in (self.version, self.plain, f"{self.epoch}:{self.version}", with_epoch)


def is_prefix(pin: str) -> bool:
    """Whether a pin names the beginning of a version only."""
    return pin.endswith((".*", "-*"))


def is_version(state: str) -> bool:
    """Whether what a manifest says of a package is a version, exact or a prefix: neither `present` nor `absent`."""
    return state not in ("present", "absent")


def narrower(one: str, other: str) -> str | None:
    """Of two pins the one that says more, where every version that meets it meets the other one too; None: they contradict."""
    if is_prefix(one) and is_prefix(other):
        longer, shorter = sorted((one[:-1], other[:-1]), key=len, reverse=True)
        return longer + "*" if longer.startswith(shorter) else None
    if is_prefix(one) or is_prefix(other):
        exact, prefix = (other, one) if is_prefix(one) else (one, other)
        return exact if Version.parse(exact).meets(prefix) else None
    return one if one == other else None
