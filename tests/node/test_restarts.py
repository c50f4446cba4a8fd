"""Notes of files that units were not started with: before the file, after it, and void after a boot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.facts import restarts as fact
from reconciler.model.fact import Value
from reconciler.node import files, restarts, state
from tests.node.conftest import Asked, Clock, Systemctl
from tests.node.test_steps import begin, file_step


def notes(home: Path) -> dict[str, fact.Written]:
    """As a plan reads them."""
    found = fact.parse(Value((home / "lib/restarts.json").read_text()), state.boot_id())
    assert isinstance(found, Value)
    return found.value


def test_notes_of_this_boot_are_kept_and_older_ones_go(home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1_000_000, 2_000_000, 3_000_000])
    monkeypatch.setattr(restarts, "_now", lambda: next(times))
    restarts.note(["a.service", "b.service"], "/etc/one")
    restarts.note(["b.service"], "/etc/two")
    assert notes(home) == {"a.service": fact.Written("/etc/one", 1_000_000), "b.service": fact.Written("/etc/two", 2_000_000)}
    clock.boot = "boot-2"
    assert notes(home) == {}
    restarts.note(["c.service"], "/etc/three")
    assert list(notes(home)) == ["c.service"]


@pytest.fixture
def token(ask: Asked, systemctl: Systemctl) -> int:
    return int(ask("lease", holder="one", plan="p", ttl=60)["token"])


def test_a_file_that_names_units_is_noted_before_it_is_written_and_after(
    ask: Asked, token: int, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bool, bool]] = []
    note, target = restarts.note, tmp_path / "f"

    def watched(units: list[str], path: str) -> None:
        note(units, path)
        seen.append((target.exists(), "a.service" in notes(home)))

    monkeypatch.setattr(restarts, "note", watched)
    action = file_step(target)
    action["file"]["restart"] = ["a.service"]
    assert begin(ask, token, action)["state"] == "done"
    assert seen == [(False, True), (True, True)]
    assert notes(home)["a.service"].path == str(target)


def test_a_crash_between_note_and_write_leaves_the_note(
    ask: Asked, token: int, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "write", die)
    action = file_step(tmp_path / "f")
    action["file"]["restart"] = ["a.service"]
    with pytest.raises(KeyboardInterrupt):
        begin(ask, token, action)
    assert list(notes(home)) == ["a.service"]


def test_a_file_that_names_none_leaves_no_note(ask: Asked, token: int, tmp_path: Path, home: Path) -> None:
    begin(ask, token, file_step(tmp_path / "f"))
    assert not (home / "lib/restarts.json").exists()


def test_damaged_notes_stop_the_write(ask: Asked, token: int, tmp_path: Path, home: Path) -> None:
    (home / "lib/restarts.json").write_text(json.dumps({"units": {}}))
    action = file_step(tmp_path / "f")
    action["file"]["restart"] = ["a.service"]
    record = begin(ask, token, action)
    assert (record["state"], record["error"], (tmp_path / "f").exists()) == ("failed", "DamagedRecord", False)
