"""The heartbeat: a step never waits for the disk, and what could not be written is not kept back."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.train


def heart(path: Path) -> Any:
    from trainer.telemetry import Heart

    return Heart(path, 1)


def told(path: Path) -> tuple[int, int, str]:
    found = json.loads(path.read_text())
    return found["rank"], found["step"], found["doing"]


def test_a_step_does_not_wait_for_a_disk_that_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, go, replace = tmp_path / "beat.json", threading.Event(), Path.replace

    def late(self: Path, target: Path) -> Path:
        assert go.wait(20)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", late)
    clock = iter(float(second) for second in range(100, 200))
    monkeypatch.setattr("trainer.telemetry.time.time", lambda: next(clock))
    one = heart(path)
    for step in range(1, 5):
        one.beat(step, "training", force=False)
    one.beat(5, "saving", force=True)
    assert not path.exists()
    go.set()
    one.stop()
    assert told(path) == (1, 5, "saving")


def test_it_beats_once_a_second_unless_something_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 100.4, 100.8, 101.0])
    monkeypatch.setattr("trainer.telemetry.time.time", lambda: next(times))
    path = tmp_path / "beat.json"
    one = heart(path)
    seen = []
    for step, doing in enumerate(("training", "training", "saving", "training"), 1):
        one.beat(step, doing, force=doing == "saving")
        one._writing.result()
        seen.append(told(path)[1])
    one.stop()
    assert seen == [1, 1, 3, 3]


def test_what_could_not_be_written_is_raised_at_the_next_step_or_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "beat.json"
    path.mkdir()
    one = heart(path)
    one.beat(1, "training", force=True)
    with pytest.raises(IsADirectoryError):
        one.stop()
    other = heart(path)
    other.beat(1, "training", force=True)
    other._writing.exception()  # until it is tried
    with pytest.raises(IsADirectoryError):
        other.beat(2, "training", force=False)
