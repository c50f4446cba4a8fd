"""Expected texts as files: tests/data/golden/NAME.txt, one section `=== CASE` a case.

To rewrite them after a change that is meant: GOLDEN=write python -m pytest tests/kinds tests/plan tests/render, then read the diff.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from tests.cases import DATA

HEAD = "=== "


def check(name: str, case: str, lines: Iterable[str]) -> None:
    """Assert that `lines` are what the file says of this case; under GOLDEN=write the file is made to say so."""
    text = "".join(f"{line}\n" for line in lines)
    file = DATA / "golden" / f"{name}.txt"
    sections = _sections(file.read_text(encoding="utf-8")) if file.exists() else {}
    if os.environ.get("GOLDEN") == "write":
        sections[case] = text
        file.write_text("\n".join(f"{HEAD}{key}\n{value}" for key, value in sections.items()), encoding="utf-8")
    assert text == sections.get(case), f"{file.name}: {case}"


def cases(name: str) -> set[str]:
    return set(_sections((DATA / "golden" / f"{name}.txt").read_text(encoding="utf-8")))


def _sections(text: str) -> dict[str, str]:
    found = {}
    for part in ("\n" + text).split(f"\n{HEAD}")[1:]:
        title, _, body = part.partition("\n")
        found[title] = body.rstrip("\n") + "\n" if body.strip("\n") else ""
    return found
