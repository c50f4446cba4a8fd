"""How an expectation with parts is compared: what a mapping of `fields/FORMAT.yaml` may say where a plain path is too little.

A node is a path, or a mapping of
- `path`: where it stands; `each`: a node for every item of a list, which has to be as long as expected; `keys`: a node for every
  key of a mapping or place of a list; `known`: of a list, only the items where something known stands at this path;
- `as`: how the expectation writes the value: a format (`"{} MiB"`), a table of words, `present` for "there is one",
  `number` for the whole number that a text writes.

An expected text is also met by the number that it writes, `N/A` by what is absent, and any text by an Unknown that keeps it as what
was shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_NOT_THERE = ("N/A", "[N/A]")


def at(value: Any, path: list[Any]) -> Any:
    """What stands at a path; None where there is nothing."""
    for step in path:
        if isinstance(value, dict):
            value = len(value) if step == "#" else value.get(step, value.get(str(step)))
        elif isinstance(value, list):
            value = len(value) if step == "#" else value[step] if isinstance(step, int) and step < len(value) else None
        else:
            return None
    return value


def is_open(found: Any) -> bool:
    """Whether it is absent or unknown."""
    return found is None or (isinstance(found, dict) and bool({"absent", "unknown"} & set(found)))


def written(found: Any, form: Any) -> Any:
    """A value as the expectation writes it."""
    if form == "present":
        return not is_open(found)
    if form == "number":
        return int(found) if isinstance(found, str) and found.isdecimal() else found
    if isinstance(form, dict):
        return form.get(found, found) if not isinstance(found, dict | list) else found
    return form.format(found) if isinstance(form, str) and not is_open(found) else found


def same(found: Any, expected: Any) -> bool:
    if expected is None:
        return is_open(found)
    if isinstance(expected, dict) and found == expected:  # an absence or an unknown that is spelled out
        return True
    if isinstance(found, dict) and set(found) == {"absent"}:
        return expected in _NOT_THERE
    if isinstance(found, dict) and set(found) == {"unknown", "detail"}:
        return isinstance(expected, str) and found["detail"] == expected
    if isinstance(expected, bool) or isinstance(found, bool):
        return found is expected
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(same(found[key], item) for key, item in expected.items())
    if isinstance(expected, str) and isinstance(found, int | float):
        return str(found) == expected
    return bool(found == expected)


def differences(found: Any, expected: Any, node: Any, where: str) -> Iterator[str]:
    """What differs, a line each."""
    node = {"path": node} if isinstance(node, list) else node
    found = at(found, node.get("path", []))
    if "known" in node and isinstance(found, list):
        found = [item for item in found if not is_open(at(item, node["known"]))]
    if "each" in node and isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            yield f"{where}: {found!r}, expected {len(expected)} items"
            return
        for place, item in enumerate(expected):
            yield from differences(found[place], item, node["each"], f"{where}.{place}")
    elif "keys" in node and isinstance(expected, dict | list):
        for key, item in expected.items() if isinstance(expected, dict) else enumerate(expected):
            if key not in node["keys"]:
                yield f"{where}: expected key {key!r} is not mapped"
            else:
                yield from differences(found, item, node["keys"][key], f"{where}.{key}")
    elif not same(written(found, node.get("as")), expected):
        yield f"{where}: {found!r}, expected {expected!r}"
