"""The conditions of the cluster, its stacks and nodes: kept in memory and, replaced whole, in the state directory."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from reconciler.apply.statedir import write_atomically
from reconciler.controller.conditions import Condition, Said, Status, Subject, as_data, from_data, update
from reconciler.errors import StateDamaged
from reconciler.events import Event

FORMAT = "reconcile-conditions/1"
CLUSTER = "cluster"
Subjects = Mapping[str, Subject]


def load(path: Path) -> dict[str, Subject]:
    """Subjects by `cluster`, `stack/NAME`, `node/NAME`. Raises StateDamaged for what `Board` did not write."""
    found = stored(path)
    return {name: from_data(subject) for name, subject in found["subjects"].items()} if found else {}


def stored(path: Path) -> dict[str, Any] | None:
    """The file as it is, None where there is none. Raises StateDamaged as `load`."""
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
        if found["format"] != FORMAT:
            raise ValueError(found["format"])
        for subject in found["subjects"].values():
            from_data(subject)
        float(found["asOf"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise StateDamaged("ConditionsUnreadable", path=str(path), detail=str(e)) from None
    return found


def _news(former: Condition | None, condition: Condition) -> bool:
    """Whether people want to hear of it: not that all is well where nothing was known before."""
    before = former.status if former else Status.UNKNOWN
    quiet = condition.status is Status.FALSE and condition.type != "Ready"
    return before is not condition.status and not (before is Status.UNKNOWN and quiet)


class Board:
    """May be read and written by several threads."""

    def __init__(self, path: Path, emit: Callable[[Event], None]) -> None:
        self._path, self._emit = path, emit
        self._guard, self._saving = threading.Lock(), threading.Lock()
        self._subjects = load(path)

    def subjects(self) -> dict[str, Subject]:
        with self._guard:
            return dict(self._subjects)

    def put(self, name: str, digest: str | None, said: Iterable[Said]) -> Subject:
        """Say what is found of one subject; what is news is an event."""
        with self._guard:
            before = self._subjects.get(name, Subject())
            after = self._subjects[name] = update(before, digest, said, round(time.time(), 3))
        for type_, condition in after.conditions.items():
            former = before.conditions.get(type_)
            if _news(former, condition):
                about = {"status": condition.status.value, "reason": condition.reason, "data": dict(condition.data)}
                self._emit(Event("condition", "", {"subject": name, "type": type_, **about}, condition.since))
        return after

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget subjects that are no longer declared."""
        with self._guard:
            wanted = {CLUSTER, *names}
            self._subjects = {name: subject for name, subject in self._subjects.items() if name in wanted}

    def save(self) -> None:
        with self._saving:
            write_atomically(self._path, json.dumps(self.as_data()).encode())

    def as_data(self) -> dict[str, Any]:
        found = {name: as_data(subject) for name, subject in sorted(self.subjects().items())}
        return {"format": FORMAT, "asOf": round(time.time(), 3), "subjects": found}
