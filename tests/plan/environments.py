"""What a node of a case says of its Python environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reconciler.model.desired import PythonEnvironmentSpec
from reconciler.model.fact import Raw
from tests.cases import raw

LOCKS = {letter: letter * 64 for letter in "abc"}


def spec(said: Mapping[str, Any]) -> PythonEnvironmentSpec:
    """An environment of the lock that is all a."""
    about = {name: said[name] for name in ("builder", "shared") if name in said}
    about["wheelhouse"] = said.get("wheelhouse", "/srv/wheels")
    versions, text = (("numpy", "2.1"), ("torch", "2.13.0+cpu")), "numpy==2.1 \\\n    --hash=sha256:0\n"
    return PythonEnvironmentSpec(said["environment"], "3.11", LOCKS["a"], text, versions, ("torch[opt]",), **about)


def answer(found: Mapping[str, Any]) -> Raw:
    """The fragment's answer."""
    if "raw" in found:
        return raw(found["raw"])
    if found.get("mounted") is False:
        return Raw(b'{"mounted": false}', status=0)
    link = {"target": found["link"]} if "link" in found else {"error": found.get("link_error", "missing")}
    about: dict[str, Any] = {"link": link, "builds": {b: _build(b, how) for b, how in found.get("builds", {}).items()}}
    gone = found.get("rejected")
    about["rejected"] = {"lock": LOCKS[gone], "by": "ada@desk", "at": 1.0} if gone else None
    for build, users in found.get("users", {}).items():
        about["builds"][build]["users"] = users
    if "needs" in found:
        about |= {"python": "/usr/bin/python3.11", "installer": "uv", "wheels": {"missing": []}, **found["needs"]}
    return Raw(json.dumps(about).encode(), status=0)


def _build(name: str, how: Any) -> dict[str, Any]:
    if how == "half":
        return {"sealed": False}
    number = float(name.rpartition("-")[2])
    damage = None if how == "whole" else how
    return {"sealed": True, "lock": LOCKS[name[0]], "python": "3.11", "made": number, "damage": damage}
