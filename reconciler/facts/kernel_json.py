"""Kernel logs that journalctl and dmesg write as JSON, as the lines that they stand for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from reconciler.facts import keyed

_MESSAGE = re.compile(r'"MESSAGE" ?: ?("(?:[^"\\]|\\["\\/bfnrt])*")')


def lines(log: str) -> str:
    """`journalctl -o json` (an object a line) and `dmesg --json` as text with level and times in front; any other text as it is."""
    head = log[:2000].lstrip()
    if head[:1] != "{":
        return log
    if '"dmesg"' in head[:40]:
        found = keyed.objects(log[log.find("[") :].rstrip().removesuffix("}")) or ([], True)
        return "".join(f"{_dmesg(record)}\n" for record in found[0])
    if '"MESSAGE"' in head or '"__CURSOR"' in head:
        return "\n".join(map(_journal, log.split("\n")))
    return log


def _dmesg(record: Mapping[str, Any]) -> str:
    level, time = record.get("pri"), record.get("time")
    front = f"<{level}>" if isinstance(level, int) else ""
    return f"{front}[{time:.6f}] {_flat(record.get('msg'))}" if isinstance(time, float) else f"{front}{_flat(record.get('msg'))}"


def _journal(line: str) -> str:
    """Numbers are texts there; a message that is no text is a list of its bytes. Of a damaged record a whole message counts."""
    if line[:1] != "{":
        return line
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = {"MESSAGE": json.loads(message[1], strict=False)} if (message := _MESSAGE.search(line)) else {}
    level = record.get("PRIORITY")
    front = f"<{level}>" if isinstance(level, str) and level.isdecimal() and len(level) < 4 else ""
    seconds, time = _micros(record, "_SOURCE_MONOTONIC_TIMESTAMP"), _micros(record, "__REALTIME_TIMESTAMP")
    since = f"[{seconds / 1e6:.6f}] " if seconds is not None else ""
    return f"{front}{_time(time)}kernel: {since}{_flat(record.get('MESSAGE'))}"


def _micros(record: Mapping[str, Any], key: str) -> int | None:
    found = record.get(key)
    return int(found) if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) < 18 else None


def _time(micros: int | None) -> str:
    if micros is None or micros > 1 << 57:  # the year 6500: no date that Python knows ends before
        return ""
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%dT%H:%M:%S}.{micros % 1_000_000:06d}Z "


def _flat(message: Any) -> str:
    if isinstance(message, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in message):
        message = bytes(message).decode("utf-8", "replace")
    return " ".join(message.split("\n")) if isinstance(message, str) else ""
