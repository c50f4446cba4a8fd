"""What a running node's nvidia-smi answered: its text, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import given, nvsmi, raw
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

DEADLINE = 20.0  # seconds of the whole question
_MARGIN = 2.0


@dataclass(frozen=True, slots=True)
class Said:
    """One call that ended."""

    out: str
    err: str
    status: int


def ask(*calls: tuple[str, ...]) -> Ask:
    """Calls of nvidia-smi, one after another, none where the driver is not loaded."""
    arguments = {"calls": [list(call) for call in calls], "seconds": (DEADLINE - _MARGIN) / len(calls)}
    return Ask("nvsmi", json.dumps(arguments, sort_keys=True), DEADLINE)


def said(answer: Raw, number: int = 0) -> Fact[Said]:
    """A call's answer, whatever its exit status.

    Absent(NoDevices): no driver and no hardware. Unknown(DriverNotLoaded): it was not called, for it would load the driver.
    Absent(NotInstalled): there is a driver and no nvidia-smi.
    """
    found = raw.fragment(answer)
    if not isinstance(found, Value):
        return found
    item = found.value if isinstance(found.value, Mapping) else {}
    loaded = given.flag(item, "loaded")
    if not isinstance(loaded, Value):
        return loaded
    if not loaded.value:
        return Absent("NoDevices") if given.whole(item, "hardware") == Value(0) else Unknown("DriverNotLoaded")
    calls = given.objects(item, "calls")
    if not isinstance(calls, Value):
        return calls
    return _call(calls.value[number]) if number < len(calls.value) else given.WRONG


def _call(call: Mapping[str, Any]) -> Fact[Said]:
    status, out, err = call.get("status"), call.get("out", ""), call.get("err", "")
    if isinstance(code := call.get("error"), str):
        return raw.unread(code, "NotInstalled")
    if type(status) is not int or not isinstance(out, str) or not isinstance(err, str):
        return given.WRONG
    return Value(Said(out, err, status))


def failure(call: Said) -> Absent | Unknown | None:
    """Why it failed: by its message, else by its exit status; None where it ended with 0."""
    if call.status == 0:
        return None
    told = nvsmi.faults([*call.out[:4000].splitlines(), *call.err.splitlines()])
    code = told[0].code if told else nvsmi.code_of(call.status) or "CommandFailed"
    words = told[0].said if told else raw.clean(call.err or call.out[:2000])
    return Absent(code) if code == "NoDevices" else Unknown(code, words or f"status {call.status}")


def output(answer: Raw, number: int = 0) -> Fact[str]:
    """The text of a call that ended with 0."""
    call = said(answer, number)
    if not isinstance(call, Value):
        return call
    return failure(call.value) or Value(call.value.out)
