"""CUDA toolkits of a node: trees, the one that /usr/local/cuda means, compilers, and what names them for users and the loader."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answered, nvcc, raw
from reconciler.facts.live import About, LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Part, Raw, Run, Unknown, Value

_LINK = "/usr/local/cuda"
_TREES = ("/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", "/opt/cuda-*")
_FILES = ("/etc/profile.d/*cuda*.sh", "/etc/ld.so.conf.d/*")
_TEXT_VERSION = re.compile(r"CUDA Version ([0-9][0-9.]{1,20})")


@dataclass(frozen=True, slots=True)
class Tree:
    """`version`: of version.json or version.txt, of which NVIDIA's packages have the first and some images neither."""

    version: Fact[str]
    nvcc: Fact[nvcc.Nvcc]


@dataclass(frozen=True, slots=True)
class Cuda:
    """`names`: the real path of each name, Absent(DanglingLink) for one that leads nowhere. `trees` by real path.

    `current`: what /usr/local/cuda means. `on_path`: the nvcc of a login shell of a user without settings of its own.
    `profile`: the lines of /etc/profile.d/*cuda*.sh that do something. `loader`: the lines of each file of ld.so.conf.d that names
    CUDA.
    """

    names: dict[str, Fact[str]]
    current: Fact[str]
    trees: dict[str, Tree]
    on_path: Fact[str]
    profile: dict[str, Fact[tuple[str, ...]]]
    loader: dict[str, Fact[tuple[str, ...]]]


def parse_version(as_json: Fact[str], as_text: Fact[str]) -> Fact[str]:
    """version.json `cuda.version`, or the line of version.txt (CUDA 11.0 and before)."""
    if isinstance(as_json, Value):
        try:
            found = answered.mapping(answered.mapping(json.loads(as_json.value)).get("cuda")).get("version")
        except (ValueError, RecursionError):
            found = None
        return Value(found) if isinstance(found, str) and found else Unknown("NoVersionLine", raw.clean(as_json.value, 80))
    if isinstance(as_json, Unknown):
        return as_json
    if not isinstance(as_text, Value):
        return as_text
    line = _TEXT_VERSION.search(as_text.value)
    return Value(line[1].rstrip(".")) if line else Unknown("NoVersionLine", raw.clean(as_text.value, 80))


def parse_nvcc(found: Any) -> Fact[nvcc.Nvcc]:
    """Absent(NotInstalled) for a tree without a compiler; Unknown for one that does not run."""
    if found is None:
        return Absent("NotInstalled")
    fields = answered.mapping(found)
    if fields.get("error"):
        return answered.failure(fields["error"], "DanglingLink")
    if fields.get("status") != 0:
        return Unknown("CommandFailed", raw.clean(str(fields.get("err", ""))))
    return nvcc.parse(str(fields.get("out", "")))


def _tree(found: Any) -> Tree:
    fields = answered.mapping(found)
    version = parse_version(answered.text(fields.get("json")), answered.text(fields.get("txt")))
    return Tree(version, parse_nvcc(fields.get("nvcc")))


def _lines(content: Any) -> Fact[tuple[str, ...]]:
    text = answered.text(content)
    if not isinstance(text, Value):
        return text
    return Value(tuple(line.strip() for line in text.value.splitlines() if line.strip() and not line.lstrip().startswith("#")))


def _files(files: Mapping[str, Any], directory: str, word: str = "") -> dict[str, Fact[tuple[str, ...]]]:
    found = {path: _lines(content) for path, content in files.items() if path.startswith(directory)}
    return {path: lines for path, lines in found.items() if not isinstance(lines, Value) or word in " ".join(lines.value).lower()}


def parse_on_path(said: Raw) -> Fact[str]:
    """The last line of the shell, which profile scripts may have talked before; Absent(NotInPath)."""
    text = raw.command_text(said)
    if not isinstance(text, Value):
        return Unknown("NoShell") if isinstance(text, Absent) else text
    last = text.value.strip().rpartition("\n")[2]
    if last == "nvcc=":
        return Absent("NotInPath")
    return Value(last[5:]) if last.startswith("nvcc=/") else Unknown("UnexpectedWord", raw.clean(last, 120))


def parse(raws: tuple[Raw, ...]) -> Fact[Cuda]:
    """Absent(NoCudaTree) where there is none and no nvcc on the PATH."""
    found, shell = raw.fragment(raws[0]), parse_on_path(raws[1])
    if not isinstance(found, Value):
        return found
    fields = answered.mapping(found.value)
    if not all(isinstance(fields.get(key), Mapping) for key in ("names", "trees", "files")):
        return Unknown("UnexpectedAnswer")
    names = {name: answered.text(target, "DanglingLink") for name, target in fields["names"].items()}
    if not names and not isinstance(shell, Value):
        return Absent("NoCudaTree")
    return Value(
        Cuda(
            names=names,
            current=names.get(_LINK, Absent("NoSuchFile")),
            trees={path: _tree(tree) for path, tree in fields["trees"].items()},
            on_path=shell,
            profile=_files(fields["files"], "/etc/profile.d/"),
            loader=_files(fields["files"], "/etc/ld.so.conf.d/", "cuda"),
        )
    )


def parts(about: About) -> tuple[Part, ...]:
    """The shell is nobody's: it reads what all users get and cannot write. It ends with 0, or root would be asked."""
    shell = Run(("bash", "-lc", 'echo "nvcc=$(command -v nvcc)"; exit 0'), 5.0, unprivileged=True)
    return (Ask("cuda", json.dumps({"patterns": _TREES, "files": _FILES}), 15.0), shell)


FACT = LiveFact("cuda", parts, parse, slow=True)
