"""The GPUs of one node, from outside: what tests and `python -m lab gpu` turn."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lab.errors import NotUpError
from lab.gpus.codec import assign, check, from_json, parse_setting, to_json
from lab.gpus.defaults import default_state
from lab.gpus.state import NodeState

if TYPE_CHECKING:
    from lab.node import LabNode

_STATE = "/etc/lab/gpus.json"
_FOLLOW = "/usr/lib/lab-gpus/lab-gpus follow"


class GpuPanel:
    """Reads and changes a node's GPU state. What is changed holds when the call returns; without power, from the next boot."""

    def __init__(self, node: "LabNode") -> None:
        self._node = node

    def state(self) -> NodeState:
        return from_json(self._node.disk.read(_STATE))

    def set(self, *settings: str) -> NodeState:
        """`gpus.5.lost=true`, `gpus.2.pcie.width=8`: all at once; UsageError where one makes no sense, and then none holds."""

        def changed(state: NodeState) -> NodeState:
            for setting in settings:
                state = assign(state, *parse_setting(setting))
            return state

        return self.update(changed)

    def update(self, change: Callable[[NodeState], NodeState]) -> NodeState:
        """Replace the state by what `change` makes of it; returns the new one."""
        if not self._node.disk.exists:
            raise NotUpError(f"{self._node.name} has no disk: the lab is not up")
        state = change(self.state())
        check(state)
        self._node.disk.write(_STATE, to_json(state))
        if self._node.powered:
            self._node.inside(_FOLLOW)
        return state

    def heal(self) -> NodeState:
        """All well again. GPUs that came back are told of by no line in the kernel log."""
        return self.update(lambda _: default_state(self._node.name))
