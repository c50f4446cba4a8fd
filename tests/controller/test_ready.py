"""Ready is said of what was carried out, never of what a newer revision still wants."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from reconciler.controller.conditions import Status
from reconciler.controller.turn import Turns
from tests.controller.site import World, manifest, until


class Held:
    """Turns that begin when they are let."""

    def __init__(self, turns: Turns, gate: threading.Event) -> None:
        self._turns, self._gate = turns, gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turns, name)

    def run(self, *about: Any) -> Any:
        assert self._gate.wait(60)
        return self._turns.run(*about)


def test_nobody_is_told_ready_for_what_was_not_carried_out_yet(world: World) -> None:
    with world.running() as process:
        world.wait("Ready")
        gate = threading.Event()
        former, process.loop.turns = process.loop.turns, Held(process.loop.turns, gate)  # type: ignore[assignment]
        try:
            world.commit({"motd": "two\n"})
            process.loop.look()
            assert world.condition(process, "node/gpu01", "Ready") == (Status.UNKNOWN, "NotCarriedOut")
            assert world.ask("wait", condition="Ready", timeout=0)[1]["reason"] == "WaitTimedOut"
        finally:
            gate.set()
            process.loop.turns = former
        world.wait("Ready")
        assert world.motd("gpu01") == world.motd("gpu02") == "two\n"


def test_what_was_found_while_a_turn_was_at_work_is_still_said_when_it_ends(world: World) -> None:
    with world.running(interval=600.0) as process:
        world.wait("Ready")
        gate = threading.Event()
        former, process.loop.turns = process.loop.turns, Held(process.loop.turns, gate)  # type: ignore[assignment]
        world.commit({"motd": "two\n"})
        process.loop.look()
        until(lambda: process.loop.running[-1].exit is None)
        world.commit({"site.yaml": manifest(spec="  tier: x\n")})
        process.loop.look()
        assert world.condition(process, "cluster", "Stalled") == (Status.TRUE, "ManifestsWrong")
        process.loop.turns = former
        gate.set()
        until(lambda: process.loop.running[-1].exit is not None)
        assert world.motd("gpu01") == "two\n"
        assert world.condition(process, "cluster", "Stalled") == (Status.TRUE, "ManifestsWrong")


def test_an_approval_that_comes_while_a_turn_finds_the_plan_old_is_told_to_be_without_effect(world: World) -> None:
    world.commit({"site.yaml": manifest(rollout=", approve: [File]")})
    with world.running(interval=600.0) as process:
        world.wait("Stalled", "gpu01", "gpu02")
        first = world.ask("status")[1]["data"]["approval"]["plan"]
        (world.site.node("gpu01") / "etc/motd").write_text("by hand\n")
        narrow = type(process.loop.turns)._narrow

        def late(turns: Turns, *about: Any) -> Any:
            """The approval comes when the turn has looked at the nodes, and before it compares."""
            if (pending := turns.approvals.pending()) and pending.id == first and not pending.by:
                turns.approvals.keep(replace(pending, by="somebody"))
            return narrow(turns, *about)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(process.loop.turns), "_narrow", late)
            process.loop.wake("test")
            until(lambda: bool(world.records("approval-stale")), "the refusal")
        assert [(r["plan"], r["reason"]) for r in world.records("approval-stale")] == [(first, "Moved")]
        assert world.motd("gpu01") == "by hand\n"
        until(lambda: (world.ask("status")[1]["data"]["approval"] or {"plan": first})["plan"] != first)
