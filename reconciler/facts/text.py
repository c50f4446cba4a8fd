"""One pass over every saved or live text before a parser sees it: what terminals, launchers and log daemons put around lines."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# `srun -l` puts `3: `, mpirun --tag-output `[1,3]<stdout>:`, ray `(pid=123, ip=10.0.0.1) ` in front of each line
_LAUNCHER = re.compile(r"^(?:\s*\d{1,5}:\s(?=\S)|\[\d+,\d+\]<std(?:out|err)>:\s?|\((?:[\w.]+ )?pid=\d+(?:, ip=[\d.]+)?\)\s)")


def lines(text: str) -> list[str]:
    """`text` as lines without colour, carriage returns (the last state of an overwritten line stays) and byte order mark."""
    plain = _ANSI.sub("", text.removeprefix("\ufeff")).replace("\r\n", "\n")
    return [line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n")]


def untagged(found: list[str]) -> list[str]:
    """The same without a launcher's tag, where every line that says anything has one."""
    speaking = [line for line in found if line.strip()]
    if speaking and all(_LAUNCHER.match(line) for line in speaking):
        return [_LAUNCHER.sub("", line, count=1) for line in found]
    return found


def clean(text: str) -> str:
    """The text as a parser wants it."""
    return "\n".join(untagged(lines(text)))
