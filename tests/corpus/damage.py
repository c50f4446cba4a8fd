"""What happens to a saved output on its way: every accident as a function of a text and a source of chance."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.corpus.cases import cases

MIB = 1 << 20
_NOISE = (
    *("\x1b[31m", "\x1b[4m", "\x1b[0m", "\r", "\r\n", "\ufffd", "\x00", "\x00" * 300, "\t", " ", "\n", "\n\n", "\u2028", "\ufeff"),
    *("²", "٣", "9" * 40, "9" * 5000, "-", "#", "%", "=", ":", " : ", "|", ", ", "{", "}", "[", "]", "(", '"', "'", "+", ".", "/"),
    *("\\", "N/A", "[N/A]", "ERR!", "nan", "inf", "-1", "1e999", "0x", "<gpu id=", "</gpu>", "&amp", "GPU 0: ", "NodeName=", "Xid"),
)
_PIECES = (
    *(
        " ",
        "\n",
        "\t",
        "a ",
        "a",
        "1 ",
        "9",
        "-",
        "a-",
        ":",
        " : ",
        "(",
        "[",
        "{",
        '{"a":',
        '"',
        "=",
        "a=1 ",
        "a" * 50 + "\n",
        "#",
        "|",
    ),
    *(
        "%",
        "/",
        "+",
        ".",
        "\x1b[",
        "\x00",
        "<a>",
        "<gpu id='1'>",
        "GPU 0: ",
        "0, ",
        "+---",
        "\n|",
        "    a\n",
        "(UUID: ",
        "Xid ",
        "AER: ",
    ),
    *("NCCL INFO ", "\r", "x\r", "1: ", "[1]:\n", "- ", "%20", "~", "^", "é"),
)


def _cut(text: str, chance: random.Random) -> str:
    return text[: chance.randint(0, len(text))]


def _behead(text: str, chance: random.Random) -> str:
    return text[chance.randint(0, len(text)) :]


def _delete(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    first = chance.randrange(len(lines))
    return "\n".join(lines[:first] + lines[first + chance.randint(1, 5) :])


def _double(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    return "\n".join([*lines[:at], *([lines[at]] * chance.randint(2, 40)), *lines[at:]])


def _shuffle(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    chance.shuffle(lines)
    return "\n".join(lines)


def _swap(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return "\n".join(lines)


def _flip(text: str, chance: random.Random) -> str:
    """Up to eight bytes: what comes of it may be no UTF-8."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(chance.randint(1, 8) if data else 0):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data).decode("utf-8", "replace")


def _noise(text: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + chance.choice(_NOISE) + text[at:]


def _columns(text: str, chance: random.Random) -> str:
    width = chance.randint(1, 120)
    return "\n".join(line[:width] for line in text.split("\n"))


def _unended(text: str, _: random.Random) -> str:
    return text.rstrip("\n")


def _tagged(text: str, chance: random.Random) -> str:
    tag = chance.choice(("0: ", "12: ", "[1,0]<stdout>:", "(pid=7, ip=10.0.0.1) "))
    return "".join(f"{tag}{line}\n" for line in text.split("\n"))


def _other(text: str, chance: random.Random) -> str:
    """The output of something else behind, before or in it."""
    strange = chance.choice(cases()).text()[:20_000]
    at = chance.choice((0, len(text), chance.randint(0, len(text))))
    return text[:at] + strange + text[at:]


_ACCIDENTS: tuple[Callable[[str, random.Random], str], ...] = (
    *(_cut, _behead, _delete, _double, _shuffle, _swap, _flip, _noise, _columns, _unended, _tagged, _other),
)


def damaged(text: str, chance: random.Random) -> str:
    """A text after one to six accidents."""
    for _ in range(chance.randint(1, 6)):
        text = chance.choice(_ACCIDENTS)(text[: 4 * MIB], chance)
    return text


def huge(text: str, piece: int, size: int = MIB) -> str:
    """A line of `size` characters of one kind behind the first half of a text, where parsers are in the middle of something."""
    filling = _PIECES[piece % len(_PIECES)]
    return text[: len(text) // 2] + filling * (size // len(filling)) + text[len(text) // 2 :]


PIECES = len(_PIECES)
