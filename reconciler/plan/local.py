"""What one node may do by itself, where nobody sees the others."""

from __future__ import annotations

from reconciler.model.desired import DesiredNode, PythonEnvironmentSpec

# a restart takes a node out of service, and how many may be is a question of the whole cluster
TOGETHER = frozenset({"GpuDriver"})


def local(node: DesiredNode) -> tuple[str, ...]:
    """The resources that concern this node alone, as targets of a selection: no driver, no environment that another node builds."""
    return tuple(
        str(resource.id)
        for resource in node.resources
        if resource.id.kind not in TOGETHER
        and not (isinstance(resource.spec, PythonEnvironmentSpec) and resource.spec.builder is not None)
    )
