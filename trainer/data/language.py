"""The language of a row, by script: which script do most bytes of its letters belong to?

Han is Chinese, Latin is English, everything else is other: kana, Hangul, Cyrillic, Arabic ... In UTF-8 a Han character counts 3
and a Latin letter 1, about as much as each of them says. A row in French is called English, for its script is Latin; program code
too. A row where kana or Hangul are a tenth of the Han characters or more is Japanese or Korean, so other. Digits, signs and spaces
are no letters; a row of them alone is none.

Counted on UTF-8 as it stands, by the first byte of each character: bytes.translate does that at some GB/s.
"""

from __future__ import annotations

import re

LANGUAGES = ("chinese", "english", "other", "none")

_LATIN = bytes([*range(0x41, 0x5B), *range(0x61, 0x7B)])
_LETTER = re.compile(rb"[A-Za-z]")
_LATIN_2 = bytes(range(0xC3, 0xCA))  # U+00C0 to U+027F
_OTHER_2 = bytes(range(0xCE, 0xE0))  # Greek, Cyrillic, Armenian, Hebrew, Arabic ...: U+0380 to U+07FF
_OTHER_3 = bytes([0xE0, 0xE1, *range(0xEA, 0xEE)])  # Indic, Thai, Georgian ...; Hangul and its neighbours
_HAN = bytes(range(0xE4, 0xEA))  # U+4000 to U+9FFF
_USUAL = bytes(range(0xC0)) + _HAN  # ASCII, the bytes that go on with a character, and Han


def language(text: bytes) -> str:
    """One of LANGUAGES for a text in UTF-8."""
    if text.isascii():
        return "english" if _LETTER.search(text) else "none"
    latin = _count(text, _LATIN)
    han, rare = 3 * _count(text, _HAN), text.translate(None, _USUAL)
    han_a, other = _of_e3(text, rare.count(0xE3))
    han += han_a + _of_f0(text, rare.count(0xF0))
    latin += 2 * _count(rare, _LATIN_2)
    other += 3 * _count(rare, _OTHER_3)
    if 10 * other >= han > 0:
        other, han = other + han, 0
    other += 2 * _count(rare, _OTHER_2)
    most = max(han, latin, other)
    return "none" if not most else "chinese" if han == most else "english" if latin == most else "other"


def _count(text: bytes, those: bytes) -> int:
    return len(text) - len(text.translate(None, those))


def _of_e3(text: bytes, all_of_it: int) -> tuple[int, int]:
    """Bytes of (Han extension A, kana and their neighbours) among the characters U+3000 to U+3FFF; the first 64 are punctuation."""
    left = all_of_it - text.count(b"\xe3\x80") if all_of_it else 0
    if not left:
        return 0, 0
    kana = sum(text.count(bytes((0xE3, second))) for second in range(0x81, 0x90))
    return 3 * (left - kana), 3 * kana


def _of_f0(text: bytes, all_of_it: int) -> int:
    """Bytes of Han extension B and later among the characters from U+10000 on; nearly all others are pictures."""
    left = all_of_it - text.count(b"\xf0\x9f") if all_of_it else 0
    return 4 * (left - sum(text.count(bytes((0xF0, second))) for second in range(0x90, 0x9F))) if left else 0
