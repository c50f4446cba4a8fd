"""What is wrong with a manifest, as data; the sentence for people is made in `reconciler.render.problems`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Step = str | int
Path = tuple[Step, ...]
Datum = str | int | None | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. `line` and `column` count from 1; `line` 0 is a problem of `file` as a whole, or of the folder.

    `code` names the mistake and never changes; `path` is where in the document it is (`("spec", "ssh", "port")`), empty
    where that says nothing. `data` is what the sentence needs (`found`, `allowed`, `near` and others), unescaped.
    """

    file: str
    line: int
    column: int
    code: str
    path: Path = ()
    data: Mapping[str, Datum] = field(default_factory=dict, hash=False)

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """Problems are listed by file, line, column."""
        return self.file, self.line, self.column, self.code, str(self.path)
