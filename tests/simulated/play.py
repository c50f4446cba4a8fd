"""Plays a sequence of acts on a fresh site, and checks the site after each of them and at the end."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.apply import journal
from reconciler.apply.statedir import StateDir
from reconciler.engine import Applied, Engine
from reconciler.errors import LockHeld, StalePlan, StateDamaged
from reconciler.model.plan import Plan, Selection
from reconciler.plan import saved as saved_plan
from reconciler.plan.stale import covered
from reconciler.pool import Pool
from reconciler.render import data
from reconciler.status import known
from tests.simulated import acts, checks
from tests.simulated.by_hand import by_hand
from tests.simulated.links import Links
from tests.simulated.operation import Operation
from tests.simulated.patches import installed
from tests.simulated.turns import Choices
from tests.simulated.world import LONG, ControllerKilled, World

KILLED = -9
MEMORY = Path("/dev/shm")  # thousands of small files: a disk would only make it slow


@dataclass
class Tally:
    """What happened in the sequences that were played."""

    sequences: int = 0
    acts: Counter[str] = field(default_factory=Counter)
    exits: Counter[int] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    steps: int = 0


@dataclass
class Saved:
    """A saved plan, and the site as it was then."""

    text: str
    revision: int
    nodes: Mapping[str, Any]
    used: set[str] = field(default_factory=set)  # by whom: it is a state directory that remembers


class Play:
    """One sequence on one site."""

    def __init__(self, root: Path, tally: Tally) -> None:
        self.world = World(root)
        self.world.replace = self._replace
        self.tally = tally
        self.saved: list[Saved] = []

    def act(self, act: acts.Act) -> None:
        """Carry out one act. Raises AssertionError where something then does not hold."""
        self.tally.acts[type(act).__name__] += 1
        does: dict[type, Callable[[Any], None]] = {
            acts.Edit: lambda a: self.world.manifest.edit(a.what, a.value),
            acts.Rollback: lambda a: self.world.manifest.rollback(a.back),
            acts.ByHand: self._by_hand,
            acts.Apply: self._apply,
            acts.Look: self._look,
            acts.Power: self._power,
            acts.Up: lambda a: self._up(),
            acts.Passes: lambda a: self.world.sleeps(a.seconds),
            acts.WallClock: self._wall,
            acts.Heal: self._heal,
        }
        try:
            does[type(act)](act)
            self._hold(checks.journals(self.world), checks.steps(self.world), self.world.violations)
        except StateDamaged as e:
            raise AssertionError(f"the state directory is refused: {e.reason} {dict(e.data)}") from None

    def _hold(self, *found: Iterable[str]) -> None:
        wrong = [sentence for sentences in found for sentence in sentences]
        assert not wrong, "; ".join(wrong)

    def _wall(self, act: acts.WallClock) -> None:
        self.world.wall += act.seconds

    def _up(self) -> None:
        for machine in self.world.machines.values():
            if not machine.up:
                machine.starts()

    def _power(self, act: acts.Power) -> None:
        with self.world.operating(Operation("nobody"), Choices(act.seed)):
            self.world.cut_power(self.world.machines[act.node], down=act.down)

    def _by_hand(self, act: acts.ByHand) -> None:
        by_hand(self.world.machines[act.node], act.what, act.value)

    def _replace(self, controller: str) -> None:
        """What is left of the faults strikes the other one then, or waits."""
        faults, seed = tuple(self.world.op.faults), self.world.choices.below(1 << 16)
        if self.world.choices.below(2):
            self.world.op.faults.clear()
            self._run(acts.Apply(controller, tuple(f for f in faults if f.kind != "replaced-by-another"), seed))
        else:
            self._run(acts.Apply(controller))

    def _apply(self, act: acts.Apply) -> None:
        self._run(act)

    def _engine(self, op: Operation, selection: Selection) -> tuple[Engine, Pool]:
        desired = self.world.manifest.desired()
        pool = Pool(Links(self.world), desired.nodes)
        return Engine(desired, pool, selection, op.watch), pool

    def _look(self, act: acts.Look) -> None:
        before = {n: (checks.tree(m), m.disk.writes) for n, m in self.world.machines.items()}
        with self.world.operating(Operation(act.controller), Choices(0)) as op:
            engine, pool = self._engine(op, Selection())
            plan = engine.plan(known(journal.read(self._place(act.controller).journal)))
            pool.close()
        text = json.dumps(data.plan(plan, "/site"))
        self.saved.append(Saved(text, len(self.world.manifest.revisions), self._touched(plan)))
        assert before == {n: (checks.tree(m), m.disk.writes) for n, m in self.world.machines.items()}, "looking has written"

    def _touched(self, plan: Plan) -> dict[str, Any]:
        """Of the nodes that a plan changes, what is there now."""
        return {n: self._state(n) for n, node in plan.nodes.items() if node.steps}

    def _state(self, name: str) -> Any:
        machine = self.world.machines[name]
        return [machine.text(p) for p in (*acts.FILES, "/etc/hostname")] + [machine.packages.get(p) for p in acts.PACKAGES]

    def _place(self, controller: str) -> StateDir:
        return StateDir(self.world.holders[controller])

    def _run(self, act: acts.Apply) -> tuple[int, Applied | None]:
        world = self.world
        saved = self.saved[-1 - act.saved % len(self.saved)] if act.saved is not None and self.saved else None
        # what still runs from before changes what was declared then
        before = {n: world.manifest.undeclared(m) for n, m in world.machines.items() if not m.working()}
        calm = self._calm(act.controller)
        with world.operating(Operation(act.controller, list(act.faults)), Choices(act.seed)) as op:
            code, applied = self._carry_out(op, act, saved)
        self.tally.exits[code] += 1
        self.tally.faults.update(op.struck)
        if op.struck or saved or act.on:
            calm = False
        self._judge(op, code, applied, calm=calm)
        for name, undeclared in before.items():
            if name not in op.disturbed and undeclared != (now := world.manifest.undeclared(world.machines[name])):
                world.wrong(f"{name}: what nobody declares was touched: {undeclared} -> {now}")
        return code, applied

    def _carry_out(self, op: Operation, act: acts.Apply, saved: Saved | None) -> tuple[int, Applied | None]:
        parsed = saved_plan.parse(saved.text, "plan") if saved else None
        on = covered(parsed) if parsed else (act.on,) if act.on else ()
        engine, pool = self._engine(op, Selection(on))
        opened: journal.Journal | None = None
        try:
            opened = journal.Journal(self._place(act.controller).journal)
            applied = engine.apply(opened, self._place(act.controller).holder(), parsed, op.stop)
            if saved:
                self._late(saved, act.controller)
            return applied.exit, applied
        except StalePlan:
            return 5, None
        except LockHeld:
            return 6, None
        except KeyboardInterrupt:
            return 130, None
        except ControllerKilled:
            return KILLED, None
        finally:
            pool.close()
            if opened:
                opened.close()

    def _late(self, saved: Saved, controller: str) -> None:
        """A saved plan was carried out: it must have been the first time, and the manifest must not have moved."""
        if controller in saved.used:
            self.world.wrong("a saved plan was carried out twice")
        if saved.revision != len(self.world.manifest.revisions):
            self.world.wrong("a saved plan was carried out although the manifest moved")
        saved.used.add(controller)

    def _calm(self, controller: str) -> bool:
        """Whether nothing stands in the way of an apply: all nodes are up, and nobody else has a lease that lives."""
        for machine in self.world.machines.values():
            file = machine.folder / "lib/reconcile/lease.json"
            lease = json.loads(file.read_text()) if file.exists() else {"holder": ""}
            if not machine.up or machine.down_at is not None or lease["holder"] not in ("", controller):
                return False
        return True

    def _judge(self, op: Operation, code: int, applied: Applied | None, *, calm: bool) -> None:
        """The exit status agrees with the ends of the nodes, and with the nodes."""
        world = self.world
        held = any(world.manifest.held(m) for m in world.machines.values())
        if calm and code not in ((2, 3) if self._unbuilt() else (2,) if held else (0,)):  # 3: it was not there to be built again
            ends = {n: (o.end.value, o.reason, dict(o.data)) for n, o in applied.outcomes.items()} if applied else {}
            world.wrong(f"nothing went wrong, and the exit status is {code}: {ends}")
        if applied is None:
            return
        if applied.exit != checks.exit_of(applied.outcomes):
            world.wrong(f"exit {applied.exit} for {applied.outcomes}")
        for name, outcome in applied.outcomes.items():
            unmet = world.manifest.unmet(world.machines[name])
            if outcome.end.value in ("converged", "unchanged") and not outcome.held and unmet and name not in op.disturbed:
                world.wrong(f"{name} ended as {outcome.end.value}, and differs: {unmet}")
            if outcome.reason == "DidNotReturn" and outcome.data.get("inner") == "SameBoot":
                world.wrong(f"{name} answered all the time while its restart was waited for")

    def _unbuilt(self) -> bool:
        """Whether a module is missing that no transaction builds: with packages beside it, that was found by trying."""
        return any("NoModuleForNextKernel" in self.world.manifest.driver_holds(m) for m in self.world.machines.values())

    def _heal(self, act: acts.Heal) -> None:
        """Everybody is up and every lease of others ran out: one apply converges, and the next one does nothing."""
        world = self.world
        world.sleeps(LONG)
        self._up()
        world.sleeps(LONG)
        code, _ = self._run(acts.Apply(act.controller))
        if code == 3 and self._unbuilt():  # as a canary it ended the rollout; from now on it is held, and the others go on
            code, _ = self._run(acts.Apply(act.controller))
        held = any(world.manifest.held(m) for m in world.machines.values())
        unmet = {n: world.manifest.unexcused(m) for n, m in world.machines.items()}
        assert not any(unmet.values()), f"exit {code}, and not as declared: {unmet}; {world.violations}"
        place = self._place(act.controller)
        before = {n: (checks.tree(m), m.disk.writes) for n, m in world.machines.items()}
        written = len(journal.read(place.journal))
        code, applied = self._run(acts.Apply(act.controller))
        assert applied
        assert (code, applied.plan.changes) == (2 if held else 0, 0), f"the second: exit {code}, {applied.plan.changes} changes"
        assert before == {n: (checks.tree(m), m.disk.writes) for n, m in world.machines.items()}, "the second apply wrote"
        news = [r["type"] for r in journal.read(place.journal)[written:]]
        assert news == ["planned"], f"the second apply has in its journal {news}"
        self._hold(checks.settled(world, act.controller), checks.shown(place.root), world.violations)


def play(sequence: Iterable[acts.Act], tally: Tally | None = None) -> Tally:
    """Play a sequence to a good end on a fresh site. Raises AssertionError with all that does not hold."""
    counted = tally or Tally()
    counted.sequences += 1
    root = Path(tempfile.mkdtemp(prefix="reconcile-model-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        played = Play(root, counted)
        with installed(played.world):
            for act in (*sequence, acts.Heal()):
                played.act(act)
        counted.steps += sum(len(checks.records_of(m)) for m in played.world.machines.values())
    finally:
        shutil.rmtree(root)
    return counted
