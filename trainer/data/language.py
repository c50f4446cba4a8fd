"""The language of a row, by script: which script do most bytes of its letters belong to?

Han is Chinese, Latin is English, everything else is other: kana, Hangul, Cyrillic, Arabic ... In UTF-8 a Han character counts 3
and a Latin letter 1, about as much as each of them says. A row in French is called English, for its script is Latin; program code too. A
row where kana or Hangul are a tenth of the Han characters or more is Japanese or Korean, so other. Digits, signs and spaces are no
letters; a row of them alone is none.

Counted on UTF-8 as it stands, by the first byte of each character: bytes.translate does that at some GB/s.
"""

from __future__ import annotations

LANGUAGES = ("chinese", "english", "other", "none")

_LATIN = bytes([*range(0x41, 0x5B), *range(0x61, 0x7B)])
_LATIN_2 = bytes(range(0xC3, 0xCA))  # U+00C0 to U+027F
_OTHER_2 = bytes(range(0xCE, 0xE0))  # Greek, Cyrillic, Armenian, Hebrew, Arabic ...: U+0380 to U+07FF
_OTHER_3 = bytes([0xE0, 0xE1, *range(0xEA, 0xEE)])  # Indic, Thai, Georgian ...; Hangul and its neighbours
_HAN_3 = bytes(range(0xE4, 0xEA))  # U+4000 to U+9FFF
_KANA = (b"\xe3\x81", b"\xe3\x82", b"\xe3\x83")  # U+3040 to U+30FF
_HAN_A = tuple(bytes([0xE3, second]) for second in range(0x90, 0xC0))  # U+3400 to U+3FFF
_HAN_B = tuple(bytes([0xF0, second]) for second in range(0xA0, 0xC0))  # U+20000 and after


def language(text: bytes) -> str:
    """One of LANGUAGES for a text in UTF-8."""
    latin = _count(text, _LATIN)
    if text.isascii():
        return "english" if latin else "none"
    latin += 2 * _count(text, _LATIN_2)
    han, kana, hangul_and_more = 3 * _count(text, _HAN_3), 0, 3 * _count(text, _OTHER_3)
    if b"\xe3" in text:
        kana = 3 * sum(map(text.count, _KANA))
        han += 3 * sum(map(text.count, _HAN_A))
    if b"\xf0" in text:
        han += 4 * sum(map(text.count, _HAN_B))
    other = kana + hangul_and_more + 2 * _count(text, _OTHER_2)
    if 10 * (kana + hangul_and_more) >= han > 0:
        other, han = other + han, 0
    most = max(han, latin, other)
    return "none" if not most else "chinese" if han == most else "english" if latin == most else "other"


def _count(text: bytes, those: bytes) -> int:
    return len(text) - len(text.translate(None, those))
