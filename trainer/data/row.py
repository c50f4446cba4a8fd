"""What one row is, whatever file it stood in: the three formats, each turned into lists of {role, content}, or why it is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

Kind = Literal["instruction", "messages", "preference"]
ROLES = ("system", "user", "assistant", "tool")

# How other tools call our roles. They are not taken over silently: a model must see the same words in training and in serving.
_FOREIGN_ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "model": "assistant", "function": "tool"}
_FORMATS: Mapping[Kind, tuple[str, ...]] = {
    "instruction": ("instruction", "input", "output"),
    "messages": ("messages",),
    "preference": ("prompt", "chosen", "rejected"),
}
_ALLOWED = "{instruction, input, output}, {messages} or {prompt, chosen, rejected}"
# Keys that would change what is learned: a row with one of them is refused. Any other key (id, source ...) is left unread and told.
_REFUSED = {
    "history": "write the earlier turns as messages",
    "system": "write it as the first message, with role system",
    "tools": "tool definitions are not read",
    "conversations": "write messages with role and content instead of from and value",
    "completion": "write it as output, or as a message of the assistant",
    "images": "only text is read",
    "image": "only text is read",
}
_PLAIN: Mapping[tuple[str, ...], Kind] = {keys: kind for kind, keys in _FORMATS.items()}  # what nearly every row looks like
_SHOWN = 40  # characters of a value that a message repeats


class Message(TypedDict):
    """One turn: who says it (one of ROLES) and what."""

    role: str
    content: str


class NotARow(ValueError):
    """Why an object is no row: every reason at once, in words."""


@dataclass(slots=True)  # not frozen: to make one would take four times as long, and one is made for each row
class Row:
    """One row as a trainer needs it. Never changed once it is made.

    `index` counts the well-formed rows of the whole source from 0; `number` counts all rows of `file` from 1; `line` is the line on
    which it begins (of the unpacked text), None where a file has no lines. An instruction or messages row has `messages`, a
    preference row has `prompt`, `chosen` and `rejected`; what a row has not is an empty list. `unread` names keys that are ignored.
    """

    index: int
    kind: Kind
    file: str
    line: int | None
    number: int
    messages: list[Message] = field(default_factory=list)
    prompt: list[Message] = field(default_factory=list)
    chosen: list[Message] = field(default_factory=list)
    rejected: list[Message] = field(default_factory=list)
    unread: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        return place(self.file, self.line, self.number)

    def conversations(self) -> tuple[list[Message], ...]:
        """What is read from beginning to end: one for instruction and messages, two (chosen, rejected) for a preference."""
        if self.kind == "preference":
            return self.prompt + self.chosen, self.prompt + self.rejected
        return (self.messages,)


@dataclass(frozen=True, slots=True)
class Malformed:
    """Something in a file that is no row: where, and why, in words for a person."""

    file: str
    line: int | None
    why: str
    number: int | None = None

    @property
    def where(self) -> str:
        return place(self.file, self.line, self.number)


def place(file: str, line: int | None, number: int | None) -> str:
    """FILE:LINE, or FILE row NUMBER where there are no lines."""
    if line is not None:
        return f"{file}:{line}"
    return file if number is None else f"{file} row {number}"


def understand(found: object, index: int, file: str, line: int | None, number: int) -> Row:
    """The row that a parsed object is. Raises NotARow with all that is wrong with it."""
    if type(found) is not dict:
        raise NotARow(f"a row is an object, this is {kind_of(found)}")
    wrong: list[str] = []
    unread: tuple[str, ...] = ()
    kind = _PLAIN.get(tuple(found))
    if kind is None:
        kind = _kind(found)
        unread = tuple(key for key in found if key not in _FORMATS[kind] and found[key] is not None)
        wrong += [f"{key!r} is not read here: {_REFUSED[key]}" for key in _REFUSED if found.get(key)]
    if kind == "preference":
        prompt, chosen, rejected = _preference(found, wrong)
        row = Row(index, kind, file, line, number, [], prompt, chosen, rejected, unread)
    else:
        messages = _turns("messages", found["messages"], wrong) if kind == "messages" else _instruction(found, wrong)
        row = Row(index, kind, file, line, number, messages, [], [], [], unread)
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise NotARow("; ".join(wrong[:3]) + more)
    return row


def _kind(found: Mapping[str, Any]) -> Kind:
    has: dict[Kind, list[str]] = {
        kind: [key for key in keys if found.get(key) is not None and key != "input"] for kind, keys in _FORMATS.items()
    }
    kinds = [kind for kind, keys in has.items() if keys]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        both = ", ".join(key for kind in kinds for key in has[kind])
        raise NotARow(f"keys of {len(kinds)} formats ({both}): a row is one of {_ALLOWED}")
    keys = list(found)
    advice = next((f"; {key!r}: {_REFUSED[key]}" for key in keys if key in _REFUSED), "") or nearest(keys)
    raise NotARow(f"no format that is known: it has {_list(keys)}; allowed is {_ALLOWED}{advice}")


def nearest(keys: Iterable[str]) -> str:
    """`; did you mean ...` for the first key that is nearly one of ours."""
    known = [key for names in _FORMATS.values() for key in names]
    for key in keys:
        if close := difflib.get_close_matches(key.lower(), known, 1, 0.75):
            return f"; {key!r}: did you mean {close[0]!r}?"
    return ""


def _instruction(found: Mapping[str, Any], wrong: list[str]) -> list[Message]:
    """The question is the instruction, an empty line and the input, where there is one; the answer is the output."""
    texts = {}
    for key in _FORMATS["instruction"]:
        value = found.get(key)
        if value is None and key == "input":
            value = ""
        if type(value) is not str:
            wrong.append(_not_text(key, value, key in found) + ("" if key in found else nearest(found.keys() - _KNOWN)))
        texts[key] = value
    if wrong:
        return []
    asked = f"{texts['instruction']}\n\n{texts['input']}" if texts["input"] else texts["instruction"]
    return [{"role": "user", "content": str(asked)}, {"role": "assistant", "content": str(texts["output"])}]


_KNOWN = frozenset(key for keys in _FORMATS.values() for key in keys)


def _preference(found: Mapping[str, Any], wrong: list[str]) -> tuple[list[Message], list[Message], list[Message]]:
    """All three are texts (a question, two answers), or all three are lists of messages."""
    given = {key: found.get(key) for key in _FORMATS["preference"]}
    if all(type(value) is str for value in given.values()):
        asked, better, worse = (str(value) for value in given.values())
        return [_message("user", asked)], [_message("assistant", better)], [_message("assistant", worse)]
    if missing := [key for key, value in given.items() if value is None]:
        wrong.append(f"{_list(missing)} missing: a preference has prompt, chosen and rejected{nearest(found.keys() - _KNOWN)}")
        return [], [], []
    kinds = {key: kind_of(value) for key, value in given.items()}
    if any(type(value) is not list for value in given.values()):
        wrong.append("prompt, chosen and rejected are all texts or all lists of messages, here " + _pairs(kinds))
        return [], [], []
    prompt, chosen, rejected = (_turns(key, given[key], wrong) for key in given)
    for name, answer in (("chosen", chosen), ("rejected", rejected)):
        if answer and answer[0]["role"] not in ("assistant", "tool"):
            wrong.append(f"{name} begins with role {answer[0]['role']}: it is the answer alone, without the prompt")
    return prompt, chosen, rejected


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _turns(name: str, value: object, wrong: list[str]) -> list[Message]:
    """The same list where each message is {role, content} and nothing else, as nearly all are; otherwise what is wrong with it."""
    if type(value) is not list:
        wrong.append(f"{name} is {kind_of(value)}, a list of messages is wanted")
        return []
    turns: list[Message] = []
    for at, found in enumerate(value):
        good = type(found) is dict and len(found) == 2 and type(found.get("content")) is str and found.get("role") in ROLES
        turns.append(found if good else _turn(f"{name}[{at}]", found, wrong))
    return turns


def _turn(name: str, found: object, wrong: list[str]) -> Message:
    if type(found) is not dict:
        wrong.append(f"{name} is {kind_of(found)}, a message is {{role, content}}")
        return _message("user", "")
    role, content = found.get("role"), found.get("content")
    if role not in ROLES:
        wrong.append(_wrong_role(name, role))
    if type(content) is not str:
        wrong.append(_not_text(f"{name}.content", content, "content" in found))
    if others := [key for key in found if key not in ("role", "content") and found[key] is not None]:
        wrong.append(f"{name} has {_list(others)}: a message is {{role, content}}")
    return _message(str(role), str(content))


def _wrong_role(name: str, role: object) -> str:
    allowed = ", ".join(ROLES)
    if type(role) is not str:
        return f"{name}.role is {'missing' if role is None else kind_of(role)}; allowed: {allowed}"
    close = [_FOREIGN_ROLES[role.lower()]] if role.lower() in _FOREIGN_ROLES else difflib.get_close_matches(role.lower(), ROLES, 1)
    return f"{name}.role is {role[:_SHOWN]!r}; allowed: {allowed}" + (f"; did you mean {close[0]!r}?" if close else "")


def _not_text(name: str, value: object, there: bool) -> str:
    return f"{name} is {kind_of(value) if there else 'missing'}, a text is wanted"


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:_SHOWN]) for name in names[:6])
    return (shown + (" ..." if len(names) > 6 else "")) or "no keys"


def _pairs(found: Mapping[str, str]) -> str:
    return ", ".join(f"{key} is {value}" for key, value in found.items())


def kind_of(value: object) -> str:
    """A value's type in JSON's words, with its beginning where that helps."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return f"the number {str(value)[:_SHOWN]}"
    if isinstance(value, str):
        return f"the text {value[:_SHOWN]!r}"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__
