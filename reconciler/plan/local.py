"""What one node may do by itself, where nobody sees the others."""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.desired import DesiredNode, PythonEnvironmentSpec

# a restart takes a node out of service, and how many may be is a question of the whole cluster
TOGETHER = frozenset({"GpuDriver"})


def local(node: DesiredNode, approve: Collection[str] = ()) -> tuple[str, ...]:
    """The resources that concern this node alone, as targets of a selection.

    No driver, no environment that another node builds, and no kind of `approve`: nobody is there who could.
    """
    return tuple(
        str(resource.id)
        for resource in node.resources
        if resource.id.kind not in TOGETHER
        and resource.id.kind not in approve
        and not (isinstance(resource.spec, PythonEnvironmentSpec) and resource.spec.builder is not None)
    )
