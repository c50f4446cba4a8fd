"""The JSON Schema of the manifest language, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from reconciler.model.manifest import Manifest


def json_schema() -> dict[str, Any]:
    """A draft 2020-12 schema of one document of any kind.

    It takes what an editor's YAML makes of a value: a version such as 3.10 may be a number there. What needs more than
    one value to be judged (references, host lists) is left to `reconcile validate`.
    """
    schema = TypeAdapter[Any](Manifest).json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "reconcile/v1", **schema}
