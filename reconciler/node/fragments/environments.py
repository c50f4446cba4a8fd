"""Python environments: the interpreter of each, asked as nobody, and what is installed where it searches."""

import glob
import json
import os
import re
import sys
from typing import Any, Dict, Optional

from reconciler.node.work import CODES, head, run_apart

# -I and -B: nothing of a user or of this directory is in the answer, and nothing is written by looking
ASK = (
    "import json,platform,sys;print(json.dumps(dict(path=sys.path,version=platform.python_version(),"
    "implementation=sys.implementation.name,prefix=sys.prefix,base=sys.base_prefix)))"
)
DEADLINE = 10.0
HEAD = 16 << 10
LIMIT = 1 << 20
_HEADER = re.compile(r"^(name|version)[ \t]*:[ \t]*(.*?)[ \t\r]*$", re.IGNORECASE | re.MULTILINE)
_BLANK = re.compile(r"^[ \t\r]*$", re.MULTILINE)


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`patterns`: of directories of environments; `interpreters`: paths, empty for the one that runs this program.

    -> {"names": {name: real path}, "environments": {real path: {...}}}: see _environment. What two names share is read once.
    """
    names: Dict[str, str] = {}
    for pattern in arguments["patterns"]:
        names.update((path, os.path.realpath(path)) for path in sorted(glob.glob(pattern)) if os.path.isdir(path))
    for path in (path or sys.executable for path in arguments["interpreters"]):
        if path and os.path.exists(path):
            names.update([_owner(path)])
    targets = sorted(set(names.values()))
    pythons = [target if os.path.isfile(target) else _python(target) for target in targets]
    said = dict(zip(targets, run_apart([[p or "", "-IBc", ASK] for p in pythons], targets, DEADLINE)))  # noqa: B905  (no strict= before Python 3.10)
    return {
        "names": names,
        "environments": {t: _environment(t, python, said[t]) for t, python in zip(targets, pythons)},  # noqa: B905
    }


def _owner(python: str) -> Any:
    """(name, real path) of the environment that an interpreter is part of, or of the interpreter where it is the system's."""
    prefix = os.path.dirname(os.path.dirname(os.path.abspath(python)))
    if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):
        return prefix, os.path.realpath(prefix)
    return python, os.path.realpath(python)


def _python(directory: str) -> Optional[str]:
    """The link counts, also one that leads nowhere."""
    for name in ("python", "python3"):
        path = os.path.join(directory, "bin", name)
        if os.path.lexists(path):
            return path
    return None


def _environment(target: str, python: Optional[str], said: Dict[str, Any]) -> Dict[str, Any]:
    """`cfg`: pyvenv.cfg; `python`: the interpreter, `real` without links; `said`: its answer; `sites`: directories in its order."""
    try:
        searched = [p for p in json.loads(said["out"].decode())["path"] if p]
    except (ValueError, KeyError, TypeError):
        searched = []
    if not searched:
        searched = sorted(glob.glob(os.path.join(target, "lib*", "python3*", "site-packages")))
    seen: Dict[str, str] = {}
    for path in searched:
        seen.setdefault(os.path.realpath(path), path)  # lib64 is a link to lib
    return {
        "cfg": None if os.path.isfile(target) else head(os.path.join(target, "pyvenv.cfg"), LIMIT),
        "python": python,
        "real": os.path.realpath(python) if python else None,
        "said": said["out"].decode("utf-8", "replace")[:LIMIT],
        "err": said["err"].decode("utf-8", "replace")[-400:],
        "status": said["status"],
        "error": "missing" if python and not os.path.exists(python) else said["error"],
        "sites": [_site(path) for path in seen.values() if os.path.isdir(path)],
    }


def _site(directory: str) -> Dict[str, Any]:
    """`found`: what is metadata by its name, in the directory's own order, as Python reads it; `left`: what pip moved away."""
    try:
        names = os.listdir(directory)
    except OSError as e:
        return {"path": directory, "error": CODES.get(e.errno or 0, "io")}
    found = [
        _distribution(directory, name) for name in names if name.endswith((".dist-info", ".egg-info", ".egg")) and name[0] != "~"
    ]
    links = [_link(directory, name) for name in names if name.endswith(".egg-link")]
    return {"path": directory, "found": found, "links": links, "left": sorted(name for name in names if name[0] == "~")}


def _distribution(directory: str, name: str) -> Dict[str, Any]:
    """Absent keys are files that are not there; of the metadata only name and version, the first of each."""
    path = os.path.join(directory, name)
    answer: Dict[str, Any] = {"entry": name}
    if os.path.isfile(path):  # distutils wrote the metadata as one file; a zipped egg holds it inside
        answer.update({"error": "zipped"} if name.endswith(".egg") else _headers(path))
        return answer
    if name.endswith(".egg"):
        path = os.path.join(path, "EGG-INFO")
    try:
        files = set(os.listdir(path))
        answer.update(_headers(os.path.join(path, "METADATA" if name.endswith(".dist-info") else "PKG-INFO")))
        if "RECORD" in files:
            answer["recorded"] = int(os.stat(os.path.join(path, "RECORD")).st_mtime)
    except OSError as e:
        return {"entry": name, "error": CODES.get(e.errno or 0, "io")}
    answer["requested"] = "REQUESTED" in files
    answer["empty"] = not files
    for key, file in (("installer", "INSTALLER"), ("direct_url", "direct_url.json")):
        if file in files:
            answer[key] = head(os.path.join(path, file), 64 << 10)
    return answer


def _headers(path: str) -> Dict[str, Any]:
    text = head(path, HEAD)
    for limit in (HEAD, LIMIT):
        text = head(path, limit) if limit > HEAD else text
        if not isinstance(text, str):
            return text  # type: ignore[no-any-return]
        blank = _BLANK.search(text)
        found: Dict[str, Any] = {}
        for key, value in _HEADER.findall(text[: blank.start()] if blank else text):
            found.setdefault(key.lower(), value)
        if len(found) == 2 or blank or len(text) < limit:
            break
    return found


def _link(directory: str, name: str) -> Dict[str, Any]:
    """`setup.py develop`: the first line is where the project is, whose .egg-info lies there."""
    text = head(os.path.join(directory, name), 64 << 10)
    lines = [line.strip() for line in text.split("\n") if line.strip()] if isinstance(text, str) else []
    if not lines:
        return {"entry": name, "error": "damaged"}
    target = os.path.normpath(os.path.join(directory, lines[0]))
    try:
        found = [_distribution(target, entry) for entry in sorted(os.listdir(target)) if entry.endswith(".egg-info")]
    except OSError as e:
        return {"entry": name, "target": target, "error": CODES.get(e.errno or 0, "io")}
    return {"entry": name, "target": target, "found": found}
