"""Python environments as builds: what is there, what is linked, whether it is as it was sealed, who uses it."""

import glob
import json
import os
import re
import shutil
import sys
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

from reconciler.node.work import CODES, ENVIRONMENT

SEAL = ".sealed.json"  # written last: a build without it never counts
REJECTED = "rejected.json"
BY_NAME = " by name"  # what such a process imports later comes from where the name leads by then
HOLDS = ".holds"  # BUILD.holds/: while a file is in it, somebody needs the build
MOUNTS = "/proc/self/mountinfo"
TICKS = 1.0  # seconds: how coarse the stamps of links and processes are, with room to spare
CLOCKS_APART = 60.0  # seconds: what a process started sooner after the link moved uses cannot be told on a shared mount
SHOWN = 3
_ID = re.compile(r"([0-9a-f]{12})-([0-9]+)")


def home(path: str, name: str) -> str:
    """Where the builds of an environment are."""
    return os.path.join(path, name + ".d")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def mounted(path: str) -> bool:
    """Whether a file system is mounted just there. Raises OSError where it does not answer."""
    try:
        os.stat(os.path.join(path, "."))  # one that is mounted at the first visit is mounted now
    except (FileNotFoundError, NotADirectoryError):
        return False
    real, kind = os.fsencode(os.path.realpath(path)), b""
    with open(MOUNTS, "rb") as f:
        for line in f:  # proc(5): the fifth word is the point, the type stands behind the dash; the last one hides the others
            front, _, back = line.partition(b" - ")
            point = re.sub(rb"\\([0-3][0-7]{2})", lambda m: bytes([int(m.group(1), 8)]), front.split(b" ")[4])
            kind = back.split(b" ")[0] if point == real else kind
    return kind not in (b"", b"autofs")


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """A file that was written whole by us; None where it is missing or is not one. Raises OSError where that cannot be told."""
    try:
        with open(path) as f:
            found = json.load(f)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def builds(folder: str) -> List[str]:
    """Names of all builds, also of those that were never sealed; oldest first of each lock."""
    try:
        found = [match for match in map(_ID.fullmatch, os.listdir(folder)) if match]
    except FileNotFoundError:
        return []
    return [match.group(0) for match in sorted(found, key=lambda m: (m.group(1), int(m.group(2))))]


def linked(path: str, name: str) -> Dict[str, Any]:
    """`target`: the build that the environment's name leads to; or `error`: missing, or what stands there instead."""
    try:
        target = os.readlink(os.path.join(path, name))
    except FileNotFoundError:
        return {"error": "missing"}
    except OSError as e:
        return {"error": CODES.get(e.errno or 0, "not-a-link")}
    folder, build = os.path.split(target)
    return {"target": build} if folder == name + ".d" and _ID.fullmatch(build) else {"error": "not-ours"}


def files(build: str) -> Iterator[Tuple[str, int, int]]:
    """(path below the build, size, mtime in ns) of all but compiled code, which Python may write at any time."""
    pending = [build]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        pending.append(entry.path)
                elif entry.name != SEAL:
                    about = entry.stat(follow_symlinks=False)
                    yield entry.path[len(build) + 1 :], about.st_size, about.st_mtime_ns


def distributions(build: str) -> Dict[str, str]:
    """Canonical name -> version, by the folders that installers leave."""
    found = {}
    for place in glob.glob(os.path.join(glob.escape(build), "lib", "python*", "site-packages", "*.dist-info")):
        name, _, version = os.path.basename(place)[: -len(".dist-info")].partition("-")
        found[canonical(name)] = version
    return found


def damage(build: str, seal: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """What is not as it was sealed: `packages` name -> [sealed, found], and of files how many and the first of them."""
    sealed, found = seal["distributions"], distributions(build)
    packages = {n: [sealed.get(n), found.get(n)] for n in set(sealed) | set(found) if sealed.get(n) != found.get(n)}
    before = {path: (size, mtime) for path, size, mtime in seal["files"]}
    after = {path: (size, mtime) for path, size, mtime in files(build)}
    differing = sorted(path for path in set(before) | set(after) if before.get(path) != after.get(path))
    if not packages and not differing:
        return None
    return {"packages": packages, "files": len(differing), "first": differing[:SHOWN]}


def interpreter(series: str) -> Optional[str]:
    """The path of that Python; the one that runs this is taken where it has no name of its own."""
    found = shutil.which("python" + series, path=ENVIRONMENT["PATH"])
    if found is None and "%d.%d" % sys.version_info[:2] == series:
        return sys.executable
    return found


def pip_wheel(python: str, series: str) -> Optional[str]:
    """The wheel of pip that comes with a Python, for its ensurepip; Debian and Fedora keep it in a folder of its own."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(python)))
    places = [os.path.join(glob.escape(prefix), lib, "python" + series, "ensurepip", "_bundled") for lib in ("lib", "lib64")]
    found = [f for place in (*places, "/usr/share/python-wheels") for f in sorted(glob.glob(os.path.join(place, "pip-*.whl")))]
    return found[0] if found else None


def installer(series: str) -> Optional[str]:
    """uv, or pip, or None."""
    if shutil.which("uv", path=ENVIRONMENT["PATH"]):
        return "uv"
    python = interpreter(series)
    return "pip" if python and pip_wheel(python, series) else None


def wheels(wheelhouse: str, versions: Dict[str, str]) -> Dict[str, Any]:
    """Which distributions have no file in a folder. A URL is not asked: who installs will be told."""
    if "://" in wheelhouse:
        return {"missing": []}
    try:
        names = [name for name in os.listdir(wheelhouse) if name.endswith(".whl")]
    except OSError as e:
        return {"error": CODES.get(e.errno or 0, "io")}
    there = {(canonical(name.split("-")[0]), name.split("-")[1].lower()) for name in names if name.count("-") >= 4}
    return {"missing": sorted(n for n, v in versions.items() if (n, v.replace("-", "_").lower()) not in there)}


def _build(folder: str, name: str, judged: bool, sizes: bool) -> Dict[str, Any]:
    place = os.path.join(folder, name)
    seal = read_json(os.path.join(place, SEAL))
    about: Dict[str, Any] = {"sealed": seal is not None}
    if seal is not None:
        about.update(lock=seal.get("lock"), python=seal.get("python"), made=seal.get("made"))
        about["damage"] = damage(place, seal) if judged else None
    if sizes:
        about["bytes"] = sum(size for _, size, _ in files(place))
    return about


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`path`, `name`; `lock` (12 hex digits), `python` (a series), `versions` and `wheelhouse` of what is wanted.

    Only what is linked and what has the wanted lock is compared with its seal. With `sizes` all are, and the bytes of each are
    told. Without `judge` none is. Users are told where the link will move, with `sizes`, and where `users` asks for them.
    `shared`: where nothing is mounted at `path`, that is all that is told: what lies there is not what all see.
    """
    path, name = arguments["path"], arguments["name"]
    if arguments.get("shared") and not mounted(path):
        return {"mounted": False}
    folder, link, lock = home(path, name), linked(path, name), arguments.get("lock")
    sizes, judge = bool(arguments.get("sizes")), arguments.get("judge", True)
    meant = [b for b in builds(folder) if judge and (sizes or b == link.get("target") or b[:12] == lock)]
    found = {b: _build(folder, b, b in meant, sizes) for b in builds(folder)}
    answer: Dict[str, Any] = {"link": link, "builds": found, "rejected": read_json(os.path.join(folder, REJECTED))}
    usable = [b for b, about in found.items() if b[:12] == lock and about["sealed"] and not about["damage"]]
    if sizes or arguments.get("users") or (lock and link.get("target") not in usable):
        used = users(path, name)
        for build, about in found.items():
            about["users"] = sorted(used.get(build, ()))
    if lock and not usable:  # it has to be built: can it be?
        answer.update(python=interpreter(arguments["python"]), installer=installer(arguments["python"]))
        wheelhouse = arguments.get("wheelhouse")
        answer["wheels"] = wheels(wheelhouse, arguments["versions"]) if wheelhouse else None
    return answer


def users(path: str, name: str) -> Dict[str, List[str]]:
    """Build -> who needs it: `pid N`, `pid N by name`, or the name of a hold.

    A process uses a build that its program, folder, mapped files or arguments lie in. One that was started by the environment's
    name uses what is linked; before the link moved last, that was a build that cannot be told any more: then it uses every one.
    Where the builds are on a mount, another clock than this node's may say when that was.
    """
    folder, link = home(path, name), os.path.join(path, name)
    apart = CLOCKS_APART if mounted(path) else TICKS
    names, target = builds(folder), linked(path, name).get("target")
    found: Dict[str, List[str]] = {b: _holds(os.path.join(folder, b)) for b in names}
    try:
        moved = os.lstat(link).st_mtime
    except OSError:
        moved = 0.0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        said = _said(pid)
        mine = [b for b in names if (os.path.join(folder, b) + "/").encode() in said]
        how = ""
        if not mine and (link + "/").encode() in said:
            mine, how = names if _started(pid) < moved + apart else [b for b in names if b == target], BY_NAME
        for build in mine:
            found[build].append("pid " + pid + how)
    return found


def _holds(build: str) -> List[str]:
    try:
        return ["hold " + name for name in sorted(os.listdir(build + HOLDS))]
    except OSError:
        return []


def _said(pid: str) -> bytes:
    """Every path that the kernel knows of a process; nothing of one that has ended."""
    said = []
    for name in ("cwd", "exe"):
        try:
            said.append(os.fsencode(os.readlink("/proc/%s/%s" % (pid, name))) + b"/")
        except OSError:
            said.append(b"")  # a kernel thread has none, and another may have ended
    for name in ("maps", "cmdline"):
        try:
            with open("/proc/%s/%s" % (pid, name), "rb") as f:
                said.append(f.read())
        except OSError:
            said.append(b"")
    return b"\0".join(said)


def _started(pid: str) -> float:
    """Unix time; never, where the process has ended. The stamps of its folder say when somebody first looked, not when it began."""
    try:
        with open("/proc/%s/stat" % pid, "rb") as f:
            ticks = int(f.read().rpartition(b")")[2].split()[19])  # proc(5): field 22, and the second one ends with the parenthesis
    except OSError:
        return float("inf")
    with open("/proc/uptime") as f:
        return time.time() - float(f.read().split()[0]) + ticks / os.sysconf("SC_CLK_TCK")
