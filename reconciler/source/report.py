"""What is wrong, gathered over all files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.model.desired import Origin
from reconciler.model.problem import Datum, Path, Problem
from reconciler.model.words import nearest

Data = Mapping[str, Datum]
_SUGGESTIONS = 200  # in one load: the search for a near name costs most of a page of mistakes
_SHOWN = 12  # names that are listed where none is near


@dataclass(slots=True)
class Report:
    """Problems, and warnings that stop nothing; `unchecked` are documents whose references could not all be judged."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    unchecked: set[str] = field(default_factory=set)
    _suggestions: int = 0

    def say(self, at: Origin, code: str, path: Path = (), *, data: Data | None = None, **more: Datum) -> None:
        """Add a problem; its data is `data` and `more`."""
        self.problems.append(Problem(at.file, at.line, at.column, code, path, {**(data or {}), **more}))

    def warn(self, at: Origin, code: str, path: Path = (), *, data: Data | None = None, **more: Datum) -> None:
        """Add a warning; its data is `data` and `more`."""
        self.warnings.append(Problem(at.file, at.line, at.column, code, path, {**(data or {}), **more}))

    def choice(self, found: str, allowed: Iterable[str]) -> Data:
        """The data of a wrong name: `found`, `near`, the first of `allowed` and how many `more` there are."""
        names = sorted(allowed)
        self._suggestions += 1
        near = nearest(found, names) if self._suggestions <= _SUGGESTIONS else None
        return {"found": found, "near": near, "allowed": tuple(names[:_SHOWN]), "more": max(0, len(names) - _SHOWN)}

    def sorted_problems(self) -> tuple[Problem, ...]:
        """Each problem once, by file, line and column."""
        return _sorted(self.problems)

    def sorted_warnings(self) -> tuple[Problem, ...]:
        """Each warning once, by file, line and column."""
        return _sorted(self.warnings)


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    once = {(p.order, str(p.data)): p for p in problems}
    return tuple(once[key] for key in sorted(once))
