"""Python environments through a whole apply: built, sealed, linked, damaged, healed, cut off."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from lab.shell import wait_for
from reconciler.engine import Applied
from reconciler.model.lock import Pinned
from reconciler.model.outcome import End
from tests.apply.environment import NODE, PYTHON, Env, env
from tests.wheels import wheel

__all__ = ["env"]


def _without_uv(env: Env) -> None:
    (env.site.node(NODE) / "bin/uv").unlink()


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_build_is_made_sealed_linked_and_a_second_apply_changes_nothing(env: Env, tool: str) -> None:
    if tool == "pip":
        _without_uv(env)
    change = env.change()
    digest = env.spec().digest[:12]
    assert (change.action, [(f.path, f.after) for f in change.fields]) == ("create", [("build", f"{digest}-1"), ("lock", digest)])
    env.converge()
    assert (env.root / "t").readlink() == Path(f"t.d/{digest}-1")
    assert env.python("import alpha, beta, sys; print(alpha.VERSION, sys.prefix)") == f"1.0 {env.root}/t"
    assert sorted(p.name for p in env.site_packages().iterdir() if not p.name.startswith("_")) == [
        "alpha-1.0.dist-info", "alpha.py", "beta-1.0.dist-info", "beta.py",
    ]  # fmt: skip
    assert all(not p.stat().st_mode & 0o222 for p in env.linked.rglob("*") if not p.is_symlink())
    assert sorted(p.name for p in (env.root / "t.d").iterdir()) == [f"{digest}-1", f"{digest}.txt"]
    before = env.site.records(NODE)
    assert env.apply().plan.changes == 0
    assert env.site.records(NODE) == before


def test_another_lock_is_another_build_and_going_back_is_a_switch(env: Env) -> None:
    env.converge()
    first = env.linked.name
    old = (env.pinned, env.pins)
    env.lock({"alpha": "2.0"})
    env.converge()
    assert (env.python("import alpha; print(alpha.VERSION)"), len(env.builds())) == ("2.0", 2)
    shutil.rmtree(env.house)  # going back needs nothing but what is there
    env.pinned, env.pins = old
    env.converge()
    assert env.linked.name == first
    assert [s["title"] for s in env.site.steps(NODE)][-1] == "switch-environment"


def test_builds_beyond_the_last_ones_go_but_never_one_that_is_used(env: Env) -> None:
    env.keep = 2
    env.converge()
    first = env.linked
    user = subprocess.Popen((str(first / "bin/python"), "-c", "input()"), stdin=subprocess.PIPE, cwd="/")
    try:
        for version in ("2.0", "3.0", "4.0"):
            env.lock({"alpha": version})
            env.converge()
        assert first.name in env.builds()
        assert len(env.builds()) == 3
        holds = env.root / "t.d" / f"{first.name}.holds"
        holds.mkdir()
        (holds / "job-1").write_text("")
    finally:
        user.communicate(b"\n")
    env.lock({"alpha": "5.0"})
    env.converge()
    assert first.name in env.builds()
    shutil.rmtree(holds)
    env.lock({"alpha": "6.0"})
    env.converge()
    assert first.name not in env.builds()
    assert len(env.builds()) == 2


DAMAGE: dict[str, Any] = {
    "another-version": lambda site: (site / "beta-1.0.dist-info").rename(site / "beta-0.9.dist-info"),
    "a-package-more": lambda site: (site / "gamma-1.0.dist-info").mkdir() or (site / "gamma-1.0.dist-info/METADATA").write_text(""),
    "a-package-less": lambda site: shutil.rmtree(site / "beta-1.0.dist-info"),
    "a-file-edited": lambda site: (site / "alpha.py").write_text("VERSION = 'x'\n"),
    "a-file-of-the-same-size": lambda site: (site / "alpha.py").write_text((site / "alpha.py").read_text().replace("1", "2")),
    "a-file-gone": lambda site: (site / "alpha.py").unlink(),
    "a-file-more": lambda site: (site / "sitecustomize.py").write_text("import os\n"),
    "a-link-instead": lambda site: (site / "beta.py").unlink() or (site / "beta.py").symlink_to("/dev/null"),
}
SHOWN = {
    "another-version": {"package beta": ("0.9", "1.0")},
    "a-package-more": {"package gamma": ("1.0", None)},
    "a-package-less": {"package beta": (None, "1.0")},
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_shown_and_healed_as_a_new_build_while_a_process_goes_on(env: Env, how: str) -> None:
    env.converge()
    old = env.linked
    program = "import alpha, sys; print(alpha.VERSION, flush=True); input(); print(sys.prefix)"
    user = subprocess.Popen((str(old / "bin/python"), "-c", program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert user.stdout is not None
    assert user.stdout.readline() == "1.0\n"
    DAMAGE[how](env.site_packages())
    shown = env.fields()
    assert shown["build"] == (old.name, f"{old.name[:-2]}-2")
    assert shown["files"][1] == "as sealed"
    assert shown["users"] == (f"pid {user.pid}", f"stay on {old.name}")
    assert {k: v for k, v in shown.items() if k.startswith("package")} == SHOWN.get(how, {})
    assert env.change().reason == "drift"
    env.converge()
    assert env.linked.name == f"{old.name[:-2]}-2"
    assert env.python("import alpha, beta; print(alpha.VERSION, beta.VERSION)") == "1.0 1.0"
    assert old.exists()  # the running process keeps what it started with
    assert user.communicate("\n", timeout=20)[0] == f"{old}\n"
    assert env.apply().plan.changes == 0


def test_a_build_that_lost_its_seal_stays_while_it_is_used(env: Env) -> None:
    env.converge()
    old = env.linked
    user = subprocess.Popen((str(old / "bin/python"), "-c", "input()"), stdin=subprocess.PIPE, cwd="/")
    try:
        (old / ".sealed.json").unlink()
        users = (f"pid {user.pid}", f"stay on {old.name}")
        assert env.fields() == {"build": (old.name, f"{old.name[:-2]}-2"), "seal": (None, "whole"), "users": users}
        env.converge()
        assert env.linked.name == f"{old.name[:-2]}-2"
        assert (old / "bin/python").exists()
    finally:
        user.communicate(b"\n")
    (env.site_packages() / "alpha.py").unlink()
    env.converge()
    assert not old.exists()


def test_compiled_code_that_python_leaves_is_no_damage(env: Env) -> None:
    env.converge()
    cache = env.site_packages() / "__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / f"alpha.cpython-{PYTHON.replace('.', '')}.pyc").write_bytes(b"x")
    assert env.change().action == "none"


def _garbage(env: Env) -> None:
    file = env.house / "beta-1.0-py3-none-any.whl"
    file.write_bytes(b"PK")
    env.pinned["beta"] = Pinned("beta", "1.0", (hashlib.sha256(b"PK").hexdigest(),))


FAULTS: dict[str, tuple[Any, str]] = {
    "an-altered-wheel": (lambda env: wheel(env.house, "beta", "1.0", files={"beta.py": "# another\n"}), "hash"),
    "an-altered-hash-in-the-lock": (lambda env: env.pinned.update(beta=Pinned("beta", "1.0", ("0" * 64,))), "hash"),
    "an-import-that-fails": (
        lambda env: env.lock({"alpha": "1.0"}, alpha={"files": {"alpha.py": "import nowhere\n"}}),
        "No module named",
    ),
    "a-crash-on-import": (
        lambda env: env.lock({"alpha": "1.0"}, alpha={"files": {"alpha.py": "import os; os.kill(os.getpid(), 11)\n"}}),
        "alpha: import alpha",
    ),
    "a-need-that-is-not-locked": (lambda env: env.lock({"alpha": "1.0"}, alpha={"requires": ["omega>3"]}), "omega"),
    "not-a-wheel": (_garbage, "beta"),
}


@pytest.mark.parametrize(
    ("how", "tool"),
    [
        *((how, "uv") for how in FAULTS),
        *((how, "pip") for how in ("an-altered-wheel", "an-altered-hash-in-the-lock", "a-need-that-is-not-locked")),
    ],
)
def test_a_build_that_fails_is_never_linked_and_leaves_nothing(env: Env, how: str, tool: str) -> None:
    if tool == "pip":
        _without_uv(env)
    env.lock({"alpha": "0.1"})
    env.converge()
    before = env.linked
    env.lock({"alpha": "1.0", "beta": "1.0"})
    spoil, said = FAULTS[how]
    spoil(env)
    ended = env.apply().outcomes[NODE]
    assert (ended.end, ended.reason) == (End.FAILED, "StepFailed")
    assert said.lower() in str(ended.data["output"]).lower()
    assert (env.linked, env.builds()) == (before, [before.name])


def test_a_missing_wheel_is_a_hold_that_names_it(env: Env) -> None:
    (env.house / "beta-1.0-py3-none-any.whl").unlink()
    hold = env.change().hold
    assert hold is not None
    assert (hold.code, hold.data["names"]) == ("WheelsMissing", ["beta"])


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what is asked for is of no interest."""


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_wheelhouse_can_be_a_url(env: Env, tool: str) -> None:
    if tool == "pip":
        _without_uv(env)
    handler = functools.partial(_Quiet, directory=str(env.house))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        env.converge(wheelhouse=url)
        before = env.linked
        env.lock({"alpha": "2.0"})
        (env.house / "alpha-2.0-py3-none-any.whl").unlink()
        ended = env.apply(wheelhouse=url).outcomes[NODE]
        server.shutdown()
    assert (ended.reason, env.linked, env.builds()) == ("StepFailed", before, [before.name])
    assert "alpha" in str(ended.data["output"])


def test_what_a_node_lacks_is_a_hold(env: Env) -> None:
    def code(**more: Any) -> str:
        hold = env.change(**more).hold
        assert hold is not None
        return hold.code

    assert code(wheelhouse=None) == "NoWheelhouse"
    assert code(wheelhouse=str(env.house / "nowhere")) == "WheelhouseUnreadable"
    assert code(shared=True) == "NoSharedMount"
    env.root.mkdir(parents=True)
    (env.root / "t").mkdir()
    assert code() == "NotALink"


def test_a_build_that_was_killed_is_not_linked_and_the_next_apply_makes_it(env: Env, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    program = f"import os, pathlib, time\npathlib.Path({str(stop)!r}).write_text(str(os.getpid()))\ntime.sleep(600)\n"
    env.lock({"alpha": "1.0"}, alpha={"files": {"alpha.py": program}})
    killed = env.spec()
    ends: list[Applied] = []
    worker = threading.Thread(target=lambda: ends.append(env.apply()))
    worker.start()
    wait_for(lambda: stop.exists() and stop.read_text() != "", "the build to import", 60)
    halves = env.builds()
    for pid in _family(int(stop.read_text())):
        os.kill(pid, signal.SIGKILL)
    worker.join(60)
    assert ends[0].outcomes[NODE].end is End.FAILED
    assert halves == [f"{killed.digest[:12]}-1"]
    assert not (env.root / "t").is_symlink()
    env.lock({"alpha": "1.0"})
    env.converge()
    assert env.builds() == [env.linked.name]


def _family(pid: int) -> list[int]:
    """A process and those above it up to the runner of the step: what a power cut would end at once."""
    found = [pid]
    while True:
        status = Path(f"/proc/{found[-1]}/status").read_text()
        above = int(status.split("PPid:")[1].split()[0])
        if b"fragment" not in Path(f"/proc/{above}/cmdline").read_bytes():
            return found[::-1]
        found.append(above)
