"""Headlines of the facts of software: packages, repositories, Python, CUDA, metrics, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.seen import is_absent, is_unknown
from reconciler.render.headlines.words import counted, some, there, word
from reconciler.render.text import count, safe


def _with(first: str, *notes: tuple[str, Any]) -> str:
    """What was found, then only those notes that have something to say: `held: tmux, vim`."""
    return "; ".join([first, *(f"{label}: {some(list(names))}" for label, names in notes if names)])


def _rpm(value: Any) -> str:
    notes = (("several versions", value["several"]), ("twice the same", value["repeated"]))
    return _with(f"{count(value['count'], 'package')}, {count(len(value['keys']), 'key')}", *notes)


def _deb(value: Any) -> str:
    return _with(count(value["count"], "package"), ("held", value["held"]), ("half installed", value["half"]))


def _repositories(value: Any) -> str:
    parts = []
    dnf, apt = value["dnf"], value["apt"]
    if not is_absent(dnf):
        enabled = [] if is_unknown(dnf) else [r["id"] for r in dnf["repositories"] if r["enabled"] is True]
        parts.append(f"dnf {word(dnf) if is_unknown(dnf) else some(enabled) or 'none'}")
    if not is_absent(apt):
        hosts = [] if is_unknown(apt) else [uri for s in apt if s["enabled"] for uri in s["uris"]]
        parts.append(f"apt {word(apt) if is_unknown(apt) else some(list(dict.fromkeys(hosts))) or 'none'}")
    return _with(", ".join(parts) or "none", ("not understood", list(value["unread"])))


def _holds(value: Any) -> str:
    locks, held = (value[key] for key in ("locks", "held"))
    notes = (
        ("dnf locks", [] if not there(locks) else locks),
        ("dnf excludes", list(dict.fromkeys(name for names in value["excludes"].values() for name in names))),
        ("dpkg holds", [] if not there(held) else held),
        ("apt pins", [f"{pin['package']} {word(pin['priority'])}" for pin in value["pins"]]),
        ("unknown", [name for name, found in (("dnf locks", locks), ("dpkg holds", held)) if is_unknown(found)]),
        ("not understood", list(value["unread"])),
    )
    said = [f"{label}: {some(list(names))}" for label, names in notes if names]
    return "; ".join(said) or "nothing is held"


def _environment(name: str, value: Any) -> str:
    interpreter = value["interpreter"]
    version = word(interpreter if not there(interpreter) else interpreter["version"])
    damaged = f", {len(value['damaged'])} damaged" if value["damaged"] else ""
    shadowed = f", {len(value['shadowed'])} shadowed" if value["shadowed"] else ""
    return f"{safe(name, 40)} Python {version} {count(len(value['distributions']), 'distribution')}{damaged}{shadowed}"


def _environments(value: Any) -> str:
    return "; ".join(_environment(name, value["environments"][real]) for name, real in value["names"].items())


def _cuda(value: Any) -> str:
    trees = []
    for path, tree in value["trees"].items():
        nvcc = tree["nvcc"]
        said = word(tree["version"]) if not is_absent(tree["version"]) else word(nvcc if not there(nvcc) else nvcc["release"])
        trees.append(f"{said} in {safe(path, 40)}" + (" without nvcc" if is_absent(nvcc) else ""))
    return f"{', '.join(trees) or 'no tree'}; current {word(value['current'])}; nvcc on PATH {word(value['on_path'])}"


def _loaded(value: Any) -> str:
    """`?` and `none` for what is not known and not there."""
    kinds = ((kind, value["loaded"][kind]) for kind in ("nccl", "cudnn", "cudart"))
    return ", ".join(f"{kind} {word(found if not there(found) else found['version'])}" for kind, found in kinds)


def _libraries(value: Any) -> str:
    system = value["system"]
    files = [] if not there(system) else sorted({copy["real"].rpartition("/")[2] for copy in system})
    own = f"system {some(files) if files else word(system)}"
    torches = {path: one for path, one in value["environments"].items() if not is_absent(one["torch"])}
    return "; ".join([own, *(f"{safe(path, 40)} torch loads {_loaded(one)}" for path, one in torches.items())])


def _torch(value: Any) -> str:
    return counted(build if not there(build) else build["version"] for build in value.values())


def _dcgm(value: Any) -> str:
    return f"{count(value['gpu_count'], 'GPU')}, {count(len(value['metrics']), 'metric')}, driver {word(value['driver'])}"


def _config(value: Any) -> str:
    unknown = [path for path, one in value.items() if not there(one["sha256"])]
    return _with(count(len(value), "file"), ("not read", unknown))


HEADLINES: Mapping[str, Callable[[Any], str]] = {
    "packages-rpm": _rpm,
    "packages-deb": _deb,
    "repositories": _repositories,
    "holds": _holds,
    "python-environments": _environments,
    "cuda": _cuda,
    "cuda-libraries": _libraries,
    "torch": _torch,
    "dcgm": _dcgm,
    "config": _config,
}
