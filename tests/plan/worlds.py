"""One node as a case describes it: declared resources and what is on it, and the plan between the two as lines of text."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.kinds.base import spec_digest
from reconciler.model.desired import (
    DesiredNode,
    DesiredState,
    FileSpec,
    HostnameSpec,
    HostsSpec,
    Origin,
    PackageSpec,
    Resource,
    ResourceId,
    Revision,
    Rollout,
    Spec,
    SshAccess,
    UnitSpec,
)
from reconciler.model.fact import Facts, Probe, Raw, Reading
from reconciler.model.observed import Known, NodeState, ObservedState
from reconciler.model.plan import Change, NodePlan, Plan, Selection, Step
from reconciler.model.version import is_prefix, is_version
from reconciler.plan.build import build_plan, follow_up
from reconciler.plan.scope import first_probes
from tests.cases import raw
from tests.plan import drivers, environments

Case = Mapping[str, Any]
RELEASES = {
    "centos-stream-9": 'NAME="CentOS Stream"\nID="centos"\nVERSION_ID="9"\n',
    "debian-12": "ID=debian\nVERSION_ID=12\n",
    "suse-15": "ID=suse\nVERSION_ID=15\n",
}


def resource(said: Case, line: int = 1) -> Resource:
    """`package`, `driver`, `file`, `hosts`, `environment`, `unit` or `hostname` names it; the rest is its spec."""
    spec: Spec
    if "package" in said:
        ensure = str(said.get("ensure", "present"))
        how = "prefix" if is_prefix(ensure) else "exact" if is_version(ensure) else ensure
        spec = PackageSpec(said["package"], how, ensure if is_version(ensure) else None, said.get("locked"))  # type: ignore[arg-type]
        name = ("Package", said["package"])
    elif "file" in said:
        content = base64.b64decode(said["content64"]) if "content64" in said else str(said.get("content", "")).encode()
        more = {key: said[key] for key in ("owner", "group", "mode", "repository") if key in said}
        more |= {"restart": tuple(said["restart"])} if "restart" in said else {}
        spec, name = FileSpec(said["file"], content, **more), ("File", said["file"])
    elif "environment" in said:
        spec, name = environments.spec(said), ("PythonEnvironment", said["environment"])
    elif "hosts" in said:
        lines = "".join(f"{address} {name}\n" for name, address in said["hosts"].items())
        spec, name = HostsSpec(lines), ("HostsEntries", "/etc/hosts")
    elif "driver" in said:
        spec, name = drivers.spec(said), ("GpuDriver", "nvidia")
    elif "unit" in said:
        own = str(said["content"]).encode() if "content" in said else None
        drop_ins = tuple(said.get("drop_ins", ()))
        spec = UnitSpec(said["unit"], own, said.get("enabled"), said.get("state"), drop_ins)
        name = ("SystemdUnit", said["unit"])
    else:
        spec, name = HostnameSpec(said["hostname"]), ("Hostname", said["hostname"])
    return Resource(ResourceId(*name), spec, Origin("site.yaml", line), said.get("distribution"), said.get("manager"))


def node(case: Case, name: str = "gpu01") -> DesiredNode:
    resources = tuple(resource(said, line) for line, said in enumerate(case["declared"], start=1))
    about = {key: case[key] for key in ("manager", "stack", "profile") if key in case}
    return DesiredNode(name, SshAccess(name), resources, distributions=tuple(case.get("distributions", ())), **about)


def _stat(path: str, found: Case) -> Raw:
    at = found.get("files", {}).get(path, {"type": "none"})
    if "error" in at:
        return raw(at)
    content = str(at.get("content", "")).encode()
    users = found.get("missing_users", ())
    about: dict[str, Any] = {"type": at.get("type", "file"), "owner_exists": not users, "parent": at.get("parent", "directory")}
    about["group_exists"] = not found.get("missing_groups", ())
    if about["type"] != "none":
        about |= {"mode": at.get("mode", 0o644), "owner": at.get("owner", "root"), "group": at.get("group", "root")}
        about |= {"size": at.get("size", len(content)), "sha256": hashlib.sha256(content).hexdigest()}
    if "sha256" in at:
        about["sha256"] = at["sha256"]
    return Raw(json.dumps(about).encode())


def _lines(said: Any) -> Raw:
    """A list of lines whose blanks stand for tabs, or a raw answer."""
    if isinstance(said, Mapping):
        return raw(said)
    return Raw("".join(line.replace(" ", "\t") + "\n" for line in said).encode(), status=0)


def _deb(said: list[str]) -> Raw:
    return Raw("".join(line[:2] + " \t" + line[3:].replace(" ", "\t") + "\n" for line in said).encode(), status=0)


def _madison(said: Any) -> Raw:
    return raw(said) if isinstance(said, Mapping) else Raw("".join(f"{line} | x Packages\n" for line in said).encode(), status=0)


def _text(said: Any) -> Raw:
    return raw(said) if isinstance(said, Mapping) else Raw(str(said).encode())


RUNS = {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "Type": "simple", "NRestarts": "0"}
RUNS |= {"InactiveExitTimestampMonotonic": "1000", "NeedDaemonReload": "no", "Result": "success", "ExecMainStatus": "0"}
RESTS = RUNS | {"ActiveState": "inactive", "SubState": "dead", "InactiveExitTimestampMonotonic": "0"}
NONE = RESTS | {"LoadState": "not-found", "Type": ""}
STATES = {
    "runs": RUNS,
    "rests": RESTS,
    "none": NONE,
    "failed": RESTS | {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code", "ExecMainStatus": "3"},
    "loops": RUNS | {"ActiveState": "activating", "SubState": "auto-restart", "Result": "exit-code", "NRestarts": "7"},
    "starts": RUNS | {"ActiveState": "activating", "SubState": "start"},
    "masked": RESTS | {"LoadState": "masked", "UnitFileState": "masked"},
}


def _units(asked: tuple[str, ...], found: Case) -> Raw:
    """A unit of a case: one of STATES (`is`), and properties that are other. One that is not in it does not exist."""
    said = found.get("units", {})
    if "error" in said or "out" in said:
        return raw(said)
    blocks = []
    for name in asked:
        own = dict(said.get(name, {"is": "none"}))
        fragment = {"FragmentPath": f"/etc/systemd/system/{name}"} if own.get("is") != "none" else {}
        properties = {"Id": name, "Names": name, **STATES[own.pop("is", "runs")], **fragment, **own}
        blocks.append("".join(f"{key}={value}\n" for key, value in properties.items()))
    return Raw("\n".join(blocks).encode(), status=0)


def _notes(said: Any) -> Raw:
    if said is None or "error" in said or "out" in said:
        return raw(said or {"error": "missing"})
    units = {name: dict(zip(("path", "at"), note, strict=True)) for name, note in said.items() if name != "boot"}
    return Raw(json.dumps({"version": 1, "boot_id": said.get("boot", "boot"), "units": units}).encode())


def _hosts(said: Any) -> tuple[Raw, ...]:
    """Content, or what a File of a case has."""
    at = said if isinstance(said, Mapping) else {"content": said}
    missing = {"/etc/hosts": at} if said is not None else {}
    content = base64.b64decode(at["content64"]) if "content64" in at else str(at.get("content", "")).encode()
    read = raw(at["read"]) if "read" in at else Raw(content) if said is not None else raw({"error": "missing"})
    return _stat("/etc/hosts", {"files": missing}), read


def answer(probe: Probe, case: Case) -> tuple[Raw, ...]:
    """What the node of the case says to one probe."""
    found = case.get("found", {})
    kind, _, path = probe.key.partition(":")
    if kind == "file":
        return (_stat(path, found),)
    if kind == "content":
        at = found["files"][path]
        return (Raw(base64.b64decode(at["content64"])) if "content64" in at else _text(at.get("content", "")),)
    if kind == "environment":
        return (environments.answer(found),)
    if kind == "hostname":
        return tuple(_text(said) for said in found["hostname"])
    if kind == "versionlock":
        return (_text(found.get("locks", {"error": "missing"})), _text(found.get("plugin", "[main]\nenabled=1\n")))
    if kind == "packages-rpm":
        return (_lines(found.get("rpm", ["rpm 0 4.16 1 x86_64"])),)
    if kind == "packages-deb":
        listed = found.get("deb", ["ii dpkg 1.21 amd64"])
        return (raw(listed) if isinstance(listed, Mapping) else _deb(listed),)
    if kind in ("available", "available-driver"):
        offered = found.get("offered", [])
        return (_madison(offered) if getattr(probe.parts[0], "manager", "") == "apt" else _lines(offered),)
    if kind == "still-needed":
        asked = " ".join(getattr(probe.parts[0], "argv", ()))
        return (raw({"source": asked, **found.get("needed", {})}),)
    if kind == "hosts-file":
        return _hosts(found.get("hosts"))
    if kind == "declared-units":
        return (_units(getattr(probe.parts[0], "gathered", ()), found),)
    if kind in ("driver-modules", "kernel", "gpu-users", "driver-stream", "reboots"):
        return drivers.answer(kind, found)
    if kind == "restarts":
        return (_notes(found.get("restarts")),)
    release = found.get("os_release", RELEASES[case.get("distribution", "centos-stream-9")])
    return (_text(release),)


def ask(probes: tuple[Probe, ...], case: Case) -> dict[str, Reading]:
    return {p.key: Reading(p.key, answer(p, case), 0.0, "boot") for p in probes}


def look(wanted: DesiredNode, case: Case, selection: Selection) -> Facts:
    """Both rounds of questions, answered: nothing is in it that was not asked."""
    facts = Facts(ask(first_probes(wanted, selection), case))
    return Facts({**facts.readings, **ask(follow_up(wanted, facts, selection), case)})


def state(*nodes: DesiredNode, **rollout: Any) -> DesiredState:
    return DesiredState("lab", Revision("c" * 40), "d" * 64, {n.name: n for n in nodes}, Rollout(**rollout))


def plan_of(
    desired: DesiredState, observed: Mapping[str, Any], known: Known | None = None, selection: Selection | None = None
) -> Plan:
    about = {"plan_id": "p1", "created": 1.0, "tool_version": "0.1"}
    return build_plan(desired, ObservedState(observed), known or Known(), selection=selection or Selection(), **about)  # type: ignore[arg-type]


def node_plan(case: Case, known: Known | None = None) -> NodePlan:
    """The plan of the case's one node."""
    wanted, selection = node(case), Selection(targets=tuple(case.get("targets", ())))
    facts = look(wanted, case, selection)
    found = NodeState(facts, "boot", _inventory(wanted, case.get("inventory", {})), tuple(case.get("running", ())))
    return plan_of(state(wanted), {wanted.name: found}, known, selection).nodes[wanted.name]


def _inventory(wanted: DesiredNode, said: Mapping[str, str]) -> dict[str, str]:
    digests = {str(r.id): spec_digest(r.spec) for r in wanted.resources}
    return {name: digests[name] if what == "same" else "0" * 16 for name, what in said.items()}


def lines(plan: NodePlan) -> Iterator[str]:
    """Every change and every step of one node's plan."""
    for change in plan.changes:
        yield from _change(change)
    for step in plan.steps:
        yield from _step(step)


def _change(change: Change) -> Iterator[str]:
    reason = f" ({change.reason})" if change.reason else ""
    hold = f" {change.hold.code} {json.dumps(dict(change.hold.data), sort_keys=True)}" if change.hold else ""
    yield f"{change.action} {change.id}{reason}{hold}"
    yield from (f"    {f.path}: {f.before} -> {f.after}" for f in change.fields)
    yield from (f"    {line}" for line in change.diff)


def _step(step: Step) -> Iterator[str]:
    yield f"step {step.number} {step.title}: {', '.join(map(str, step.resources))}"
    for command in step.action.get("commands", ()):
        yield f"    $ {shlex.join(command['argv'])}"
        if "arguments" in command:
            yield f"    = {command['fragment']} {json.dumps(command['arguments'], sort_keys=True)}"
        yield from (f"    < {line}" for line in command.get("stdin", "").splitlines())
    if file := step.action.get("file") or step.action.get("exchange"):
        whose = f"{file['mode']:04o} {file['owner']}:{file['group']}" if "mode" in file else f"instead of {file['expected'][:8]}"
        yield f"    > {file['path']} {whose}" + (f" then {', '.join(file['restart'])}" if "restart" in file else "")
        yield from (f"    | {line}" for line in base64.b64decode(file["content"]).decode("utf-8", "replace").splitlines())
