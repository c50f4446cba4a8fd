"""Services that run, cheaply: systemd keeps a control group for each as long as it has processes."""

from __future__ import annotations

from typing import Any

from reconciler.facts import answers
from reconciler.model.fact import Absent, Fact, Value

# groups for the fragment `devices`: the unified hierarchy, and systemd's own beside version 1
GROUPS = {
    "services": {"at": "/sys/fs/cgroup/system.slice/*.service"},
    "services1": {"at": "/sys/fs/cgroup/systemd/system.slice/*.service"},
    "instances": {"at": "/sys/fs/cgroup/system.slice/system-*.slice/*.service"},
    "instances1": {"at": "/sys/fs/cgroup/systemd/system.slice/system-*.slice/*.service"},
}


def running(answer: Fact[Any]) -> Fact[tuple[str, ...]]:
    """Names without `.service`, sorted. Absent(NotBooted) where systemd keeps none: it is not what runs this machine."""
    found: set[str] = set()
    for group in GROUPS:
        folders = answers.members(answer, group)
        if not isinstance(folders, Value):
            return folders
        found |= {folder.rpartition("/")[2].removesuffix(".service") for folder in folders.value}
    return Value(tuple(sorted(found))) if found else Absent("NotBooted")
