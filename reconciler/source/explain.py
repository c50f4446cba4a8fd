"""What pydantic finds wrong with a document, as problems of the language: codes, places, near names."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from reconciler.model.base import Model, model_at
from reconciler.model.problem import Path
from reconciler.source.parse import Document
from reconciler.source.report import Data, Report

_BLOCKS = ("dict_type", "model_type", "model_attributes_type", "mapping_type")


def explain(document: Document, kind: type[Model], caught: ValidationError, report: Report) -> None:
    """Report each error of `caught`, which says why `document` is no `kind`."""
    for error in caught.errors(include_url=False):
        loc: Path = error["loc"]
        at_key = bool(loc) and loc[-1] == "[key]"
        if error["type"] == "extra_forbidden":
            _unknown_key(document, kind, loc, report)
        elif error["type"] == "missing":
            report.say(document.value(loc), "missing-key", found=str(loc[-1]))
        elif at_key:
            path = loc[:-1]
            code, data = _meaning(error, str(loc[-2]), report)
            report.say(document.key(path), code, path, data=data)
        else:
            code, data = _meaning(error, error["input"], report)
            report.say(document.value(loc), code, loc, data=data)


def _unknown_key(document: Document, kind: type[Model], loc: Path, report: Report) -> None:
    block, key = model_at(kind, loc[:-1]) or kind, str(loc[-1])
    code = "key-not-yet" if key in block.later else "unknown-key"
    report.say(document.key(loc), code, data=report.choice(key, block.keys()))


def _meaning(error: ErrorDetails, found: Any, report: Report) -> tuple[str, Data]:
    """Code and data of an error that is about a value (or a key of a map)."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "literal_error":
        return "one-of", report.choice(_text(found), re.findall(r"'([^']*)'", context["expected"]))
    if kind == "too_short":
        return "empty-block", {}
    if found is None:
        return "is-empty", {}
    if kind == "tuple_type":
        return "not-a-list", {"found": _text(found)}
    if kind in _BLOCKS:
        return "not-a-block", {} if isinstance(found, list) else {"found": _text(found)}
    if isinstance(found, dict | list) and kind != "versions-by-tier":
        return "not-text", {"block": "mapping" if isinstance(found, dict) else "list"}
    return kind, {"found": _text(found), **context}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{...}"
    return "[...]" if isinstance(value, list) else str(value)
