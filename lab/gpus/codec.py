"""The state as JSON and back: strict, every mistake with its path and the nearest right name. Pure."""

import json
import types
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, Union, get_args, get_origin

from lab.errors import UsageError, nearest
from lab.gpus.kernel_log import XIDS
from lab.gpus.products import PRODUCTS
from lab.gpus.state import COMPUTE_MODES, DRIVER_FAULTS, READINGS, THROTTLES, Gpu, NodeState

T = TypeVar("T")
_CHOICES: dict[str, tuple[str, ...]] = {
    "product": tuple(PRODUCTS), "compute_mode": COMPUTE_MODES, "driver_fault": DRIVER_FAULTS, "throttle": THROTTLES,
    "unreadable": READINGS, "kind": ("C", "G", "C+G"),
}  # fmt: skip


def encode(value: Any) -> Any:
    """Plain values for JSON of a dataclass."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [encode(each) for each in value]
    return dict(value) if isinstance(value, dict) else value


def to_json(state: NodeState) -> str:
    return json.dumps(encode(state), indent=1) + "\n"


def from_json(text: str) -> NodeState:
    """The state in `text`; UsageError where it is none."""
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise UsageError(f"GPU state is not JSON: {error}") from error
    state: NodeState = decode(NodeState, raw, "")
    check(state)
    return state


def decode(kind: Any, raw: Any, path: str) -> Any:
    """`raw` as a `kind` (dataclass, tuple, dict, optional or plain); UsageError names the path of what is wrong."""
    origin = get_origin(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, raw, path)
    if origin is tuple:
        if not isinstance(raw, list):
            raise UsageError(f"{path}: a list is expected, found {json.dumps(raw)}")
        return tuple(decode(get_args(kind)[0], each, f"{path}.{at}") for at, each in enumerate(raw))
    if origin is dict:
        if not isinstance(raw, dict):
            raise UsageError(f"{path}: an object is expected, found {json.dumps(raw)}")
        return {key: decode(get_args(kind)[1], each, f"{path}.{key}") for key, each in raw.items()}
    if origin in (Union, types.UnionType):
        return None if raw is None else decode(next(a for a in get_args(kind) if a is not type(None)), raw, path)
    return _plain(kind, raw, path)


def _dataclass(kind: type[T], raw: Any, path: str) -> T:
    if not isinstance(raw, dict):
        raise UsageError(f"{path or 'state'}: an object is expected, found {json.dumps(raw)[:80]}")
    known = {f.name: f.type for f in fields(kind)}  # type: ignore[arg-type]
    where = f"{path}." if path else ""
    for name in raw:
        if name not in known:
            raise UsageError(f"{where}{name}: no such field; {nearest(name, known)}")
    try:
        return kind(**{name: decode(known[name], each, f"{where}{name}") for name, each in raw.items()})
    except TypeError as error:  # a field without default is missing
        raise UsageError(f"{path or 'state'}: {error}") from error


def _plain(kind: type, raw: Any, path: str) -> Any:
    if kind is float and type(raw) is int:
        return float(raw)
    if type(raw) is not kind:  # a bool is no int here
        raise UsageError(f"{path}: {kind.__name__} is expected, found {json.dumps(raw)}")
    last = [part for part in path.split(".") if not part.isdigit()][-1:]
    allowed = _CHOICES.get(last[0]) if last else None
    if allowed and raw not in allowed:
        raise UsageError(f"{path}: {raw!r}; {nearest(str(raw), allowed)}")
    return raw


def check(state: NodeState) -> None:
    """What no single field can say: addresses and identities are unique, links name what is there."""
    for name in ("bus", "uuid", "serial"):
        seen = [getattr(device, name) for device in state.gpus]
        if len(set(seen)) != len(seen):
            raise UsageError(f"gpus: two have the same {name}")
    for at, gpu in enumerate(state.gpus):
        for number in gpu.xids:
            if number not in XIDS:
                raise UsageError(f"gpus.{at}.xids: no text for Xid {number}; allowed: {', '.join(map(str, XIDS))}")
    names = [f"GPU{at}" for at in range(len(state.gpus))] + [f"NIC{at}" for at in range(len(state.nics))]
    for pair in state.links:
        first, dash, second = pair.partition("-")
        if not dash or first not in names or second not in names:
            raise UsageError(f"links.{pair}: GPU0-GPU1 or GPU0-NIC0 is expected; there are {', '.join(names)}")


def assign(state: NodeState, path: str, raw: Any) -> NodeState:
    """The state with one value replaced: `gpus.5.lost` and a value as in JSON. Checked as a whole."""
    plain = encode(state)
    at: Any = plain
    *parents, last = path.split(".")
    for depth, part in enumerate([*parents, last]):
        here = ".".join([*parents, last][: depth + 1])
        key: Any = _index(at, part, here) if isinstance(at, list) else part
        if isinstance(at, dict) and part not in at and here.split(".")[-2:-1] not in (["links"], ["counters"]):
            raise UsageError(f"{here}: no such field; {nearest(part, at)}")
        if not isinstance(at, dict | list):
            raise UsageError(f"{here}: {'.'.join(parents)} is one value, without parts")
        if depth == len(parents):
            at[key] = raw
        else:
            at = at[key]
    changed: NodeState = decode(NodeState, plain, "")
    check(changed)
    return changed


def _index(rows: list[Any], part: str, path: str) -> int:
    if part.isdigit() and int(part) < len(rows):
        return int(part)
    raise UsageError(f"{path}: a number from 0 to {len(rows) - 1} is expected" if rows else f"{path}: the list is empty")


def with_gpu(state: NodeState, index: int, gpu: Gpu) -> NodeState:
    """The state with one GPU replaced."""
    return replace(state, gpus=(*state.gpus[:index], gpu, *state.gpus[index + 1 :]))


def parse_setting(text: str) -> tuple[str, Any]:
    """`gpus.5.lost=true` -> path and value; what is not JSON is a text."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise UsageError(f"{text!r}: PATH=VALUE is expected, such as gpus.5.lost=true")
    try:
        return path, json.loads(value)
    except ValueError:
        return path, value
