"""The ranks of a gate: who is there, what each has to say, and who is late, by name.

What ranks say to each other goes through the launcher's store and not through collectives, so that a rank that is missing, that
failed or that hangs in a collective can be named: `roll` waits for a word of every rank, and `all_do` watches the others while
they work.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from trainer.gates.outcome import Failed, Problem

MISSING = "RankMissing"
LOOK_S, GRACE_S = 0.2, 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where this process is among all, as the launcher says it."""

    rank: int
    world: int
    local: int
    node_ranks: int

    @classmethod
    def from_environment(cls) -> Place:
        """From torchrun's variables; alone without them. Raises Failed where they cannot be meant."""
        said = os.environ
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        if not any(name in said for name in names):
            return cls(0, 1, 0, 1)
        try:
            found = cls(*(int(said[name]) for name in names))
        except (KeyError, ValueError) as error:
            given = ", ".join(f"{name}={said.get(name, '')}" for name in names)
            raise Failed(Problem("LaunchUnclear", f"torchrun's variables are not all numbers: {given}")) from error
        if not 0 <= found.rank < found.world or not 0 <= found.local < found.node_ranks:
            raise Failed(Problem("LaunchUnclear", f"{found} is no place among its ranks"))
        return found


class Group:
    """All ranks of one gate. Every method is called by each of them, in the same order."""

    def __init__(self, place: Place, store: Any, watched: Any, patience: float) -> None:
        self.place, self._store, self._patience = place, store, patience
        self._watched = watched  # the same store by a connection of its own: the first waits while a collective begins
        self._step = 0
        self.late: Callable[[Problem], None] = lambda problem: None  # what a rank does that hangs: it cannot come back by itself

    @property
    def rank(self) -> int:
        return self.place.rank

    @property
    def world(self) -> int:
        return self.place.world

    @property
    def patience(self) -> float:
        """Seconds that a rank may take to answer, or a collective to end."""
        return self._patience

    def store(self, name: str) -> Any:
        """A part of the store for torch's own use."""
        from torch.distributed import PrefixStore

        return PrefixStore(name, self._store)

    def roll(self, value: Any, problem: Problem | None = None) -> list[Any]:
        """What each rank says, by rank.

        Raises Failed on all of them: with the ranks that did not speak within the patience, or with the problems that ranks have.
        """
        self._step += 1
        self._post(f"roll/{self._step}", {"value": value, "problem": asdict(problem) if problem else None})
        said = [self._read(f"roll/{self._step}", rank) for rank in range(self.world)]
        problems = [
            Problem(one["problem"]["reason"], one["problem"]["what"], (rank,)) for rank, one in enumerate(said) if one["problem"]
        ]
        if problems:
            raise Failed(*_united(problems))
        return [one["value"] for one in said]

    def all_do(self, what: str, work: Callable[[], Any], reason: str = "Broken") -> list[Any]:
        """Let every rank do `work`, collectives included; what each got.

        Raises Failed on all of them with the errors of those that had one. Where it is not over within the patience, or one
        failed and the others hang, `late` is called in a thread of each rank.
        """
        self._step += 1
        key, over = f"done/{self._step}", threading.Event()
        watch = threading.Thread(target=self._watch, args=(key, what, over), daemon=True)
        watch.start()
        value, problem = None, None
        try:
            value = work()
        except Failed as error:
            problem = error.problems[0]
        except Exception as error:  # noqa: BLE001 - whatever a library raised is what this rank has to say
            problem = Problem(reason, f"{what}: {type(error).__name__}: {(str(error).strip().splitlines() or ['no message'])[0]}")
        if problem is not None:
            self._post(key, {**asdict(problem), "ranks": [self.rank]})
            self._store.set(f"{key}/failed", str(self.rank))
        else:
            self._post(key, None)
        over.set()
        watch.join()
        return self.roll(value, problem)

    def _watch(self, key: str, what: str, over: threading.Event) -> None:
        """Until this rank is done. One rank's failure leaves the others in a collective that nobody will end: they have GRACE_S."""
        limit = time.monotonic() + self._patience
        failed = ""
        while not over.wait(LOOK_S):
            if not failed and self._watched.check([f"{key}/failed"]):
                failed, limit = self._watched.get(f"{key}/failed").decode(), min(limit, time.monotonic() + GRACE_S)
            if time.monotonic() > limit:
                self.late(self._behind(key, what, failed))
                return

    def told(self) -> None:
        """The result is out: ranks that hang may end."""
        self._watched.set("told", "")

    def until_told(self) -> None:
        """Wait for that, or for as long as a rank may take."""
        with contextlib.suppress(RuntimeError):
            self._watched.wait(["told"], timedelta(seconds=self._patience))

    def _behind(self, key: str, what: str, failed: str) -> Problem:
        if failed:
            said = json.loads(self._watched.get(f"{key}/{failed}"))
            return Problem(said["reason"], said["what"], tuple(said["ranks"]))
        behind = tuple(rank for rank in range(self.world) if not self._watched.check([f"{key}/{rank}"]))
        return Problem("RankLate", f"{what} was not over within {self._patience:g} s on {_ranks(behind)}", behind)

    def _post(self, key: str, value: Any) -> None:
        self._store.set(f"{key}/{self.rank}", json.dumps(value))

    def _read(self, key: str, rank: int) -> Any:
        from torch.distributed import DistError

        try:
            self._store.wait([f"{key}/{rank}"], timedelta(seconds=self._patience))
        except (DistError, RuntimeError) as error:
            absent = tuple(other for other in range(self.world) if not self._there(f"{key}/{other}"))
            told = f"{_ranks(absent)} of {self.world} did not answer within {self._patience:g} s"
            raise Failed(Problem(MISSING, told, absent)) from error
        return json.loads(self._store.get(f"{key}/{rank}"))

    def _there(self, key: str) -> bool:
        return bool(self._store.check([key]))


def _ranks(ranks: tuple[int, ...]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _united(problems: list[Problem]) -> list[Problem]:
    """One problem for all ranks that have the same."""
    by: dict[tuple[str, str], tuple[int, ...]] = {}
    for problem in problems:
        key = problem.reason, problem.what
        by[key] = by.get(key, ()) + problem.ranks
    return [Problem(reason, what, ranks) for (reason, what), ranks in by.items()]


def join(place: Place, patience: float) -> Group:
    """Meet the other ranks in the launcher's store. Raises Failed where it cannot be reached, and where ranks do not come."""
    import torch.distributed as dist

    if place.world == 1 and "MASTER_ADDR" not in os.environ:
        alone = dist.HashStore()
        return Group(place, alone, alone, patience)
    # torchrun's own store lives in its launcher; without one rank 0 keeps it, and does not wait for those who never come
    keeps = place.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    first = _store(place, patience, keeps)
    return Group(place, first, _store(place, patience, False), patience)


def _store(place: Place, patience: float, keeps: bool) -> Any:
    import torch.distributed as dist

    limit = timedelta(seconds=patience)
    where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
    try:
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.TCPStore(host, port, place.world, keeps, timeout=limit, wait_for_workers=False)
        return dist.PrefixStore(f"gate/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    except (KeyError, ValueError, dist.DistError, RuntimeError) as error:
        told = f"rank {place.rank} on {socket.gethostname()} found no store at {where} within {patience:g} s"
        raise Failed(Problem(MISSING, f"{told}: is rank 0 running, and is its address reached from here?", (0,))) from error
