"""What a person is told instead of a traceback: problems with their place, and the errors that carry them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

REFUSED, FAILED = 2, 1  # exit statuses: the call or the run file is wrong; the training went wrong


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: `where` is FILE:LINE:COLUMN, a path or a field, `what` says what is allowed as well."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class TrainerError(Exception):
    """Carries every problem that was found. `verdict` is a word that the launcher decides by: code, data, storage, ..."""

    verdict = "code"
    exit_code = FAILED

    def __init__(self, problems: Problem | Iterable[Problem], verdict: str = "") -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.verdict = verdict or type(self).verdict
        super().__init__("\n".join(map(str, self.problems)))


class Refused(TrainerError):
    """Nothing was trained, because what was asked for cannot be meant or cannot be done here."""

    exit_code = REFUSED


class DataRefused(Refused):
    """The data cannot be trained on as they are."""

    verdict = "data"


class StorageFailed(TrainerError):
    """Checkpoints or results cannot be written."""

    verdict = "storage"


class Stopped(TrainerError):
    """A detector ended the training."""

    verdict = "diverged"


def refuse(where: str, what: str) -> Refused:
    """A refusal for one reason."""
    return Refused(Problem(where, what))


def nearest(word: str, allowed: Sequence[str]) -> str:
    """`; did you mean 'x'?` for the nearest of `allowed`, or nothing where none is near."""
    inside = [name for name in allowed if len(word) > 3 and word.lower() in name.lower()]
    found = inside[:1] if len(inside) == 1 else []
    found = (
        found
        or difflib.get_close_matches(word, allowed, n=1, cutoff=0.6)
        or difflib.get_close_matches(word.lower(), [a.lower() for a in allowed], n=1, cutoff=0.6)
    )
    if not found:
        return ""
    as_written = next((a for a in allowed if a.lower() == found[0].lower()), found[0])
    return f"; did you mean '{as_written}'?"


def one_of(word: str, allowed: Sequence[str]) -> str:
    """The sentence for a word that is not among `allowed`."""
    return f"'{word}' is not one of {', '.join(allowed)}{nearest(word, allowed)}"
