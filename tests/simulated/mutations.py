"""Faults that are put into the product on purpose: the model has to find each of them, or it proves nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from reconciler import engine, status
from reconciler.apply import adopt, executor, journal
from reconciler.apply.lease import Leases
from reconciler.model.plan import Plan, Wave
from reconciler.node import lease, state, steps, units
from tests.simulated.driver_mutations import DRIVER_MUTATIONS

Mutation = Callable[[], contextlib.AbstractContextManager[Any]]


def _adopts_nothing() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(engine, "adopt", lambda *_: 0)


def _token_does_not_rise() -> contextlib.AbstractContextManager[Any]:
    write = lease._write
    return mock.patch.object(lease, "_write", lambda token, *rest: write(1, *rest))


def _nobody_asks_whose_token_it_is() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(lease, "check", lambda token: lease.current())


def _done_before_it_ran() -> contextlib.AbstractContextManager[Any]:
    update = steps.update

    def early(token: int, number: int, **fields: Any) -> dict[str, Any]:
        return update(token, number, **{**fields, "state": "done"} if fields.get("state") == "started" else fields)

    return mock.patch.object(steps, "update", early)


def _no_second_look() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(engine, "still_differing", lambda *_: ())


def _records_without_fsync() -> contextlib.AbstractContextManager[Any]:
    def write(target: str, data: bytes, mode: int = 0o600) -> None:
        simulated = vars(state)["os"]
        state.make_directories(str(Path(target).parent))
        fd = simulated.open(target + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(fd, "wb") as f:
            f.write(data)
        simulated.rename(target + ".new", target)

    return mock.patch.object(state, "write_atomically", write)


def _directories_without_fsync() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(
        state, "make_directories", lambda path, mode=0o700: vars(state)["os"].makedirs(path, mode, exist_ok=True)
    )


def _a_reboot_goes_unnoticed() -> contextlib.AbstractContextManager[Any]:
    def look(token: int, number: int) -> dict[str, Any]:
        found = steps.record(token, number)
        if found["state"] in steps.UNFINISHED and found["boot_id"] != state.boot_id():
            return found
        return former(token, number)

    former = steps.look
    return mock.patch.object(steps, "look", look)


def _inventory_forgets_who_created() -> contextlib.AbstractContextManager[Any]:
    def merge(news: dict[str, Any]) -> None:
        state.write_record(state.path("inventory.json"), {"resources": {**steps.inventory(), **news}})

    return mock.patch.object(steps, "merge_inventory", merge)


def _all_nodes_at_once() -> contextlib.AbstractContextManager[Any]:
    run = executor.Executor.run

    def at_once(self: executor.Executor) -> Any:
        nodes = tuple(n for wave in self.plan.waves for n in wave.nodes)
        object.__setattr__(self.plan, "waves", (Wave(nodes),))
        return run(self)

    return mock.patch.object(executor.Executor, "run", at_once)


def _canary_may_fail() -> contextlib.AbstractContextManager[Any]:
    run = executor.Executor.run

    def no_canary(self: executor.Executor) -> Any:
        object.__setattr__(self.plan, "waves", tuple(Wave(wave.nodes) for wave in self.plan.waves))
        return run(self)

    return mock.patch.object(executor.Executor, "run", no_canary)


def _torn_line_stays() -> contextlib.AbstractContextManager[Any]:
    def kept(path: Any) -> Any:
        records, _ = read(path)
        return records, path.stat().st_size if path.exists() else 0

    read = journal._read
    return mock.patch.object(journal, "_read", kept)


def _lease_is_kept() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(Leases, "give_back", lambda self, node, channel: self.abandon(node))


def _unit_is_never_forgotten() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(units, "forget", lambda token, number: None)


def _saved_plans_are_never_stale() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(engine, "moved", lambda saved, fresh: ())


def _saved_plan_may_be_used_twice() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(status, "used_plans", lambda records: frozenset())


@contextlib.contextmanager
def _lock_held_by_another_is_no_reason() -> Iterator[None]:
    """Another controller's lease is taken for one's own: the holder is not looked at."""
    grant = lease.grant

    def always(holder: str, plan: str, ttl: float) -> dict[str, Any]:
        with mock.patch.object(lease, "current", lambda: {**found, "live": False} if (found := current()) else None):
            return grant(holder, plan, ttl)

    current = lease.current
    with mock.patch.object(lease, "grant", always), mock.patch.object(engine, "recall", _recall_without_lease(adopt.recall)):
        yield


def _recall_without_lease(recall: Callable[..., Any]) -> Callable[..., Any]:
    return lambda channel, **wanted: {**recall(channel, **wanted), "lease": None}


def _empty_plan_takes_a_lease() -> contextlib.AbstractContextManager[Any]:
    carry_out = engine.Engine._carry_out

    def with_lease(self: engine.Engine, plan: Plan, observed: Any, book: Any, leases: Leases, *rest: Any) -> Any:
        for name, node in plan.nodes.items():
            if not node.failure and not node.steps:
                leases.take(name, self.pool.channel(name), plan.id)
                leases.give_back(name, self.pool.channel(name))
        return carry_out(self, plan, observed, book, leases, *rest)

    return mock.patch.object(engine.Engine, "_carry_out", with_lease)


def _past_is_passed_over() -> contextlib.AbstractContextManager[Any]:
    take_over = engine.Engine._take_over

    def passed_over(self: engine.Engine, *rest: Any) -> dict[str, Any]:
        take_over(self, *rest)
        return {}

    return mock.patch.object(engine.Engine, "_take_over", passed_over)


def _settles_again() -> contextlib.AbstractContextManager[Any]:
    """What another controller settled is taken into the inventory once more, over what came after it."""

    def again(token: int, numbers: list[list[int]]) -> dict[str, Any]:
        with mock.patch.object(steps, "look", lambda *step: {**look(*step), "settled": False}):
            return settle(token, numbers)

    look, settle = steps.look, steps.settle
    return mock.patch.object(steps, "settle", again)


def _status_goes_by_the_clock() -> contextlib.AbstractContextManager[Any]:
    by_order = vars(status.NodeStatus)["settled"].fget

    def by_clock(self: status.NodeStatus) -> Any:
        return by_order(replace(self, after_plan=(self.applied or 0.0) >= (self.planned or 0.0)))

    return mock.patch.object(status.NodeStatus, "settled", property(by_clock))


MUTATIONS: dict[str, Mutation] = DRIVER_MUTATIONS | {
    function.__name__.strip("_"): function
    for function in (
        _adopts_nothing,
        _token_does_not_rise,
        _nobody_asks_whose_token_it_is,
        _done_before_it_ran,
        _no_second_look,
        _records_without_fsync,
        _directories_without_fsync,
        _a_reboot_goes_unnoticed,
        _inventory_forgets_who_created,
        _all_nodes_at_once,
        _canary_may_fail,
        _torn_line_stays,
        _lease_is_kept,
        _unit_is_never_forgotten,
        _saved_plans_are_never_stale,
        _saved_plan_may_be_used_twice,
        _lock_held_by_another_is_no_reason,
        _empty_plan_takes_a_lease,
        _past_is_passed_over,
        _settles_again,
        _status_goes_by_the_clock,
    )
}
