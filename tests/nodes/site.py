"""Several nodes in one folder, reached through the real local transport.

What is real: the node program (its text, sent over the channel as always), its process, its lease, records, runner and
FIFOs, the channel, the pool. What stands in: systemd (`systemd_run.py`, and a shell script for systemctl), rpm, dnf and
hostnamectl (shell scripts over a file of lines). Three things in the program's text are moved into the node's folder: its
records, its folder below /run, and the front of the PATH of commands. Paths of files that a plan names are moved there on their way
to the program (`Rooted`), so that no test reads or writes this machine's /etc.
"""

from __future__ import annotations

import json
import sys
import threading
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reconciler.model.desired import DesiredNode, DesiredState
from reconciler.pool import Pool
from reconciler.transport import program
from reconciler.transport.base import Channel, Hello
from reconciler.transport.local import LocalTransport

HERE = Path(__file__).parent
MOVES = (
    ('ROOT = "/var/lib/reconcile"', 'ROOT = os.environ["NODE"] + "/state"'),
    ('RUN = "/run/reconcile"', 'RUN = os.environ["NODE"] + "/run"'),
    ('"PATH": "/usr/local/sbin', '"NODE": os.environ["NODE"], "PATH": os.environ["NODE"] + "/bin:/usr/local/sbin'),
)
SCRIPTS = {
    "python3": """export NODE=@NODE@ PATH=@NODE@/bin:$PATH
exec @PYTHON@ "$@"
""",
    "systemd-run": """exec @PYTHON@ -IS @HERE@/systemd_run.py "$@"
""",
    "systemctl": """case $1 in
list-units) cd $NODE/run/units 2>/dev/null || exit 0; for u in *.service; do [ -e $u ] && echo "$u loaded $(cat $u)"; done; exit 0;;
is-failed) case $(cat $NODE/run/units/$2 2>/dev/null) in failed*) echo failed;; *) echo inactive; exit 1;; esac;;
stop) case $(cat $NODE/run/units/$2 2>/dev/null) in failed*) ;; *) rm -f $NODE/run/units/$2;; esac;;
reset-failed) rm -f $NODE/run/units/$2;;
esac
""",
    "hostnamectl": """echo "hostnamectl $*" >> $NODE/log
[ -e $NODE/slow ] && while [ -e $NODE/slow ]; do sleep 0.02; done
[ -e $NODE/broken ] && { echo "it is broken" >&2; exit 4; }
[ -e $NODE/useless ] && exit 0
echo "$3" > $NODE/etc/hostname; echo "$3" > $NODE/proc/sys/kernel/hostname
""",
    "rpm": """case $1 in -qa) cat $NODE/rpmdb;; -e) exit 0;; esac
""",
}
# (node, op, fields) -> None to go on, or the answer in the program's place
Before = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any] | None]


class Rooted:
    """A channel to a node whose file paths lie below `root`; `before` sees each request first, and may raise or
    answer in its place."""

    def __init__(self, channel: Channel, name: str, root: Path, before: Before | None) -> None:
        self.channel, self._name, self._root, self._before = channel, name, str(root), before

    @property
    def hello(self) -> Hello:
        return self.channel.hello

    @property
    def received(self) -> int:
        return self.channel.received

    def request(self, op: str, deadline: float, **fields: Any) -> Mapping[str, Any]:
        if self._before and (answer := self._before(self._name, op, fields)) is not None:
            return answer
        return self.channel.request(op, deadline, **self._moved(fields))

    def _moved(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: self._root + v if k == "path" else self._moved(v) for k, v in value.items()}
        return [self._moved(v) for v in value] if isinstance(value, list) else value

    def close(self) -> None:
        self.channel.close()


class Site:
    """A folder of nodes, and the transport to them. `before`: see `Rooted`; `down`: nodes that do not answer, with why."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.before: Before | None = None
        self.down: dict[str, Exception] = {}
        self.channels: dict[str, Rooted] = {}
        self.slept = threading.Event()  # never set: to wait for a moment
        self._transports: list[LocalTransport] = []

    def pool(self, desired: DesiredState) -> Pool:
        """Channels to all nodes. Their folders are made first: a script that is being written cannot be executed."""
        for name in desired.nodes:
            self.node(name)
        return Pool(self, desired.nodes)

    def node(self, name: str) -> Path:
        """The folder of one node, made at its first use: a CentOS Stream 9 of its name."""
        at = self.root / name
        if not at.exists():
            for folder in ("bin", "etc", "proc/sys/kernel", "tmp", "run"):
                (at / folder).mkdir(parents=True)
            (at / "etc/os-release").write_text('NAME="CentOS Stream"\nID="centos"\nVERSION_ID="9"\n')
            (at / "etc/hostname").write_text("localhost\n")
            (at / "proc/sys/kernel/hostname").write_text("localhost\n")
            (at / "rpmdb").write_text("rpm\t0\t4.16.1.3\t39.el9\tx86_64\n")
            for script, text in SCRIPTS.items():
                file = at / "bin" / script
                body = text.replace("@NODE@", str(at)).replace("@PYTHON@", sys.executable).replace("@HERE@", str(HERE))
                file.write_text("#!/bin/sh\n" + body)
                file.chmod(0o755)
        return at

    def open(self, node: DesiredNode, deadline: float) -> Channel:
        if node.name in self.down:
            raise self.down[node.name]
        at = self.node(node.name)
        transport = LocalTransport(python=str(at / "bin/python3"))
        self._transports.append(transport)
        self.channels[node.name] = Rooted(transport.open(node, deadline), node.name, at, self._ask)
        return self.channels[node.name]

    def closing(self, name: str) -> Callable[[], None]:
        """What ends the link to a node that is connected by the time it is called."""

        def close() -> None:
            self.channels[name].close()

        return close

    def _ask(self, name: str, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.before(name, op, fields) if self.before else None

    def close(self) -> None:
        while self._transports:
            self._transports.pop().close()

    def commands(self, name: str) -> list[str]:
        """What was run on a node, in order."""
        log = self.root / name / "log"
        return log.read_text().splitlines() if log.exists() else []

    def steps(self, name: str) -> list[dict[str, Any]]:
        """The node's step records, oldest first."""
        found = [json.loads(f.read_text()) for f in (self.root / name / "state/steps").glob("*.json")]
        return sorted(found, key=lambda r: (r["token"], r["step"]))

    def lease(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / name / "state/lease.json").read_text())
        return found

    def change_lease(self, name: str, **fields: Any) -> None:
        """As another controller, or time, would change it."""
        at = self.root / name / "state/lease.json"
        at.write_text(json.dumps({**self.lease(name), **fields}))

    def records(self, name: str) -> dict[str, bytes]:
        """Everything that the program keeps on a node."""
        state = self.root / name / "state"
        return {str(f.relative_to(state)): f.read_bytes() for f in state.rglob("*") if f.is_file()}


def moved_program() -> bytes:
    """The program with its folders moved (see above), as it is sent."""
    text = zlib.decompress(program.packed()).decode()
    for old, new in MOVES:
        assert old in text
        text = text.replace(old, new)
    return zlib.compress(text.encode())
