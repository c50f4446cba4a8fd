"""The same content as a parser gives it and as an expectation writes it: `as` of a node.

- a format (`"{} MiB"`; of a list its items one after the other);
- a table: a word, a number or the code of an absence or an unknown -> what the expectation writes for it;
- `{join: "/"}`: the items of a list, or the `key=value` of a mapping, as one text;
- `present`: whether there is a value; `number`: the whole number that a text writes; `one`: what all items of a list are;
  `shown`: of what is unknown, the number that was shown, of a list each; `quoted`: met by a quotation (`same`).
"""

from __future__ import annotations

import re
from typing import Any

_NOT_THERE = ("N/A", "[N/A]")


class Quoted(str):
    """A text that an expectation quotes: all its words in this order, others between them."""

    __slots__ = ()

    def holds(self, quotation: str) -> bool:
        words = iter(re.findall(r"\w+", self))
        return all(word in words for word in re.findall(r"\w+", quotation))


def is_open(found: Any) -> bool:
    """Whether it is absent or unknown."""
    return found is None or code(found) is not None


def code(found: Any) -> str | None:
    """Why it is absent or unknown; None for a value."""
    return found.get("absent", found.get("unknown")) if isinstance(found, dict) else None


def _shown(found: Any) -> Any:
    if isinstance(found, list):
        return sorted(map(_shown, found))
    detail = re.match(r"\d+", found["detail"]) if isinstance(found, dict) and "detail" in found else None
    return int(detail[0]) if detail else found


def _joined(found: Any, between: str) -> Any:
    if is_open(found) or not isinstance(found, list | dict):
        return found
    return between.join(map(str, found) if isinstance(found, list) else (f"{key}={item}" for key, item in found.items()))


def _named(found: Any, form: str) -> Any:
    match form:
        case "present":
            return not is_open(found)
        case "number":
            return int(found) if isinstance(found, str) and found.isdecimal() else found
        case "one":
            return found[0] if isinstance(found, list) and found and all(item == found[0] for item in found) else found
        case "shown":
            return _shown(found)
        case "quoted":
            return Quoted(found) if isinstance(found, str) else found
    if is_open(found):
        return found
    return form.format(*found) if isinstance(found, list) else form.format(found)


def written(found: Any, form: Any) -> Any:
    """A value as the expectation writes it."""
    if isinstance(form, list):
        for each in form:
            found = written(found, each)
        return found
    if isinstance(form, dict):
        if "join" in form:
            return _joined(found, form["join"])
        word = code(found) if isinstance(found, dict) else found
        return form.get(word, found) if isinstance(word, str | int | float) else found
    return _named(found, form) if form else found


def same(found: Any, expected: Any) -> bool:
    if expected is None:
        return is_open(found)
    if isinstance(expected, dict) and found == expected:  # an absence or an unknown that is spelled out
        return True
    if isinstance(found, Quoted):
        return isinstance(expected, str) and found.holds(expected)
    if isinstance(found, dict) and set(found) == {"absent"}:
        return expected in _NOT_THERE
    if isinstance(found, dict) and set(found) == {"unknown", "detail"}:
        return isinstance(expected, str) and found["detail"] == expected
    if isinstance(expected, bool) or isinstance(found, bool):
        return found is expected
    if isinstance(expected, dict) and isinstance(found, dict):  # JSON has no keys but texts
        wanted = {str(key): item for key, item in expected.items()}
        return wanted.keys() == found.keys() and all(same(found[key], item) for key, item in wanted.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, str) and isinstance(found, int | float):
        return str(found) == expected
    return bool(found == expected)
