"""What the controller is told by options and its TOML file. It guards the repository, so none of it comes from there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.model.durations import ALLOWED, seconds
from reconciler.model.words import is_inside, nearest

REF = "refs/heads/main"
_REF = re.compile(r"refs/[A-Za-z0-9][A-Za-z0-9._/-]{0,200}")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,200}")
_SIGNED = ("none", "head", "strict")
_LISTEN = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")
_FILES = ("allowed-signers", "gpg-keyring", "webhook-secret")
_SPANS = {"interval": (1.0, 86400.0), "drift-interval": (1.0, 86400.0)}


@dataclass(frozen=True, slots=True)
class Settings:
    """`repository`: a path or a URL; `below`: the folder of it that holds the manifests, empty for all.

    `interval`, `drift_interval`: seconds between looks at Git, and at the nodes.

    `signed`: none, head or strict, by keys of `allowed_signers` (SSH) and `gpg_keyring`. `webhook`: HOST:PORT to listen on.
    """

    repository: str
    ref: str = REF
    below: str = ""
    cluster: str | None = None
    state_dir: str | None = None
    interval: float = 60.0
    drift_interval: float = 600.0
    signed: str = "none"
    allowed_signers: str | None = None
    gpg_keyring: str | None = None
    webhook: str | None = None
    webhook_secret: str | None = None

    @property
    def listen(self) -> tuple[str, int] | None:
        """Where webhooks are heard."""
        host, _, port = (self.webhook or "").rpartition(":")
        return (host.strip("[]"), int(port)) if host else None


@dataclass(frozen=True, slots=True)
class Wrong:
    """One mistake: a code, line and column in the file ((0, 0): the command line), the key, and what the sentence needs."""

    code: str
    place: tuple[int, int]
    key: str
    data: Mapping[str, Any] = field(default_factory=dict)


KEYS = ("repository", "ref", "below", "cluster", "state-dir", *_SPANS, "signed", *_FILES[:2], "webhook", _FILES[2])


def parse(text: str | None, options: Mapping[str, str | None]) -> Settings | tuple[Wrong, ...]:
    """The settings, or all that is wrong. `options` (by the same keys) go before the file's; None is not said."""
    try:
        said = tomllib.loads(text) if text else {}
    except tomllib.TOMLDecodeError as e:
        return (Wrong("not-toml", _said(str(e)), "", {"detail": str(e).partition(" (at")[0]}),)
    places = {key: _place_of(text or "", key) for key in said}
    wrong = [
        Wrong("unknown-key", places[k], k, {"nearest": nearest(k, KEYS), "allowed": list(KEYS)}) for k in said if k not in KEYS
    ]
    found: dict[str, Any] = {"repository": ""}
    given = {key: (value, places[key]) for key, value in said.items() if key in KEYS}
    given |= {key: (value, (0, 0)) for key, value in options.items() if value is not None}
    for key, (value, place) in given.items():
        one = _value(key, value)
        if isinstance(one, Wrong):
            wrong.append(replace(one, place=place))
        else:
            found[key.replace("-", "_")] = one
    if "repository" not in given:
        wrong.append(Wrong("missing-key", (0, 0), "repository"))
    wrong += _apart(given, found)
    return tuple(sorted(wrong, key=lambda w: (w.place, w.key))) or Settings(**found)


def _apart(given: Mapping[str, tuple[Any, tuple[int, int]]], found: Mapping[str, Any]) -> list[Wrong]:
    """Keys that mean something only together with another."""
    wrong = []
    if found.get("signed", "none") != "none" and not {"allowed-signers", "gpg-keyring"} & set(given):
        wrong.append(Wrong("needs-key", given["signed"][1], "signed", {"other": "allowed-signers or gpg-keyring"}))
    if "webhook" in given and "webhook-secret" not in given:
        wrong.append(Wrong("needs-key", given["webhook"][1], "webhook", {"other": "webhook-secret"}))
    return wrong


def _value(key: str, value: Any) -> str | float | Wrong:
    if not isinstance(value, str) or not value:
        return Wrong("not-text", (0, 0), key, {"found": value})
    if key in _SPANS:
        low, high = _SPANS[key]
        span = seconds(value)
        if span is None or not low <= span <= high:
            return Wrong("not-a-span", (0, 0), key, {"found": value, "allowed": ALLOWED, "low": low, "high": high})
        return span
    if key == "ref":
        full = value if value.startswith("refs/") else f"refs/heads/{value}"
        plain = _BRANCH.fullmatch(value) and _REF.fullmatch(full) and ".." not in value and not value.endswith(("/", ".lock"))
        return full if plain else Wrong("not-a-ref", (0, 0), key, {"found": value})
    if key == "below" and not is_inside(value):
        return Wrong("not-below", (0, 0), key, {"found": value})
    if key == "signed" and value not in _SIGNED:
        return Wrong("not-one-of", (0, 0), key, {"found": value, "allowed": list(_SIGNED), "nearest": nearest(value, _SIGNED)})
    if key == "webhook" and not ((m := _LISTEN.fullmatch(value)) and int(m[2]) < 65536):
        return Wrong("not-an-address", (0, 0), key, {"found": value})
    if key in _FILES and not value.startswith("/"):
        return Wrong("not-absolute", (0, 0), key, {"found": value})
    if key == "repository" and (value.startswith("-") or "\n" in value):
        return Wrong("not-a-repository", (0, 0), key, {"found": value})
    return value


def _said(error: str) -> tuple[int, int]:
    """Where tomllib says that it stopped."""
    found = re.search(r"line (\d+), column (\d+)", error)
    return (int(found[1]), int(found[2])) if found else (1, 1)


def _place_of(text: str, key: str) -> tuple[int, int]:
    """Where a top-level key stands; the file's beginning where it is written in a way that we do not find."""
    written = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[]=.]""")
    found = ((n, line.find(key) + 1) for n, line in enumerate(text.splitlines(), start=1) if written.match(line))
    return next(found, (1, 1))
