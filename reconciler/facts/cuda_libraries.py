"""cuDNN, NCCL and the CUDA runtime: every copy on a node, and which one the loader gives to torch of each environment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answered, raw
from reconciler.facts.live import About, LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Part, Raw, Unknown, Value

_KIND = re.compile(r"lib(nccl|cudnn|cudart)(?:-[0-9a-f]+)?\.so(?:\.([0-9][0-9.]*))?$")
_WHEEL = re.compile(r"/(nvidia_[A-Za-z0-9_]+)-([^/]+)\.dist-info$")
_KINDS = ("nccl", "cudnn", "cudart")


@dataclass(frozen=True, slots=True)
class SystemCopy:
    """One entry of the loader's cache. `real`: the file itself, whose name usually ends in the whole version."""

    name: str
    path: str
    real: str
    version: Fact[str]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The file that the loader maps into torch's process, and the version that its own function says.

    `parts`: what cuDNN opened to answer. An LD_LIBRARY_PATH can put parts of another cuDNN under the right libcudnn.so: then the
    version is that of the parts, and torch refuses to work.
    """

    path: str
    version: Fact[str]
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InEnvironment:
    """`wheels`: version by name of NVIDIA's wheels. `copies`: all files, of wheels and of torch itself.

    `loaded` by kind (nccl, cudnn, cudart); Absent(NotLinked) where torch does not ask for it (linked statically, or built without),
    Absent(NoCudaBuild), Absent(NotInstalled) where there is no torch, Unknown(NotFoundByLoader) where torch could not start.
    """

    torch: Fact[str]
    wheels: dict[str, str]
    copies: tuple[str, ...]
    loaded: dict[str, Fact[Loaded]]


@dataclass(frozen=True, slots=True)
class CudaLibraries:
    """`library_path`: the LD_LIBRARY_PATH that was asked with. A job that sets another, or LD_PRELOAD, may load another copy."""

    system: Fact[tuple[SystemCopy, ...]]
    environments: dict[str, InEnvironment]


def spelled(kind: str, number: int) -> Fact[str]:
    """A version number as NVIDIA's headers build it, as text.

    nccl.h: 22907 is 2.29.7, up to 2.8 2804 is 2.8.4. cudnn_version.h: 92000 is 9.20.0, up to 8 8902 is 8.9.2.
    cuda_runtime_api.h: 13000 is 13.0.
    """
    if number <= 0:
        return Unknown("OutOfRange", str(number))
    if kind == "cudart":
        return Value(f"{number // 1000}.{number % 1000 // 10}")
    large = 10_000 if number >= 10_000 else 1000
    return Value(f"{number // large}.{number % large // 100}.{number % 100}")


def _version(kind: str, told: Any) -> Fact[str]:
    if isinstance(told, int) and not isinstance(told, bool):
        return spelled(kind, told)
    fields = answered.mapping(told)
    return Unknown("NotLoadable", raw.clean(str(fields["said"]))) if "said" in fields else Unknown("NotAnswered")


def _copy(found: Any) -> SystemCopy | None:
    cells = answered.items(found)
    if len(cells) != 3 or not all(isinstance(cell, str) for cell in cells):
        return None
    kind = _KIND.search(cells[2])
    whole = kind[2] if kind and kind[2] and "." in kind[2] else ""
    return SystemCopy(cells[0], cells[1], cells[2], Value(whole) if whole else Unknown("NotInName"))


def parse_system(fields: Mapping[str, Any]) -> Fact[tuple[SystemCopy, ...]]:
    """Absent(NotInstalled) where the cache names none."""
    error = fields.get("ldconfig")
    if error:
        return answered.failure(error, "NotInstalled") if error != "missing" else Unknown("NoLdconfig")
    found = tuple(copy for copy in map(_copy, answered.items(fields.get("system"))) if copy)
    return Value(found) if found else Absent("NotInstalled")


def _loaded(fields: Mapping[str, Any]) -> dict[str, Fact[Loaded]]:
    """One answer for each kind."""
    if fields.get("torch") is None:
        return dict.fromkeys(_KINDS, Absent("NotInstalled"))
    if fields.get("cuda") is not True:
        return dict.fromkeys(_KINDS, Absent("NoCudaBuild"))
    said = answered.mapping(fields.get("loaded"))
    if said.get("error") or not isinstance(said.get("found"), Mapping):
        return dict.fromkeys(_KINDS, answered.failure(said.get("error"), "NoInterpreter"))
    if said.get("status") != 0:
        return dict.fromkeys(_KINDS, Unknown("LoaderFailed", raw.clean(str(said.get("err", "")))))
    asked = answered.mapping(said.get("asked"))
    versions, mapped = answered.mapping(asked.get("told")), answered.items(asked.get("mapped"))
    found: dict[str, Fact[Loaded]] = dict.fromkeys(_KINDS, Absent("NotLinked"))
    for name, path in said["found"].items():
        kind = _KIND.search(name)
        if kind and isinstance(path, str):
            also = tuple(str(one) for one in mapped if f"lib{kind[1]}_" in str(one))
            found[kind[1]] = Value(Loaded(path, _version(kind[1], versions.get(path)), also))
        elif kind:
            found[kind[1]] = Unknown("NotFoundByLoader", raw.clean(name, 80))
    return found


def parse_environment(found: Any) -> InEnvironment:
    fields = answered.mapping(found)
    wheels = {}
    for path in answered.items(fields.get("wheels")):
        if wheel := _WHEEL.search(str(path)):
            wheels[wheel[1].replace("_", "-")] = wheel[2]
    return InEnvironment(
        torch=answered.text(fields.get("torch"), "NotInstalled"),
        wheels=wheels,
        copies=tuple(str(path) for path in answered.items(fields.get("copies"))),
        loaded=_loaded(fields),
    )


def parse(raws: tuple[Raw, ...]) -> Fact[CudaLibraries]:
    found = raw.fragment(raws[0])
    if not isinstance(found, Value):
        return found
    fields = answered.mapping(found.value)
    if not isinstance(fields.get("environments"), Mapping):
        return Unknown("UnexpectedAnswer")
    environments = {path: parse_environment(one) for path, one in fields["environments"].items()}
    return Value(CudaLibraries(parse_system(fields), environments))


def parts(about: About) -> tuple[Part, ...]:
    arguments = {"patterns": about.environments, "prefixes": ("/usr",), "library_path": about.library_path}
    return (Ask("libraries", json.dumps(arguments), 60.0),)


FACT = LiveFact("cuda-libraries", parts, parse, slow=True)
