"""One line or section of a GPU's report, in its two spellings: a label for the text, a tag for the XML. Pure."""

from dataclasses import dataclass

NA = "N/A"
COLUMN = 55  # where driver 580 puts the colon
PROCESS_COLUMN = 42  # and where it still puts it in the lines about processes


@dataclass(frozen=True)
class Entry:
    """`label` None: the XML only; `tag` None: the text only; `xml`: the value there, where it is another.

    `raw`: a section whose only content is `value`, on a line of its own.
    """

    label: str | None
    tag: str | None
    value: str = ""
    children: "tuple[Entry, ...] | None" = None
    xml: str | None = None
    raw: bool = False
    column: int = COLUMN


def leaf(label: str, tag: str, value: str) -> Entry:
    return Entry(label, tag, value)


def section(label: str | None, tag: str | None, *children: Entry) -> Entry:
    return Entry(label, tag, children=children)


def text_only(label: str, value: str, column: int = COLUMN) -> Entry:
    return Entry(label, None, value, column=column)


def xml_only(tag: str, value: str) -> Entry:
    return Entry(None, tag, value)


def enabled(on: bool) -> str:
    return "Enabled" if on else "Disabled"


def yes(on: bool) -> str:
    return "Yes" if on else "No"
