"""YAML text in, documents out: each value as the text that was typed, with the place of every key and value.

One pass over libyaml's events, on a stack of our own: nothing here recurses, so that no nesting can exhaust it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias, Union

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from reconciler.model.desired import Origin
from reconciler.model.problem import Datum, Path, Problem

Data: TypeAlias = Union[str, list["Data"], dict[str, "Data"], None]  # noqa: UP007 - a recursive alias
MAX_BYTES = 4 << 20  # a file; about 100,000 lines
MAX_DEPTH = 32  # levels of nesting; the language has 7
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = ("", "~", "null")
# control characters, line ends that editors do not show as such, and marks that reorder or hide what stands in the line
_HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]")


@dataclass(slots=True)
class Document:
    """One YAML document. `keys` and `values` hold (line, column), from 1, by path; `repeated`: a key is given twice."""

    file: str
    data: Data = None
    keys: dict[Path, tuple[int, int]] = field(default_factory=dict)
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    repeated: bool = False

    def known(self, path: Path) -> Path:
        """The longest beginning of `path` that the document has."""
        while path and path not in self.values:
            path = path[:-1]
        return path

    def value(self, path: Path) -> Origin:
        """Where the value at `path` begins; where there is none, the block that it should be in."""
        return Origin(self.file, *self.values.get(self.known(path), (1, 1)))

    def key(self, path: Path) -> Origin:
        """Where the key at `path` stands."""
        here = self.known(path)
        return Origin(self.file, *(self.keys.get(here) or self.values.get(here, (1, 1))))


@dataclass(frozen=True, slots=True)
class Parsed:
    """The documents of one file and what is wrong with its YAML. Not `complete`: nothing after the problem was read."""

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...] = ()
    complete: bool = True


def parse(content: bytes, file: str) -> Parsed:
    """All documents of a file in UTF-8 (with or without BOM, LF or CRLF), empty ones left out. Never raises."""
    text = _text(content, file)
    if isinstance(text, Problem):
        return Parsed((), (text,), complete=False)
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except _RefusedError as e:
        builder.problems.append(e.problem)
    except yaml.YAMLError as e:
        builder.problems.append(_not_yaml(e, text, file))
    else:
        return Parsed(builder.finished(), tuple(builder.problems))
    return Parsed(builder.finished(), tuple(builder.problems), complete=False)


def _text(content: bytes, file: str) -> str | Problem:
    if len(content) > MAX_BYTES:
        return Problem(file, 1, 1, "file-too-large", data={"size": len(content), "limit": MAX_BYTES})
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start)
        column = e.start - content.rfind(b"\n", 0, e.start)
        return Problem(file, line + 1, column, "not-utf8", data={"byte": e.start})
    if hidden := _HIDDEN.search(text):
        at = hidden.start()
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        return Problem(file, line, column, "hidden-character", data={"character": f"U+{ord(hidden[0]):04X}"})
    return text


def _place(event: Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


class _RefusedError(Exception):
    """YAML that the language does not take: the file is read no further."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


@dataclass(slots=True)
class _Frame:
    """A mapping or sequence that is being filled. `again`: the key is a second one, its value is dropped."""

    path: Path
    data: dict[str, Data] | list[Data]
    key: str | None = None
    again: bool = False


class _Builder:
    """Takes events; holds the documents that are whole, and problems after which reading goes on (keys given twice)."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self._documents: list[Document] = []
        self._stack: list[_Frame] = []

    def finished(self) -> tuple[Document, ...]:
        """Documents that say something; one that was cut short is left out."""
        whole = self._documents[:-1] if self._stack else self._documents
        return tuple(d for d in whole if d.data is not None)

    def take(self, event: Event) -> None:
        if isinstance(event, ScalarEvent):
            self._scalar(event)
        elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
            self._open(event)
        elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
            self._stack.pop()
        elif isinstance(event, DocumentStartEvent):
            self._documents.append(Document(self.file))
        elif isinstance(event, AliasEvent):
            self._refuse(event, "yaml-anchor")

    def _refuse(self, event: Event, code: str, **data: Datum) -> NoReturn:
        raise _RefusedError(Problem(self.file, *_place(event), code, data=data))

    def _check_marks(self, event: ScalarEvent | MappingStartEvent | SequenceStartEvent) -> None:
        if event.anchor is not None:
            self._refuse(event, "yaml-anchor")
        if event.tag is not None:
            self._refuse(event, "yaml-tag", found=str(event.tag).replace("tag:yaml.org,2002:", "!!"))

    def _key_wanted(self) -> bool:
        return bool(self._stack) and self._stack[-1].key is None and isinstance(self._stack[-1].data, dict)

    def _scalar(self, event: ScalarEvent) -> None:
        self._check_marks(event)
        if self._key_wanted():
            self._key(event, self._stack[-1])
        else:
            self._put(event, None if not event.style and event.value in _NULLS else event.value)

    def _key(self, event: ScalarEvent, frame: _Frame) -> None:
        key, document = event.value, self._documents[-1]
        if key == "<<" and not event.style:
            self._refuse(event, "yaml-merge")
        if not key:
            self._refuse(event, "key-not-text")
        frame.key, frame.again = key, key in frame.data
        path = (*frame.path, key)
        if frame.again:
            document.repeated = True
            data: dict[str, Datum] = {"found": key, "line": document.keys[path][0]}
            self.problems.append(Problem(self.file, *_place(event), "key-twice", data=data))
        else:
            document.keys[path] = _place(event)

    def _open(self, event: MappingStartEvent | SequenceStartEvent) -> None:
        self._check_marks(event)
        if len(self._stack) >= MAX_DEPTH:
            self._refuse(event, "too-deep", limit=MAX_DEPTH)
        if self._key_wanted():
            self._refuse(event, "key-not-text")
        data: dict[str, Data] | list[Data] = {} if isinstance(event, MappingStartEvent) else []
        self._stack.append(_Frame(self._put(event, data), data))

    def _put(self, event: Event, value: Data) -> Path:
        """Put `value` where it belongs; its path."""
        document = self._documents[-1]
        path: Path = ()
        if not self._stack:
            document.data = value
        elif isinstance((frame := self._stack[-1]).data, list):
            path = (*frame.path, len(frame.data))
            frame.data.append(value)
        elif frame.key is not None:
            path = (*frame.path, frame.key, "(again)") if frame.again else (*frame.path, frame.key)
            if not frame.again:
                frame.data[frame.key] = value
            frame.key = None
        document.values[path] = _place(event)
        return path


def _not_yaml(error: yaml.YAMLError, text: str, file: str) -> Problem:
    """What the parser says, with a hint for the mistakes that people make."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return Problem(file, 1, 1, "not-yaml", data={"said": str(error), "hint": ""})
    said = str(getattr(error, "problem", None) or getattr(error, "context", ""))
    lines = text.split("\n", mark.line + 1)
    line = lines[mark.line] if mark.line < len(lines) else ""
    hint = ""
    if "but got '['" in said or ("[" in line and "{" in line):
        hint = "host-list"
    elif "\t" in line:
        hint = "tab"
    elif line.count(": ") > 1 and "{" not in line:
        hint = "colon"
    return Problem(file, mark.line + 1, mark.column + 1, "not-yaml", data={"said": said, "hint": hint})
