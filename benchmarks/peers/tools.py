"""How each tool is called on the work, and what it says that it saw: the tasks that would change and the facts, by node."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.peers import work
from benchmarks.peers.installed import Peers
from benchmarks.peers.work import Endpoint

ROOT = Path(__file__).parent.parent.parent
KEX = "curve25519-sha256"  # OpenSSH's own first choice, sntrup761, costs either side more; none of the others offers it


@dataclass(frozen=True)
class Seen:
    """What one tool says of one node."""

    changes: frozenset[str]
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """One process of a tool, for one part of the work."""

    part: str
    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def whole_environment(self) -> dict[str, str]:
        """This process's, without what steers a tool from outside."""
        foreign = ("RECONCILE_", "ANSIBLE_", "PYINFRA_", "PYTHON", "VIRTUAL_ENV")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
        return {**kept, "LC_ALL": "C.UTF-8", **self.environment}


class Tool(Protocol):
    """One of those that are compared."""

    @property
    def name(self) -> str: ...

    def calls(self) -> Sequence[Call]:
        """What does the whole work once: a call for each of `work.PARTS`, in this order."""
        ...

    def read(self, outputs: Sequence[str]) -> dict[str, Seen]:
        """What the calls wrote to their standard output."""
        ...


@dataclass(frozen=True)
class Ours:
    """`reconcile plan` and `reconcile observe`."""

    folder: Path
    endpoints: Sequence[Endpoint]
    name: str = "reconcile"

    def prepared(self, identity: Path, known_hosts: str, names: Mapping[str, str]) -> Ours:
        repo = self.folder / "repo"
        work.write_files(repo / "files")
        (repo / "site.yaml").write_text(work.manifest(self.endpoints, names, identity))
        (repo / "known_hosts").write_text(known_hosts)
        return self

    def call(self, part: str, *words: str) -> Call:
        environment = {"RECONCILE_STATE_DIR": str(self.folder / "state"), "PYTHONPATH": str(ROOT)}
        return Call(part, (sys.executable, "-m", "reconciler", *words), self.folder / "repo", environment)

    def calls(self) -> Sequence[Call]:
        asked = tuple(word for fact in work.OUR_FACTS for word in ("--fact", fact))
        return self.call(work.PLAN, "plan", "--json"), self.call(work.FACTS_PART, "observe", "--json", *asked)

    def read(self, outputs: Sequence[str]) -> dict[str, Seen]:
        plan, seen = (json.loads(text)["nodes"] for text in outputs)
        return {
            name: Seen(
                frozenset(work.task_of(c["resource"]) for c in node["changes"] if c["action"] != "none"),
                _our_facts({fact: told["value"] for fact, told in seen[name]["facts"].items()}),
            )
            for name, node in plan.items()
        }


def _our_facts(told: Mapping[str, Any]) -> dict[str, Any]:
    """The twenty, from the eight of ours that hold them."""
    fields, cpus, links = told["os-release"]["fields"], told["hardware"]["cpus"], told["links"]
    packages, units = told["packages-rpm"]["packages"], told["units"]
    found = (
        told["hostname"]["running"],
        fields["ID"],
        fields["VERSION_ID"],
        told["kernel"]["running"],
        told["kernel"]["architecture"],
        cpus["threads"],
        told["hardware"]["memory"]["total"] >> 30,
        cpus["model"],
        links["eth0"]["address"],
        links["eth0"]["mtu"],
        links["lo"]["mtu"],
        len(packages),
        *(packages[n][0].rpartition(".")[0] if n in packages else None for n in ("glibc", "numactl", "tmux", "htop")),
        *(flag for u in ("sshd.service", "lab-kmsg.service") for flag in _unit(units[u])),
    )
    return dict(zip(work.FACTS, found, strict=True))


def _unit(told: Mapping[str, Any]) -> tuple[bool, bool]:
    return told["active"] == "active", told["file_state"] == "enabled"


@dataclass(frozen=True)
class Ansible:
    """`ansible-playbook --check --diff`, tuned: pipelining, one kept connection a node, as many forks as nodes (32 at most)."""

    folder: Path
    peers: Peers
    endpoints: Sequence[Endpoint]
    mitogen: bool = False

    @property
    def name(self) -> str:
        return "mitogen" if self.mitogen else "ansible"

    def prepared(self, identity: Path, known_hosts: Path, names: Mapping[str, str]) -> Ansible:
        work.write_files(self.folder / "files")
        (self.folder / "plan.yaml").write_text(work.playbook(names, self.folder / "files"))
        (self.folder / "facts.yaml").write_text(work.facts_playbook())
        common = {
            "ansible_host": "127.0.0.1",
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_private_key_file": str(identity),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={known_hosts} -o KexAlgorithms={KEX} -o IdentitiesOnly=yes",
        }
        hosts = {e.name: {"ansible_port": e.port} for e in self.endpoints}
        (self.folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))
        (self.folder / "ansible.cfg").write_text(self._settings())
        return self

    def _settings(self) -> str:
        settings = {
            "defaults": {"nocolor": "true", "forks": min(len(self.endpoints), 32), "host_key_checking": "true"},
            "ssh_connection": {
                "pipelining": "true",
                "ssh_args": "-C -o ControlMaster=auto -o ControlPersist=60s",
                "control_path_dir": self.folder / "cp",
            },
        }
        if self.mitogen:
            settings["defaults"] |= {"strategy": "mitogen_linear", "strategy_plugins": self.peers.mitogen}
        sections = (f"[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in of.items()) for name, of in settings.items())
        return "".join(sections)

    def calls(self) -> Sequence[Call]:
        settings = {"ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"), "ANSIBLE_HOME": str(self.folder / "home")}
        argv = (self.peers.program("ansible-playbook"), "--check", "--diff", "--inventory", "hosts.json")
        return tuple(Call(part, (*argv, f"{part}.yaml"), self.folder, settings) for part in work.PARTS)

    def read(self, outputs: Sequence[str]) -> dict[str, Seen]:
        plan, facts = outputs
        changes: dict[str, set[str]] = {e.name: set() for e in self.endpoints}
        for block in re.split(r"^TASK \[", plan, flags=re.MULTILINE)[1:]:
            for node in re.findall(r"^changed: \[(\S+)\]", block, re.MULTILINE):
                changes[node].add(block.partition("]")[0])
        shown = re.findall(r"^ok: \[(\S+)\] => (\{.*?^\})", facts, re.MULTILINE | re.DOTALL)
        return {node: Seen(frozenset(changes[node]), json.loads(told)["msg"]) for node, told in shown}


@dataclass(frozen=True)
class Pyinfra:
    """`pyinfra --dry`, never with -y; as many hosts at once as there are (32 at most)."""

    folder: Path
    peers: Peers
    endpoints: Sequence[Endpoint]
    name: str = "pyinfra"

    def prepared(self, identity: Path, known_hosts: Path, names: Mapping[str, str]) -> Pyinfra:
        work.write_files(self.folder / "files")
        (self.folder / "work.json").write_text(work.for_pyinfra(names, self.folder / "files"))
        common = {
            "ssh_hostname": "127.0.0.1",
            "ssh_user": "root",
            "ssh_key": str(identity),
            "ssh_known_hosts_file": str(known_hosts),
            "ssh_strict_host_key_checking": "yes",
            "ssh_allow_agent": False,
            "ssh_look_for_keys": False,
        }
        hosts = [(e.name, {**common, "ssh_port": e.port}) for e in self.endpoints]
        (self.folder / "hosts.py").write_text(f"nodes = {hosts!r}\n")
        for part in work.PARTS:
            (self.folder / f"{part}.py").write_text(Path(__file__).with_name(f"pyinfra_{part}.py").read_text())
        return self

    def calls(self) -> Sequence[Call]:
        settings = {"PEERS_WORK": str(self.folder / "work.json")}
        parallel = str(min(len(self.endpoints), 32))
        argv = (self.peers.program("pyinfra"), "--dry", "--diff", "--json", "--parallel", parallel, "hosts.py")
        return tuple(Call(part, (*argv, f"{part}.py"), self.folder, settings) for part in work.PARTS)

    def read(self, outputs: Sequence[str]) -> dict[str, Seen]:
        plan = json.loads(outputs[0])["plan"]
        told = [line.split(" ", 2)[1:] for line in outputs[1].splitlines() if line.startswith("FACTS ")]
        return {
            node: Seen(frozenset(op["names"][0] for op in plan if node in _hosts(op)), json.loads(facts)) for node, facts in told
        }


def _hosts(operation: Mapping[str, Any]) -> set[str]:
    return {*operation["hosts_with_change"], *operation["hosts_with_conditional_change"]}
