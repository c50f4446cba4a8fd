"""From rows of training data to what TRL's trainers take; what cannot be trained on is refused with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.data import digest
from trainer.data.read import SourceError, rows
from trainer.data.row import Malformed, Row
from trainer.data.split import split
from trainer.errors import DataRefused, Problem

SHOWN = 10  # malformed rows that are named
WANTED = {"sft": ("instruction", "messages"), "dpo": ("preference",)}


@dataclass(frozen=True, slots=True)
class Source:
    """One source that was read through: what every row of it is, how many there are, and the digest of all."""

    name: str
    kind: str
    rows: int
    digest: str


def survey(name: str, objective: str) -> Source:
    """Read a source to its end. Raises DataRefused: unreadable, malformed rows with lines, none at all, mixed formats."""
    bad: list[Problem] = []
    kinds: dict[str, Row] = {}
    total = digest.DataDigest()
    count = faults = 0
    try:
        for row in rows(name):
            if isinstance(row, Malformed):
                faults += 1
                if len(bad) < SHOWN:
                    bad.append(Problem(row.where, row.why))
                continue
            count += 1
            kinds.setdefault(row.kind, row)
            total.add(digest.of(digest.content(row)))
    except SourceError as error:
        raise DataRefused([Problem("dataset", text) for text in error.problems]) from error
    if faults > SHOWN:
        bad.append(Problem("", f"and {faults - SHOWN} more: python -m trainer.data check {name}"))
    raise_for(name, objective, bad, kinds)
    return Source(name, next(iter(kinds)), count, total.hexdigest())


def raise_for(name: str, objective: str, bad: list[Problem], kinds: dict[str, Row]) -> None:
    """The refusals that need the whole source."""
    problems = list(bad)
    if not kinds and not bad:
        problems.append(Problem(name, "has no row: there is nothing to train on"))
    if len(kinds) > 1:
        places = ", ".join(f"{kind} at {row.where}" for kind, row in kinds.items())
        problems.append(Problem(name, f"mixes formats that are trained differently ({places}): keep one"))
    for kind, row in kinds.items():
        if kind not in WANTED[objective]:
            allowed = " or ".join(WANTED[objective])
            problems.append(Problem(row.where, f"objective {objective} trains on rows of format {allowed}, this one is {kind}"))
    if problems:
        raise DataRefused(problems)


def example(row: Row) -> dict[str, Any]:
    """A row as TRL wants it. Of an instruction the answer is learnt, of messages all unless assistant_only_loss."""
    if row.kind == "preference":
        return {"prompt": row.prompt, "chosen": row.chosen, "rejected": row.rejected}
    if row.kind == "instruction":
        return {"prompt": row.messages[:-1], "completion": row.messages[-1:]}
    return {"messages": row.messages}


def examples(name: str, places: list[int] | None) -> Iterator[dict[str, Any]]:
    """The examples of a source, all or those at `places` (ascending)."""
    wanted = None if places is None else set(places)
    for number, row in enumerate(row for row in rows(name) if isinstance(row, Row)):
        if wanted is None or number in wanted:
            yield example(row)


@dataclass(frozen=True, slots=True)
class Data:
    """Training and validation, by the places of their rows; `digest` covers both and how they were split."""

    train: Source
    validation: Source | None
    train_places: list[int] | None
    validation_places: list[int] | None
    digest: str

    @property
    def train_rows(self) -> int:
        return self.train.rows if self.train_places is None else len(self.train_places)

    @property
    def validation_rows(self) -> int:
        if self.validation_places is not None:
            return len(self.validation_places)
        return self.validation.rows if self.validation else 0


def look(train: str, validation: str | None, objective: str, share: float, seed: int) -> Data:
    """Read everything once and decide what is validation. Raises DataRefused with the problems of both sources."""
    found: list[Source | None] = []
    problems: list[Problem] = []
    for name in (train, validation):
        try:
            found.append(survey(name, objective) if name else None)
        except DataRefused as error:
            problems += error.problems
    if problems:
        raise DataRefused(problems)
    first, second = found[0], found[1]
    assert first is not None
    if second is not None or share == 0:
        return Data(first, second, None, None, f"{first.digest}+{second.digest if second else 'none'}")
    kept, held = split((row for row in rows(train) if isinstance(row, Row)), share, seed)
    if not kept or not held:
        what = f"{first.rows} rows cannot be split: say validation_split: 0 to train on everything, or give a validation_dataset"
        raise DataRefused(Problem(train, what))
    return Data(first, None, kept, held, f"{first.digest}/{share}/{seed}")


def datasets(data: Data, cache: Path) -> tuple[Any, Any]:
    """(training, validation or None) as Datasets on disk below `cache`, made once for each content."""
    return (
        _dataset(data.train.name, data.train_places, f"{data.digest}-train", cache),
        _dataset(data.validation.name, None, f"{data.digest}-validation", cache)
        if data.validation
        else _dataset(data.train.name, data.validation_places, f"{data.digest}-validation", cache)
        if data.validation_places
        else None,
    )


def _dataset(name: str, places: list[int] | None, identity: str, cache: Path) -> Any:
    from datasets import Dataset
    from datasets.fingerprint import Hasher

    return Dataset.from_generator(
        examples, gen_kwargs={"name": name, "places": places}, cache_dir=str(cache), fingerprint=Hasher.hash(identity)
    )
