"""What a node is: its name, address, face and hardware. Pure."""

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from lab.errors import UsageError, nearest

Face = Literal["el9", "debian"]
_FACES: dict[str, tuple[Face, int, int]] = {  # prefix: face, address of number 0, highest number
    "gpu": ("el9", 10, 80),
    "deb": ("debian", 100, 80),
}
_OPTIONS = ("mem", "size", "disk", "bind", "bind-ro")
_NAME = re.compile(r"([a-z]+)(\d{2})")
_SIZE = re.compile(r"(\d+)([MG])")


@dataclass(frozen=True)
class NodeSpec:
    """One node. `mem` and `size` (of the disk) are like 512M or 2G; binds are SRC:DST."""

    name: str
    mem: str = "1G"
    size: str = "2G"
    disk: Literal["tmpfs", "host"] = "tmpfs"
    bind: tuple[str, ...] = ()
    bind_ro: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _split(self.name)
        for size in (self.mem, self.size):
            size_bytes(size)

    @classmethod
    def from_json(cls, text: str) -> "NodeSpec":
        raw: Any = json.loads(text)
        return cls(**{**raw, "bind": tuple(raw["bind"]), "bind_ro": tuple(raw["bind_ro"])})

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @property
    def face(self) -> Face:
        return _FACES[_split(self.name)[0]][0]

    @property
    def host_number(self) -> int:
        """The last octet of the node's address: gpu01 is 11, deb01 is 101."""
        prefix, number = _split(self.name)
        return _FACES[prefix][1] + number


def _split(name: str) -> tuple[str, int]:
    match = _NAME.fullmatch(name)
    if match and match[1] in _FACES and 1 <= int(match[2]) <= _FACES[match[1]][2]:
        return match[1], int(match[2])
    raise UsageError(f"node name {name!r}: gpu01 to gpu80 (CentOS's face) or deb01 to deb80 (Debian)")


def size_bytes(text: str) -> int:
    """512M -> 536870912."""
    match = _SIZE.fullmatch(text)
    if not match:
        raise UsageError(f"size {text!r}: a number and M or G, such as 512M or 6G")
    return int(match[1]) << (20 if match[2] == "M" else 30)


def parse_option(text: str) -> NodeSpec:
    """gpu01:mem=6G,disk=host,bind=/data:/data -> NodeSpec."""
    name, _, rest = text.partition(":")
    spec = NodeSpec(name)
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"node option {pair!r} of {name}: KEY=VALUE is expected")
        spec = _with(spec, key, value)
    return spec


def _with(spec: NodeSpec, key: str, value: str) -> NodeSpec:
    if key == "mem":
        return replace(spec, mem=value)
    if key == "size":
        return replace(spec, size=value)
    if key == "disk":
        if value not in ("tmpfs", "host"):
            raise UsageError(f"disk={value!r} of {spec.name}: tmpfs or host")
        return replace(spec, disk="host" if value == "host" else "tmpfs")
    if key in ("bind", "bind-ro"):
        if not all(part.startswith("/") for part in value.partition(":")[::2]):
            raise UsageError(f"{key}={value!r} of {spec.name}: /SOURCE:/TARGET is expected")
        if key == "bind":
            return replace(spec, bind=(*spec.bind, value))
        return replace(spec, bind_ro=(*spec.bind_ro, value))
    raise UsageError(f"unknown option {key!r} of {spec.name}; {nearest(key, _OPTIONS)}")


def default_names(gpu: int, debian: int) -> list[str]:
    """gpu01 .. and deb01 .. , in this order."""
    return [f"gpu{i:02}" for i in range(1, gpu + 1)] + [f"deb{i:02}" for i in range(1, debian + 1)]
