"""Make one build of a Python environment, or move the link: steps of an apply. Whatever cuts them off, no half build is linked."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List

from reconciler.node import state
from reconciler.node.fragments import builds
from reconciler.node.work import ENVIRONMENT

TAIL = 30  # lines of a program that failed
IMPORTS = 600  # seconds for importing every pinned distribution
CACHE = ".cache"

# Runs in the new environment. Names of what it imports go to stdout, so that a crash can be told whose it was.
CHECK = r"""
import importlib, json, sys
from importlib import metadata
def tops(found):
    listed = (found.read_text("top_level.txt") or "").split()
    if not listed:
        paths = [f.parts for f in found.files or ()]
        listed = {p[0] for p in paths if len(p) == 2 and p[1] == "__init__.py"}
        listed |= {p[0].split(".")[0] for p in paths if len(p) == 1 and p[0].endswith((".py", ".so"))}
    return sorted(name for name in listed if name.isidentifier() and not name.startswith("_"))
for name in json.load(sys.stdin):
    for module in tops(metadata.distribution(name)):
        print(name + ": import " + module, flush=True)
        importlib.import_module(module)
"""


class Failed(Exception):
    """A build that cannot be: what a person is told."""


def run(arguments: Dict[str, Any]) -> int:
    """`do`: build, switch or collect. Exit status; what went wrong is the end of stderr."""
    actions = {"build": _build, "switch": _switch_to, "collect": collect}
    try:
        actions[arguments["do"]](arguments)
    except (Failed, OSError) as e:
        sys.stderr.write("%s\n" % e)
        return 1
    return 0


def _build(arguments: Dict[str, Any]) -> None:
    began = time.monotonic()
    folder = builds.home(arguments["path"], arguments["name"])
    build = os.path.join(folder, arguments["build"])
    state.make_directories(folder, 0o755)
    _remove_halves(arguments)
    if builds.read_json(os.path.join(build, builds.SEAL)) is None:
        if os.path.exists(build):
            raise Failed("%s is in use, and not a whole build" % build)
        try:
            _make(build, folder, arguments)
        except BaseException:
            shutil.rmtree(build, ignore_errors=True)  # a full disk needs the room at once
            raise
        finally:
            shutil.rmtree(os.path.join(folder, CACHE), ignore_errors=True)
    switch(arguments["path"], arguments["name"], arguments["build"])
    print("linked after %.1f s" % (time.monotonic() - began))
    with _stage("compiled"):
        _compile(build)
    collect(arguments)


def _remove_halves(arguments: Dict[str, Any]) -> None:
    """Builds that were cut off; nobody else builds while this lease is held. One whose seal somebody took is left to its users."""
    path, name, spared = arguments["path"], arguments["name"], arguments["spared"]
    folder, link = builds.home(path, name), builds.linked(path, name).get("target")
    halves = [b for b in builds.builds(folder) if builds.read_json(os.path.join(folder, b, builds.SEAL)) is None]
    used = builds.users(path, name) if halves else {}
    for build in halves if spared is not None else ():
        if build != link and build not in spared and not used[build]:
            shutil.rmtree(os.path.join(folder, build))
    shutil.rmtree(os.path.join(folder, CACHE), ignore_errors=True)


def _make(build: str, folder: str, arguments: Dict[str, Any]) -> None:
    """The whole build at its final path, since an environment cannot be moved."""
    series, lock = arguments["python"], os.path.join(folder, arguments["lock"] + ".txt")
    base = builds.interpreter(series)
    if base is None:
        raise Failed("there is no python%s" % series)
    python = os.path.join(build, "bin", "python")
    with _stage("made"):
        _call([base, "-m", "venv", "--without-pip", build])
    with _stage("installed"):
        _install(python, base, lock, arguments, os.path.join(folder, CACHE))
    found, wanted = builds.distributions(build), set(arguments["versions"])
    if set(found) != wanted:
        raise Failed("installed is not what is locked: %s" % ", ".join(sorted(set(found) ^ wanted)))
    with _stage("imported"):
        _call([python, "-I", "-c", CHECK], stdin=json.dumps(arguments["pins"]), deadline=IMPORTS)
    with _stage("sealed"):
        _seal(build, found, arguments)


@contextmanager
def _stage(name: str) -> Iterator[None]:
    """The time of a part goes into the step's record: what a slow build was slow at."""
    began = time.monotonic()
    yield
    print("%s in %.1f s" % (name, time.monotonic() - began))


def _install(python: str, base: str, lock: str, arguments: Dict[str, Any], cache: str) -> None:
    where = ["--no-index", "--find-links", arguments["wheelhouse"], "--no-deps", "--require-hashes", "-r", lock]
    uv = shutil.which("uv", path=ENVIRONMENT["PATH"])
    if uv:
        # the cache beside the builds: what is unpacked there is linked into the build, not copied
        common = ["--quiet", "--no-config", "--cache-dir", cache, "--python", python]
        _call([uv, "pip", "install", *common, *where])
        _call([uv, "pip", "check", *common])
        return
    wheel = builds.pip_wheel(base, arguments["python"])
    if wheel is None:
        raise Failed("there is neither uv nor the pip that comes with %s" % base)
    pip = [python, os.path.join(wheel, "pip")]
    common = ["--isolated", "--disable-pip-version-check", "--no-cache-dir", *_trusted(arguments["wheelhouse"])]
    _call([*pip, "install", "--quiet", "--no-compile", *common, "--no-warn-script-location", *where])
    _call([*pip, "check", *common])  # not quiet: that hides what is wrong


def _trusted(wheelhouse: str) -> List[str]:
    """pip passes over plain http of other hosts unless it is told not to; what it takes there has to have the lock's hash."""
    scheme, _, rest = wheelhouse.partition("://")
    return ["--trusted-host", rest.partition("/")[0].rpartition("@")[2]] if scheme == "http" else []


def _call(argv: List[str], stdin: str = "", deadline: float = 3600.0) -> None:
    """Run one program to its end. Raises Failed with its last lines."""
    clean = dict(os.environ, PYTHONNOUSERSITE="1")
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean,
        cwd="/",
        start_new_session=True,
    )
    try:
        said = process.communicate(stdin.encode(), timeout=deadline)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said = process.communicate()[0] + b"\nit did not end in %d s" % deadline
    if process.returncode:
        lines = said.decode("utf-8", "replace").splitlines()[-TAIL:]
        raise Failed("%s ended with %d:\n%s" % (os.path.basename(argv[0]), process.returncode, "\n".join(lines)))


def _compile(build: str) -> None:
    """Bytecode of what no import check touched: jobs may not write it. Some packages have files that are no Python: no matter."""
    try:
        _call([os.path.join(build, "bin", "python"), "-m", "compileall", "-qq", "-j", "0", os.path.join(build, "lib")])
    except Failed:
        print("some files are no Python")


def _seal(build: str, found: Dict[str, str], arguments: Dict[str, Any]) -> None:
    """Nothing may write there any more, all of it is on the disk, and then the seal says so."""
    for folder, _, names in os.walk(build):
        for name in (*names, ""):
            place = os.path.join(folder, name)
            if not os.path.islink(place):
                os.chmod(place, os.stat(place).st_mode & ~0o222)
    _flush(build)
    seal = {
        "lock": arguments["digest"],
        "python": arguments["python"],
        "made": round(time.time(), 3),
        "distributions": found,
        "files": sorted(builds.files(build)),
    }
    state.write_atomically(os.path.join(build, builds.SEAL), json.dumps(dict(seal, version=1)).encode(), 0o444)


def _flush(build: str) -> None:
    """The build's file system to its disk: a seal must not outlive what it seals."""
    fd = os.open(build, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd):
            raise OSError(ctypes.get_errno(), "syncfs", build)
    finally:
        os.close(fd)


def switch(path: str, name: str, build: str) -> None:
    """Let the environment's name lead to `build`, at once for everybody. What it leads to already is left alone."""
    if builds.linked(path, name).get("target") == build:
        return
    temporary = os.path.join(path, ".%s.reconcile~" % name)
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(os.path.join(name + ".d", build), temporary)
    os.rename(temporary, os.path.join(path, name))
    state.fsync_directory(path)


def _switch_to(arguments: Dict[str, Any]) -> None:
    """Also a rollback: `rejected` is then what the next apply must not bring back; without it nothing is rejected any more."""
    path, name = arguments["path"], arguments["name"]
    folder = builds.home(path, name)
    build = os.path.join(folder, arguments["build"])
    seal = builds.read_json(os.path.join(build, builds.SEAL))
    if seal is None:
        raise Failed("there is no whole build %s" % arguments["build"])
    if builds.damage(build, seal):
        raise Failed("build %s is not as it was sealed" % arguments["build"])
    place = os.path.join(folder, builds.REJECTED)
    if arguments.get("rejected"):
        state.write_atomically(place, json.dumps(arguments["rejected"]).encode(), 0o644)
    switch(path, name, arguments["build"])
    if not arguments.get("rejected") and os.path.exists(place):
        os.unlink(place)


def collect(arguments: Dict[str, Any]) -> None:
    """Remove sealed builds beyond the newest `keep`; never the linked one, and none that a process or a hold needs.

    `spared`: builds that other nodes use, which see the same folder; None: not all of them could be asked, and nothing goes.
    """
    path, name, spared = arguments["path"], arguments["name"], arguments["spared"]
    if spared is None:
        print("nothing is removed: not every node that sees these builds said what it uses")
        return
    folder, link = builds.home(path, name), builds.linked(path, name).get("target")
    seals = {b: builds.read_json(os.path.join(folder, b, builds.SEAL)) for b in builds.builds(folder)}
    newest = sorted((b for b, seal in seals.items() if seal), key=lambda b: -float((seals[b] or {}).get("made", 0)))
    # the linked one counts as the first, whatever its age
    kept = [b for b in newest if b == link] + [b for b in newest if b != link]
    used = builds.users(path, name) if len(kept) > arguments["keep"] else {}
    for build in kept[arguments["keep"] :]:
        if build not in spared and not used.get(build):
            place = os.path.join(folder, build)
            os.unlink(os.path.join(place, builds.SEAL))  # half a build is none
            shutil.rmtree(place)
            print("removed %s" % build)
