"""One pass over every saved or live text before a parser sees it: what terminals, launchers and log daemons put around lines."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
# what each launcher puts in front of a line, empty and indented ones too. Blanks after it belong to the line
_TAGS = (
    re.compile(r"\s{0,8}[0-9]{1,6}:(?: |$)"),  # srun -l: `3: `, filled up to the width of the largest task
    re.compile(r"\[(?:[^\]\s]{1,200}@)?[0-9]{1,7},[0-9]{1,7}\]<std(?:out|err)>: ?"),  # mpirun --tag-output
    re.compile(r"\([\w.:-]{0,80}(?: ?pid=[0-9]{1,10})(?:, ip=[0-9a-fA-F.:]{2,45})?\)(?: |$)"),  # ray
)
# the launcher's own words, which it does not tag
_ITS_OWN = ("srun: ", "slurmstepd: ")


def lines(text: str) -> list[str]:
    """`text` as lines without colour, carriage returns (the last state of an overwritten line stays) and byte order mark."""
    return _bare(text).split("\n")


def untagged(found: list[str]) -> list[str]:
    """The same without a launcher's tag, where every line that says anything has one of the same launcher."""
    first = next((line for line in found if line and not line.isspace() and not line.startswith(_ITS_OWN)), "")
    for tag in _TAGS:
        if tag.match(first):
            return _without(tag, found)
    return found


def _without(tag: re.Pattern[str], found: list[str]) -> list[str]:
    bare: list[str] = []
    for line in found:
        if told := tag.match(line):
            bare.append(line[told.end() :])
        elif not line or line.isspace() or line.startswith(_ITS_OWN):
            bare.append(line)
        else:
            return found
    return bare


def _bare(text: str) -> str:
    plain = text.removeprefix("\ufeff")
    if "\x1b" in plain:
        plain = _ANSI.sub("", plain)
    plain = plain.replace("\r\n", "\n")
    return _OVERWRITTEN.sub("", plain).replace("\r", "") if "\r" in plain else plain


def clean(text: str) -> str:
    """The text as a parser wants it."""
    plain = _bare(text)
    at = 0
    while at < len(plain):  # a text whose first line has no tag is as it has to be, however long it is
        end = plain.find("\n", at)
        end = len(plain) if end < 0 else end
        line = plain[at:end]
        if line and not line.isspace() and not line.startswith(_ITS_OWN):
            return "\n".join(untagged(plain.split("\n"))) if any(tag.match(line) for tag in _TAGS) else plain
        at = end + 1
    return plain


def ended(text: str) -> tuple[str, str]:
    """The cleaned text to its last end of line, and what stands behind that: a line that may be cut, where `2.6.` was 2.6.0."""
    plain = clean(text)
    at = plain.rfind("\n") + 1
    return (plain, "") if plain[at:].isspace() else (plain[:at], plain[at:])
