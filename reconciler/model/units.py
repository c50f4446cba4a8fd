"""Names of systemd units."""

from __future__ import annotations

DIRECTORY = "/etc/systemd/system"
# started anew these would take others with them: a slice all that runs in it, a mount all that uses it
_NOT_RESTARTED = ("mount", "automount", "swap", "target", "slice")


def is_template(name: str) -> bool:
    """`NAME@.TYPE`, which stands for no unit itself."""
    return name.rpartition(".")[0].endswith("@")


def template_of(name: str) -> str | None:
    """The template of an instance: worker@.service of worker@3.service."""
    head, _, kind = name.rpartition(".")
    word, at, instance = head.partition("@")
    return f"{word}@.{kind}" if at and instance else None


def unit_path(name: str) -> str:
    """Where the site's own content of a unit stands."""
    return f"{DIRECTORY}/{name}"


def restarts_itself(name: str) -> bool:
    """Whether new content of the unit is a reason to restart it; of a template, its instances."""
    return name.rpartition(".")[2] not in _NOT_RESTARTED
