"""The one override rule: the nearest wins; maps merge key by key, everything else is replaced, null removes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from reconciler.model.base import Model
from reconciler.model.desired import Origin
from reconciler.model.problem import Path
from reconciler.source.parse import Document

_DEEPEST = 8  # layers that are kept on top of each other before they are made one


class Said(NamedTuple):
    """A value and where it is said. None removes what is said farther away; "" is a block without keys; a list is one value."""

    value: str | int | tuple[str, ...] | None
    document: Document
    path: Path

    @property
    def origin(self) -> Origin:
        """Where the value stands."""
        return self.document.value(self.path)


class Leaves(Mapping[Path, Said]):
    """What is said below one field: ("tmux",) of packages, ("/etc/motd", "mode") of files, () of a plain value.

    Where a nearer layer only adds, it is kept as `own` on top of `below`: a thousand nodes with a package each of their
    own then share the site's thousand packages. No path of `own` is in `below`. Read only once made.
    """

    __slots__ = ("below", "depth", "own")

    def __init__(self, own: dict[Path, Said], below: Leaves | None = None) -> None:
        self.own, self.below = own, below
        self.depth: int = below.depth + 1 if below else 0

    def __getitem__(self, path: Path) -> Said:
        layer: Leaves | None = self
        while layer is not None:
            if path in layer.own:
                return layer.own[path]
            layer = layer.below
        raise KeyError(path)

    def __iter__(self) -> Iterator[Path]:
        if self.below:
            yield from self.below
        yield from self.own

    def __len__(self) -> int:
        return len(self.own) + (len(self.below) if self.below else 0)


NOTHING = Leaves({})
Layer = dict[str, Leaves]  # by YAML key of the field; read only, since layers share what they do not change
Nulls = dict[tuple[int, Path], tuple[Said, bool]]  # each null met, and whether it removed anything anywhere


def flatten(block: Model, document: Document, at: Path, fields: Iterable[str]) -> Layer:
    """What `block`, which stands `at` a place of `document`, says of `fields` (YAML keys)."""
    keys, layer = block.keys(), Layer()
    for key in fields:
        if keys[key] in block.model_fields_set:
            own: dict[Path, Said] = {}
            _add(own, (), getattr(block, keys[key]), document, (*at, key))
            layer[key] = Leaves(own)
    return layer


def _add(leaves: dict[Path, Said], path: Path, value: object, document: Document, at: Path) -> None:
    if isinstance(value, Model):
        given = [(key, getattr(value, name)) for key, name in value.keys().items() if name in value.model_fields_set]
        if not given:
            leaves[path] = Said("", document, at)
    elif isinstance(value, dict):
        given = list(value.items())
    elif value is None or isinstance(value, str | int | tuple):
        leaves[path] = Said(value, document, at)
        return
    else:
        raise TypeError(f"no rule merges {type(value).__name__}")
    for key, inner in given:
        _add(leaves, (*path, key), inner, document, (*at, key))


def overlay(base: Layer, over: Layer, nulls: Nulls) -> Layer:
    """`base` with what `over` says; fields that it does not name are the same objects as in `base`."""
    if not over:
        return base
    return {**base, **{field: _merged(base.get(field, NOTHING), leaves, nulls) for field, leaves in over.items()}}


def _merged(base: Leaves, over: Leaves, nulls: Nulls) -> Leaves:
    adds = all(said.value is not None and path not in base for path, said in over.items())
    if adds and base.depth < _DEEPEST:
        return Leaves(over.own, base) if len(base) else over
    out = dict(base)
    for path, said in over.items():
        if said.value is not None:
            out[path] = said
            continue
        gone = [path] if path in out and len(path) == 1 else [p for p in out if p[: len(path)] == path]
        for old in gone:
            del out[old]
        key = (id(said.document), said.path)
        nulls[key] = (said, bool(gone) or (key in nulls and nulls[key][1]))
    return Leaves(out)
