"""Sentences of the controller's reason codes: its socket, its conditions, what a person has to see to."""

from __future__ import annotations

SENTENCES = {
    # the socket
    "NoController": "no controller listens at {path}: start `reconcile controller`, or name its --state-dir",
    "ControllerDenied": "you may not speak to the controller at {path}: be its user, or in its group",
    "ControllerLost": "the controller at {path} went away before it had finished; what it began goes on when it is back",
    "ControllerGarbled": "what listens at {path} does not speak as the controller does",
    "LineTooLong": "a message of {size} bytes is longer than {limit}",
    "UnknownVersion": "the controller speaks version {supported} of its protocol, not {version}",
    "UnknownOp": "the controller has no operation '{name}' ({ops})",
    "WrongField": "operation {op} does not take {fields} like this; its fields are {allowed}",
}
