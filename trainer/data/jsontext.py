"""JSON texts from files of any size: one object a line, or one array of objects; each with the exact line on which it begins.

Nothing is read whole: a line or an element holds at most LONGEST bytes, and what is longer is passed over in pieces.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any, NoReturn

LONGEST = 32 * 1024 * 1024  # bytes of one row; as Python objects it takes some ten times as much for a moment
_BOM = codecs.BOM_UTF8
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SPACE = re.compile(r"[ \t\r\n]*")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # one half of a pair that has to have another, or is no character at all
_PIECE = 256 * 1024


class NotJson(ValueError):
    """Why bytes are no JSON value that can be read, in words."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise NotJson(f"said twice: {', '.join(map(repr, twice))}")
    return found


def _no_number(text: str) -> NoReturn:
    raise NotJson(f"{text} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)
_LENIENT = json.JSONDecoder()  # finds the end of an element that ours refuses


def decode(raw: bytes) -> Any:
    """The value of one JSON text in UTF-8. Raises NotJson."""
    try:
        text = raw.decode().strip(" \t\r\n")
        value, end = _DECODER.raw_decode(text)
        if end != len(text):
            raise NotJson(f"not JSON: something stands after the end of the value, column {end + 1}")
    except UnicodeDecodeError as e:
        raise NotJson(not_utf8(raw, e)) from e
    except json.JSONDecodeError as e:
        raise NotJson(f"not JSON: {e.msg}, column {e.pos + 1}") from e
    except RecursionError as e:
        raise NotJson("nested too deeply") from e
    except NotJson:
        raise
    except ValueError as e:  # a number of more digits than Python turns into one
        raise NotJson(f"not a number that can be read: {e}") from e
    if "\\u" in text and _HALF.search(text):
        whole_characters(value)
    return value


def whole_characters(value: Any) -> None:
    """Raise NotJson where a text has half a surrogate pair: no tokenizer takes it, and no UTF-8 has it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as e:
        raise NotJson(f"half a character: \\u{ord(e.object[e.start]):04x} without its other half") from e


def not_utf8(raw: bytes, error: UnicodeDecodeError) -> str:
    """What the byte is and where, and the way out where the bytes are what Chinese systems wrote before UTF-8."""
    said = f"not UTF-8: byte 0x{raw[error.start]:02x} at byte {error.start + 1} of the line"
    try:
        chinese = raw.decode("gb18030")
    except UnicodeDecodeError:
        return said
    return said + ("; it is valid GB18030: iconv -f GB18030 -t UTF-8" if any(c >= "\u4e00" for c in chinese) else "")


def lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | NotJson]]:
    """(line number from 1, its bytes without the line end) of every line; NotJson for one that is longer than LONGEST.

    Blank lines are given too; a byte order mark is taken off the first line.
    """
    number = 0
    while piece := stream.readline(LONGEST + len("\r\n")):
        number += 1
        if number == 1:
            if piece.startswith(_WIDE):
                yield 1, NotJson("UTF-16: iconv -f UTF-16 -t UTF-8")
                return
            piece = piece.removeprefix(_BOM)
        line = piece.rstrip(b"\r\n")
        if len(line) > LONGEST:
            yield number, NotJson(_too_long(len(line) + (0 if piece.endswith(b"\n") else _rest(stream))))
        else:
            yield number, line


def _too_long(size: int) -> str:
    return f"{size:,} bytes are too long for a row: at most {LONGEST:,}"


def _rest(stream: IO[bytes]) -> int:
    """Bytes up to the end of the line, read in pieces and forgotten."""
    size = 0
    while piece := stream.readline(_PIECE):
        size += len(piece.rstrip(b"\r\n"))
        if piece.endswith(b"\n"):
            break
    return size


class Elements:
    """The elements of one JSON array, read piece by piece: iterate for (line on which it begins, value or NotJson).

    After an element that is no JSON nothing more can be told apart: it is the last thing that is given.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text, self._at, self._line, self._counted, self._ended = "", 0, 1, 0, False

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        try:
            yield from self._elements()
        except NotJson as e:
            yield self._here(), e
        except UnicodeDecodeError as e:
            yield self._here(), NotJson(f"not UTF-8: byte 0x{e.object[e.start]:02x} in or after this element")

    def _elements(self) -> Iterator[tuple[int, Any]]:
        self._take("[")
        if self._next() == "]":
            self._at += 1
        else:
            while True:
                self._next()
                line = self._here()
                yield line, self._value()
                if self._take(",", "]") == "]":
                    break
        if self._next():
            raise NotJson("something stands after the end of the array")

    def _here(self) -> int:
        """The line of the place that is read next."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _next(self) -> str:
        """The next character that is no space, not yet taken; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(_PIECE):
                return ""

    def _take(self, *allowed: str) -> str:
        found = self._next()
        if found not in allowed:
            wanted = " or ".join(map(repr, allowed))
            raise NotJson(f"not JSON: {wanted} is missing, there is {repr(found) if found else 'the end of the file'}")
        self._at += 1
        return found

    def _more(self, size: int) -> bool:
        """Read further; what was taken is forgotten. False at the end of the file."""
        if self._ended:
            return False
        self._here()
        raw = self._stream.read(size)
        self._ended = not raw
        self._text = self._text[self._at :] + self._decoder.decode(raw, final=self._ended)
        self._at = self._counted = 0
        return not self._ended

    def _value(self) -> Any:
        """The element that begins here, with ever larger pieces while it is cut off."""
        size = _PIECE
        while True:
            began = self._at
            try:
                value, end = self._decoded(began)
                if end < len(self._text) or not self._more(size):
                    self._at = end if end < len(self._text) or self._ended else self._at
                    return value
            except json.JSONDecodeError as e:
                self._cut_off(e, size)
            except (ValueError, RecursionError) as e:
                raise e if isinstance(e, NotJson) else NotJson(f"not JSON that can be read: {e}") from e
            size *= 2

    def _decoded(self, began: int) -> tuple[Any, int]:
        """The value and where it ends; NotJson as the value where it is JSON but not for us."""
        try:
            value, end = _DECODER.raw_decode(self._text, began)
            if _HALF.search(self._text, began, end):
                whole_characters(value)
        except NotJson as e:
            return e, _LENIENT.raw_decode(self._text, began)[1]
        return value, end

    def _cut_off(self, error: json.JSONDecodeError, size: int) -> None:
        """Read further where the element may go on; raise NotJson where it is wrong or too long."""
        if (left := len(self._text) - self._at) > LONGEST:
            raise NotJson(_too_long(left)) from error
        cut = error.msg.startswith("Unterminated string") or len(self._text) - error.pos < _LONGEST_TOKEN
        into = error.pos - self._at
        if not (cut and self._more(size)):
            raise NotJson(f"not JSON: {error.msg}, {into} characters into this element") from error


_LONGEST_TOKEN = 16  # characters: where a value stops making sense this near to the end of what was read, it may be cut off
