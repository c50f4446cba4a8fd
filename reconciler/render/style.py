"""Colours, where a person watches and did not ask for none."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Style:
    """`style(text, "bold", "red")`; the text itself where colours are off."""

    on: bool

    def __call__(self, text: str, *names: str) -> str:
        if not self.on or not text:
            return text
        return f"\x1b[{';'.join(_CODES[n] for n in names)}m{text}\x1b[0m"


def style_for(stream: TextIO) -> Style:
    """Off when piped, when NO_COLOR is set (https://no-color.org), and on a dumb terminal."""
    return Style(stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")
