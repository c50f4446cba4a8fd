"""Faults that are put into the driver's part of the product on purpose, as in `mutations`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

from reconciler import engine
from reconciler.apply import adopt, executor
from reconciler.apply.reboot import Return
from reconciler.errors import Unreachable
from reconciler.kinds import driver_holds, gpu_driver
from reconciler.model.fact import Part
from reconciler.model.plan import Step
from reconciler.node import steps
from reconciler.plan import build
from reconciler.transport import probe

Patched = contextlib.AbstractContextManager[Any]


def _no_second_look_before_a_reboot() -> Patched:
    reboot = executor.Executor._reboot

    def blind(self: executor.Executor, work: Any, step: Step) -> Mapping[str, Any]:
        return reboot(replace(self, verify=lambda *_: ()), work, step)

    return mock.patch.object(executor.Executor, "_reboot", blind)


def _a_reboot_is_done_in_the_same_boot() -> Patched:
    return mock.patch.object(steps, "_rebooted", lambda found: dict(found, state="done"))


def _reboots_are_not_noted() -> Patched:
    return mock.patch.object(steps, "_note_reboot", lambda reboot: None)


def _what_was_never_told_is_waited_for() -> Patched:
    wait = Return.wait
    return mock.patch.object(Return, "wait", lambda self: wait(replace(self, over=lambda channel: False)))


def _a_node_that_goes_down_is_lost_to_adoption() -> Patched:
    def lost(*_: Any) -> None:
        raise Unreachable("ConnectionLost")

    return mock.patch.object(adopt, "_back", lost)


def _notes_of_reboots_stay() -> Patched:
    return mock.patch.object(steps, "_forget_reboots", lambda: None)


def _users_of_gpus_are_nobody() -> Patched:
    return mock.patch.object(driver_holds, "_users", lambda seen: None)


def _what_did_not_load_is_tried_again() -> Patched:
    return mock.patch.object(driver_holds, "_loading", lambda seen, target: None)


@contextlib.contextmanager
def _there_is_always_room() -> Any:
    with mock.patch.object(build, "spare", lambda *_: True), mock.patch.object(engine.Engine, "_room", lambda *_: 99):
        yield


def _nodes_that_were_not_named_do_not_count() -> Patched:
    return mock.patch.object(engine, "restarts", lambda node: False)


def _old_token_after_a_reboot() -> Patched:
    reboot = executor.Executor._reboot

    def kept(self: executor.Executor, work: Any, step: Step) -> Mapping[str, Any]:
        token = work.token
        try:
            return reboot(self, work, step)
        finally:
            work.token = token

    return mock.patch.object(executor.Executor, "_reboot", kept)


def _missing_packages_are_not_counted() -> Patched:
    summary = gpu_driver._summary
    return mock.patch.object(gpu_driver, "_summary", lambda installed, wanted: summary(installed, len(installed)))


def _only_enabled_streams_are_asked_for() -> Patched:
    encode = probe._encode

    def plain(part: Part) -> dict[str, Any]:
        return {key: value for key, value in encode(part).items() if key != "every_stream"}

    return mock.patch.object(probe, "_encode", plain)


DRIVER_MUTATIONS: dict[str, Callable[[], Patched]] = {
    function.__name__.strip("_"): function
    for function in (
        _no_second_look_before_a_reboot,
        _a_reboot_is_done_in_the_same_boot,
        _reboots_are_not_noted,
        _what_was_never_told_is_waited_for,
        _a_node_that_goes_down_is_lost_to_adoption,
        _notes_of_reboots_stay,
        _users_of_gpus_are_nobody,
        _what_did_not_load_is_tried_again,
        _there_is_always_room,
        _nodes_that_were_not_named_do_not_count,
        _old_token_after_a_reboot,
        _missing_packages_are_not_counted,
        _only_enabled_streams_are_asked_for,
    )
}
