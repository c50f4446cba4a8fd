"""run.yaml as the text that was typed, with the place of every key and value; nothing is guessed from how a value looks.

Plain `true` and `false` are booleans and plain `null`, `~` or nothing is null; everything else stays text until a field types it,
so 1e-4 is a number where a number belongs and 3.10 keeps its zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from trainer.errors import Problem, Refused

Path = tuple[str | int, ...]
_PLAIN: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says. `keys` and `values` have the line and column, from 1, of each."""

    name: str
    data: dict[str, Any]
    keys: dict[Path, tuple[int, int]]
    values: dict[Path, tuple[int, int]]

    def where(self, path: Path, key: bool = False) -> str:
        """FILE:LINE:COLUMN of a value, or of its key; of the nearest thing around it where there is none."""
        for length in range(len(path), 0, -1):
            place = (self.keys if key or length < len(path) else self.values).get(path[:length])
            if place:
                return f"{self.name}:{place[0]}:{place[1]}"
        return f"{self.name}:1:1"


def parse(text: str, name: str) -> Document:
    """One YAML document that is a mapping. Raises Refused for what is no YAML, for anchors, tags and keys given twice."""
    problems: list[Problem] = []
    try:
        problems += [
            Problem(f"{name}:{_line(token)}", f"YAML {kind} are not allowed in a run file: write the value out")
            for token in yaml.scan(text, Loader=yaml.SafeLoader)
            if (kind := _forbidden(token))
        ]
        root = None if problems else yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise Refused(Problem(where, f"not YAML: {getattr(error, 'problem', None) or error}")) from error
    if problems:
        raise Refused(problems)
    if not isinstance(root, yaml.MappingNode):
        raise Refused(
            Problem(f"{name}:1:1", "a run file is a mapping: it begins with lines such as `model: /data/models/base/NAME`")
        )
    document = Document(name, {}, {}, {})
    document.data.update(_mapping(root, (), document, problems))
    if problems:
        raise Refused(problems)
    return document


def _forbidden(token: Any) -> str:
    if isinstance(token, yaml.AnchorToken | yaml.AliasToken):
        return "anchors (&name, *name)"
    return "tags (!name)" if isinstance(token, yaml.TagToken) else ""


def _line(token: Any) -> str:
    return f"{token.start_mark.line + 1}:{token.start_mark.column + 1}"


def _mapping(node: yaml.MappingNode, path: Path, document: Document, problems: list[Problem]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        here = (*path, key)
        place = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        if key in found:
            first = document.keys[here]
            problems.append(
                Problem(f"{document.name}:{place[0]}:{place[1]}", f"key '{key}' is given twice, first on line {first[0]}")
            )
            continue
        document.keys[here] = place
        found[key] = _value(value_node, here, document, problems)
    return found


def _value(node: yaml.Node, path: Path, document: Document, problems: list[Problem]) -> Any:
    document.values[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document, problems)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, number), document, problems) for number, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    return _PLAIN.get(node.value, node.value) if node.style is None else node.value
