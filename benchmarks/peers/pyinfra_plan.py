"""pyinfra's form of the resources, for its own interpreter: tasks named as in `work.TASKS`."""

import json
import os
from pathlib import Path

from pyinfra import host
from pyinfra.operations import dnf, files, server, systemd

WORK = json.loads(Path(os.environ["PEERS_WORK"]).read_text())

server.hostname(name="hostname", hostname=host.name)
files.block(
    name="/etc/hosts",
    path="/etc/hosts",
    content="\n".join(WORK["hosts"]),
    marker="# {mark} reconcile",
)
dnf.packages(name="packages", packages=WORK["present"])
dnf.packages(name="removed packages", packages=WORK["absent"], present=False)
for path, (source, mode) in WORK["files"].items():
    files.put(name=path, src=source, dest=path, user="root", group="root", mode=mode)
for unit, on in WORK["units"].items():
    systemd.service(name=unit, service=unit, running=on, enabled=on)
