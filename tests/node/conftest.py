"""The node program in this process: its records in a folder of the test's own, the umask as it sets it, no systemd."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.node import main, state, units


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where records and pipes go."""
    monkeypatch.setattr(state, "ROOT", str(tmp_path / "lib"))
    monkeypatch.setattr(state, "RUN", str(tmp_path / "run"))
    before = os.umask(0o077)
    yield tmp_path
    os.umask(before)


class Systemctl:
    """Stands in for systemctl: `listing` is what `list-units --plain --no-legend` prints."""

    def __init__(self) -> None:
        self.listing = ""
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, *argv: str, **_: object) -> str:
        self.calls.append(argv)
        return self.listing if argv[0] == "list-units" else ""


@pytest.fixture
def systemctl(monkeypatch: pytest.MonkeyPatch) -> Systemctl:
    fake = Systemctl()
    monkeypatch.setattr(units, "_systemctl", fake)
    return fake


class Clock:
    """Boot time and boot id, both under the test's hand."""

    def __init__(self) -> None:
        self.now, self.boot = 1000.0, "boot-1"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(state, "boottime", lambda: fake.now)
    monkeypatch.setattr(state, "boot_id", lambda: fake.boot)
    return fake


class Asked:
    """A program and its answers."""

    def __init__(self) -> None:
        self.program = main.Program(b"")
        self.answers: list[dict[str, Any]] = []

    def __call__(self, op: str, **fields: Any) -> dict[str, Any]:
        """The answer to one request: what is in `ok`, or the whole refusal."""
        self.program.handle(json.dumps({"id": 1, "op": op, **fields}).encode())
        answer = self.answers.pop()
        found: dict[str, Any] = answer.get("ok", answer)
        return found


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(main, "_send", asked.answers.append)
    return asked
