"""How an expectation with parts is compared: what a mapping of `fields/FORMAT.yaml` may say where a plain path is too little.

A node is a path, or a mapping of
- `path`: where it stands; `paths`: several of them, as a list;
- `each`: a node for every item of a list, which has to be as long as expected;
- `keys`: a node for every key of a mapping or place of a list; `every`: one node for whatever keys a mapping is expected to have;
- `known`: of a list, only the items where something known stands at this path;
- `gather`: a path with `"*"` for every item, whose different answers are listed in order;
- `as`: how the expectation writes the value, in one form or several one after the other (forms.py).

An expected text is also met by the number that it writes, `N/A` by what is absent, and any text by an Unknown that keeps it as what
was shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.corpus.forms import is_open, same, written


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


def gathered(value: Any, path: list[Any]) -> list[Any]:
    """The different answers at a path, of which `"*"` is every item."""
    found = [value]
    for step in path:
        if step == "*":
            found = [item for each in found for item in (each.values() if isinstance(each, dict) else each)]
        else:
            found = [at(each, [step]) for each in found]
    return [item for place, item in enumerate(found) if item not in found[:place]]


def _found(value: Any, node: dict[str, Any]) -> Any:
    if "paths" in node:
        return [at(value, path) for path in node["paths"]]
    found = at(value, node.get("path", []))
    if "gather" in node:
        return gathered(found, node["gather"])
    if "known" in node and isinstance(found, list):
        return [item for item in found if not is_open(at(item, node["known"]))]
    return found


def differences(value: Any, expected: Any, node: Any, where: str) -> Iterator[str]:
    """What differs, a line each."""
    node = {"path": node} if isinstance(node, list) else node
    found = _found(value, node)
    if "each" in node and isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            yield f"{where}: {found!r}, expected {len(expected)} items"
            return
        for place, item in enumerate(expected):
            yield from differences(found[place], item, node["each"], f"{where}.{place}")
    elif "every" in node and isinstance(expected, dict):
        for key, item in expected.items():
            yield from differences(at(found, [key]), item, node["every"], f"{where}.{key}")
    elif "keys" in node and isinstance(expected, dict | list):
        for key, item in expected.items() if isinstance(expected, dict) else enumerate(expected):
            if key not in node["keys"]:
                yield f"{where}: expected key {key!r} is not mapped"
            else:
                yield from differences(found, item, node["keys"][key], f"{where}.{key}")
    elif not same(shown := written(found, node.get("as")), expected):
        yield f"{where}: {shown!r}, expected {expected!r}"
