"""Whether a unit that was started is well: from what systemd says of it, look by look, on a clock of the test's own."""

from __future__ import annotations

import pytest

from reconciler.node import runner, watch

UP = {"Id": "a.service", "Type": "simple", "ActiveState": "active", "SubState": "running", "Result": "success", "InvocationID": "1"}
JOB = UP | {"Job": "77"}
AGAIN = UP | {"InvocationID": "2"}
DEAD = UP | {"ActiveState": "inactive", "SubState": "dead"}
FAILED = DEAD | {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code"}
LOOP = UP | {"ActiveState": "activating", "SubState": "auto-restart"}
START = UP | {"ActiveState": "activating", "SubState": "start"}
TIMER = UP | {"Id": "a.timer", "Type": "", "SubState": "waiting"}
ONCE = UP | {"Type": "oneshot"}
STEADY = int(watch.STEADY / watch.PAUSE) + 2
CASES: dict[str, tuple[list[dict[str, str]], bool]] = {
    "stays up": ([UP], True),
    "takes its time": ([*[START] * 40, UP], True),
    "an old failure while the job is queued": ([FAILED | {"Job": "7"}, LOOP | {"Job": "7"}, UP], True),
    "dies after a while": ([*[UP] * (STEADY - 4), FAILED], False),
    "dies and is started again between two looks": ([UP, UP, AGAIN], False),
    "dies and waits to be started again": ([UP, LOOP], False),
    "dies and is being started again": ([UP, JOB], False),
    "never gets up": ([START], False),
    "its job never ends": ([JOB], False),
    "ends by itself": ([UP, DEAD], False),
    "was never started": ([DEAD], False),
    "a timer": ([TIMER], True),
    "a timer that failed": ([TIMER | {"ActiveState": "failed"}], False),
    "a oneshot that ended well": ([ONCE | DEAD | {"Type": "oneshot"}], True),
    "a oneshot that remains": ([ONCE | {"SubState": "exited"}], True),
    "a oneshot at its work": ([START | {"Type": "oneshot", "Job": "7"}], True),
    "a oneshot that failed": ([START | {"Type": "oneshot", "Job": "7"}, FAILED | {"Type": "oneshot"}], False),
    "a oneshot that its conditions passed over": ([DEAD | {"Type": "oneshot", "ConditionResult": "no"}], False),
    "systemd says nothing": ([{}], False),
}


class World:
    """What is seen, look by look (the last of it for good), and a clock that only a pause moves."""

    def __init__(self, seen: list[dict[str, str]]) -> None:
        self.seen, self.now = list(seen), 0.0

    def look(self, name: str) -> dict[str, str]:
        return self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("case", CASES)
def test_well_or_ill(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, expected = CASES[case]
    world = World(seen)
    monkeypatch.setattr(watch, "look", world.look)
    monkeypatch.setattr("reconciler.node.watch.time.monotonic", lambda: world.now)
    monkeypatch.setattr("reconciler.node.watch.time.sleep", world.sleep)
    well, last = watch.settle("a.service")
    assert (well, last) == (expected, seen[-1])
    assert world.now <= watch.PATIENCE + watch.PAUSE


def test_an_ill_unit_fails_its_step_with_its_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "settle", lambda name: (False, FAILED))
    monkeypatch.setattr(watch, "_run", lambda *argv: f"last words of {argv[-1]}\n")
    found = runner._command({"argv": ["reconcile-watch", "a.service"], "watch": "a.service"}, [1, 1, 0])
    assert (found["status"], found["out"]) == (1, "last words of a.service\n")
    assert "ActiveState=failed SubState=failed Result=exit-code" in found["err"]
