"""Headlines of the operating system's facts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.render.headlines.words import word


def _boot(value: Any) -> str:
    began = value["began"]
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(began)) if isinstance(began, int) else word(began)
    return f"{word(value['id'])} since {since}"


HEADLINES: Mapping[str, Callable[[Any], str]] = {"boot": _boot}
