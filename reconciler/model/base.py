"""What the manifest kinds share: the closed base class, the ways to leave a block empty, and which keys stand where."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from reconciler.model.problem import Path


def about(default: Any, words: str, **constraints: Any) -> Any:
    """A field with the sentence that the JSON Schema, and so the editor, shows."""
    return Field(default, description=words, **constraints)


class Model(BaseModel):
    """A block of a manifest: camelCase keys, unknown ones refused, never changed once read.

    `later` names keys of the language that this version does not act on: refused as unknown, and said to be so.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)
    later: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def keys(cls) -> dict[str, str]:
        """YAML key -> name of the field, in the order of the class."""
        return {field.alias or name: name for name, field in cls.model_fields.items()}


class OrEmpty:
    """`gpu01:` alone is a node without further words: null stands for an empty block."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(lambda v: {} if v is None else v, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core), {"type": "null"}]}


def model_at(root: type[Model], path: Path) -> type[Model] | None:
    """The class of the block at `path` of a document of class `root`; None where there is no block of ours."""
    here: Any = root
    for step in path:
        here = next((inner for inner in _inside(here, step)), None)
    return next((c for c in _alternatives(here) if isinstance(c, type) and issubclass(c, Model)), None)


def _inside(annotation: Any, step: str | int) -> Iterator[Any]:
    for kind in _alternatives(annotation):
        if isinstance(kind, type) and issubclass(kind, Model):
            if (name := kind.keys().get(str(step))) is not None:
                yield kind.model_fields[name].annotation
        elif get_origin(kind) is dict:
            yield get_args(kind)[1]


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The types that a value may have: unions and annotations opened."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _alternatives(member)
    else:
        yield annotation
