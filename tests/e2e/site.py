"""A site for the lab: a Git repository of manifests, a controller's state directory, and the command line as users run it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lab import Lab

ROOT = Path(__file__).parent.parent.parent
REFERENCE = ROOT / "manifests" / "lab-trio"
TIMEOUT = 150.0  # seconds of one call: a controller that hangs is a failure
OF_DRIVER = " 3:580.95.05-1.el9\n"  # how lines of a lock end that belong to the driver
GPUS = ("gpu01", "gpu02", "gpu03")


@dataclass(frozen=True)
class Result:
    """What one call of the command line came to."""

    code: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout + self.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def verdict(self) -> str:
        return self.stdout.splitlines()[0] if self.stdout else ""

    def plain(self) -> Result:
        """Itself, where nobody was shown a traceback or a sentence with a hole."""
        assert "Traceback" not in self.text, self.text
        assert "internal error" not in self.text, self.text
        return self

    def changes(self, node: str) -> dict[str, dict[str, Any]]:
        """Of `plan --json`: what would be done to each resource of a node, those without a change left out."""
        found: dict[str, dict[str, Any]] = {
            change["resource"]: change for change in self.json["nodes"][node]["changes"] if change["action"] != "none"
        }
        return found

    def reasons(self, node: str) -> dict[str, str]:
        """Of `plan --json`: why each resource of a node would change, or the code of its hold."""
        return {k: c["hold"]["code"] if c["hold"] else c["reason"] for k, c in self.changes(node).items()}


@dataclass(frozen=True)
class File:
    """A declared file."""

    content: str | bytes
    mode: str | None = None
    owner: str | None = None
    group: str | None = None
    restart: Sequence[str] | None = None


@dataclass
class Running:
    """A call that is still at work."""

    process: subprocess.Popen[str]
    _told: list[str] = field(default_factory=list)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def says(self, words: str) -> None:
        """Wait until a line on stderr has these words; its end without them is a failure."""
        assert self.process.stderr is not None
        for line in iter(self.process.stderr.readline, ""):
            self._told.append(line)
            if words in line:
                return
        raise AssertionError(f"it never said {words!r}: {''.join(self._told)}")

    def result(self, timeout: float = TIMEOUT) -> Result:
        stdout, stderr = self.process.communicate(timeout=timeout)
        return Result(self.process.returncode, stdout, "".join(self._told) + stderr).plain()


@dataclass
class Site:
    """`repo`: the manifests; `state`: this controller's records. Every change to the manifests is a commit."""

    lab: Lab
    repo: Path
    state: Path
    environment: dict[str, str] = field(default_factory=dict)

    # ---- manifests

    @classmethod
    def reference(cls, lab: Lab, folder: Path) -> Site:
        """The repository's own lab site, with the addresses and keys of this lab.

        Without what its GPUs bring, takes long and has tests of its own: the driver, which restarts each node, and the environment.
        """
        site = cls(lab, folder / "repo", folder / "state")
        site.repo.mkdir(parents=True)
        for source in sorted(p for p in REFERENCE.rglob("*") if p.is_file()):
            target = site.repo / source.relative_to(REFERENCE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
        manifest = site.repo / "site.yaml"
        text = manifest.read_text().replace("10.88.0.", f"{lab.config.subnet}.")
        text, left_out = re.subn("^  gpus: .*\n", "", text, flags=re.MULTILINE)
        assert left_out == 1
        manifest.write_text(text.replace("/run/reconcile-lab/id_ed25519", str(lab.identity)))
        lock = site.repo / "locks" / "lab" / "system-centos-stream-9.txt"
        lock.write_text("".join(line for line in lock.read_text().splitlines(keepends=True) if not line.endswith(OF_DRIVER)))
        site._begin()
        return site

    @classmethod
    def small(cls, lab: Lab, folder: Path, **declared: Any) -> Site:
        """A site with just what `declare` is told."""
        site = cls(lab, folder / "repo", folder / "state")
        site.repo.mkdir(parents=True)
        site._begin()
        site.declare(**declared)
        return site

    def _begin(self) -> None:
        (self.repo / "known_hosts").write_text(self.lab.known_hosts.read_text())
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("the site")

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=tester", "-c", "user.email=tester@example.net", "-c", "commit.gpgsign=false")
        argv = ("git", *identity, "-C", str(self.repo), *words)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, message: str = "a change") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def replace(self, old: str, new: str, path: str = "site.yaml") -> str:
        """Edit a file of the site and commit it."""
        text = (self.repo / path).read_text()
        assert old in text, f"{old!r} is not in {path}"
        (self.repo / path).write_text(text.replace(old, new))
        return self.commit()

    def declare(
        self,
        nodes: Sequence[str] = ("gpu01",),
        packages: Mapping[str, str] | None = None,
        files: Mapping[str, File | str] | None = None,
        ssh: Mapping[str, Any] | None = None,
        per_node: Mapping[str, Mapping[str, Any]] | None = None,
        rollout: Mapping[str, Any] | None = None,
        units: Mapping[str, Mapping[str, Any]] | None = None,
        hosts: Mapping[str, str] | None = None,
        driver: str | None = None,
    ) -> str:
        """Write the whole manifest anew and commit it. `per_node`: settings of single nodes; dnf is theirs unless they say more.

        `units`: `content` in place of a source. `hosts` None: /etc/hosts is left alone, also what follows from the nodes.
        `driver`: the stack's, on nodes of eight stand-in GPUs.
        """
        addresses = {name: node.address for name, node in self.lab.nodes.items()}
        of_node = {
            name: {
                "address": addresses[name],
                "packageManager": "apt" if name.startswith("deb") else "dnf",
                **(per_node or {}).get(name, {}),
            }
            for name in nodes
        }
        spec: dict[str, Any] = {
            "ssh": {"identity": str(self.lab.identity), "knownHosts": "known_hosts", **(ssh or {})},
            "nodes": of_node,
            "packages": dict(packages or {}),
            "files": {path: self._source(i, wanted) for i, (path, wanted) in enumerate((files or {}).items())},
            "hosts": hosts,
            "units": {name: self._unit(name, wanted) for name, wanted in (units or {}).items()},
            "rollout": rollout or {"canary": nodes[0], "maxUnavailable": str(len(nodes))},
        }
        documents = [{"apiVersion": "reconcile/v1", "kind": "Cluster", "metadata": {"name": "e2e"}, "spec": spec}]
        documents += [self._stack(spec, driver)] if driver else []
        (self.repo / "site.yaml").write_text(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True))
        return self.commit()

    def _stack(self, spec: dict[str, Any], driver: str) -> dict[str, Any]:
        """The stack of a site with a driver; `spec` is told of it, of GPUs and of where the packages are."""
        spec["mirrors"] = {"nvidia": f"http://{self.lab.config.subnet}.1:8000/rpms"}
        spec |= {"versions": "e2e", "gpus": {"model": "A100 80GB PCIe", "count": "8", "standIn": "true"}}
        return {"apiVersion": "reconcile/v1", "kind": "Versions", "metadata": {"name": "e2e"}, "spec": {"driver": driver}}

    def _unit(self, name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
        said = {key: value for key, value in wanted.items() if key != "content"}
        if "content" in wanted:
            (self.repo / "files").mkdir(exist_ok=True)
            (self.repo / "files" / name).write_text(wanted["content"])
            said["source"] = f"files/{name}"
        return said

    def _source(self, number: int, wanted: File | str) -> dict[str, Any]:
        file = wanted if isinstance(wanted, File) else File(wanted)
        (self.repo / "files").mkdir(exist_ok=True)
        name = f"files/{number}"
        (self.repo / name).write_bytes(file.content.encode() if isinstance(file.content, str) else file.content)
        restart = list(file.restart) if file.restart else None
        said = {"mode": file.mode, "owner": file.owner, "group": file.group, "restart": restart}
        return {"source": name, **{key: value for key, value in said.items() if value is not None}}

    # ---- the command line

    def other(self, name: str) -> Site:
        """A second controller of the same repository."""
        return Site(self.lab, self.repo, self.state.with_name(name), dict(self.environment))

    def start(self, *words: str, **environment: str) -> Running:
        """`reconcile WORDS`, not waited for."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("RECONCILE_")}
        own = {"RECONCILE_STATE_DIR": str(self.state), "PYTHONPATH": str(ROOT), **self.environment, **environment}
        argv = [sys.executable, "-m", "reconciler", *words]
        process = subprocess.Popen(
            argv,
            cwd=self.repo,
            env={**inherited, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        return Running(process)

    def run(self, *words: str, **environment: str) -> Result:
        """`reconcile WORDS` in the repository, to its end."""
        return self.start(*words, **environment).result()

    def ok(self, *words: str) -> Result:
        """The same, which has to end with 0."""
        done = self.run(*words)
        assert done.code == 0, f"reconcile {' '.join(words)}: {done.code}\n{done.text}"
        return done

    # ---- the controller's records

    def journal(self) -> list[dict[str, Any]]:
        """All whole records, without the header."""
        path = self.state / "journal.jsonl"
        data = path.read_text() if path.exists() else ""
        whole = data[: data.rfind("\n") + 1].splitlines()
        return [json.loads(line) for line in whole[1:]]
