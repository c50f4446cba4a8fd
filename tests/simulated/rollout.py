"""What has to hold when a plan is made and when a step begins: true holds, the order of nodes, fitness to restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from reconciler.model.plan import Plan
from tests.simulated import checks
from tests.simulated.acts import NODES
from tests.simulated.manifest import Manifest

if TYPE_CHECKING:
    from tests.simulated.world import World


def holds(world: World, plan: Plan) -> Iterator[str]:
    """A driver is held for what is so on the node, or because another one is out of service."""
    down = any(node.failure for node in plan.nodes.values())
    for name, node in plan.nodes.items():
        machine = world.machines[name]
        true = world.manifest.driver_holds(machine) | ({"TooManyDown"} if down else set())
        true |= {"StepRunning"} if any(not record["settled"] for record in checks.records_of(machine)) else set()
        for change in node.changes:
            if change.id.kind == "GpuDriver" and change.hold and change.hold.code not in true and name not in world.op.disturbed:
                yield f"{name}: the driver is held for {change.hold.code}, and what is so is {sorted(true)}"


def begins(world: World, name: str, action: Mapping[str, Any]) -> Iterator[str]:
    """A step is about to begin on a node."""
    op = world.op
    if "reboot" in action:
        yield from _restarts(world, name, action["reboot"]["wanted"])
    if name in op.begun or op.plan is None:
        return
    op.begun.append(name)
    limit = _limit(world.manifest.now.get("max", "1"), op.plan)
    if len(busy := [n for n in op.begun if n not in op.finished]) > limit:
        yield f"{busy} at once, and maxUnavailable allows {limit}"
    canaries = _canaries(world.manifest, op.plan)
    for canary in canaries:
        if name not in canaries and op.finished.get(canary) != "converged":
            yield f"{name} begins before its canary {canary}: {op.finished.get(canary)}"


def _restarts(world: World, name: str, wanted: str) -> Iterator[str]:
    """Nobody uses a GPU, the boot has what it needs, it is not the second try, and not too many nodes are away by our doing."""
    gpu = world.machines[name].gpu
    gpu.asked = wanted
    if gpu.user:
        yield f"{name} is restarted while a process holds a GPU"
    if gpu.module != wanted:
        yield f"{name} is restarted for {wanted}, and on its disk is {gpu.module}"
    if gpu.failed == wanted:
        yield f"{name} is restarted for {wanted} once more"
    away = [n for n, m in world.machines.items() if n != name and (m.down_at is not None or m.back_at is not None)]
    if len(away) >= (limit := _allowed(world.manifest.now.get("max", "1"))):
        yield f"{name} is restarted while {away} are away, and maxUnavailable allows {limit}"


def _allowed(said: str) -> int:
    return max(1, len(NODES) * int(said[:-1]) // 100 if said.endswith("%") else int(said))


def _limit(said: str, plan: Plan) -> int:
    return max(1, _allowed(said) - sum(1 for node in plan.nodes.values() if node.failure))


def _canaries(manifest: Manifest, plan: Plan) -> set[str]:
    """One of each profile that has several nodes to be written, where it is one of those (docs/adr/0001)."""
    found = set()
    for profile in (("a", "b"), ("c",)):
        members = [n for n in profile if n in plan.nodes]
        todo = [n for n in members if plan.nodes[n].steps]
        if len(todo) < 2:
            continue
        declared = manifest.now.get("canary", "")
        first = declared if declared in members else members[0]
        found.add(first if first in todo else todo[0])
    return found
