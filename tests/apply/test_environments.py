"""Python environments through a whole apply: real venvs of tiny wheels, the real node program, offline."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab.shell import wait_for
from reconciler import environments
from reconciler.apply import journal
from reconciler.engine import Applied, Engine
from reconciler.errors import Usage
from reconciler.model.desired import (
    DesiredNode,
    DesiredState,
    Origin,
    PythonEnvironmentSpec,
    Resource,
    ResourceId,
    Revision,
    Rollout,
    SshAccess,
)
from reconciler.model.lock import Lock, Pinned
from reconciler.model.outcome import End
from reconciler.model.plan import Change, Selection
from reconciler.pinning import tools
from tests.nodes.cluster import Controller
from tests.nodes.site import Site
from tests.wheels import wheel

PYTHON = subprocess.run(
    ("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"), capture_output=True, text=True, check=True
).stdout.strip()
NODE = "gpu01"


@dataclass
class Env:
    """One environment `t` of one node, over a wheelhouse that the test fills."""

    site: Site
    control: Controller
    house: Path
    keep: int = 3
    pinned: dict[str, Pinned] = field(default_factory=dict)
    pins: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        return self.site.node(NODE) / "opt/ai/env"

    def lock(self, versions: Mapping[str, str], **more: Any) -> None:
        """What is wanted now: wheels of these versions are made where the house has none."""
        self.pins = tuple(more.pop("pins", versions))
        self.pinned = {n: Pinned(n, v, (wheel(self.house, n, v, **more.get(n, {})),)) for n, v in versions.items()}

    def spec(self, **more: Any) -> PythonEnvironmentSpec:
        found = Lock("sha256:0", PYTHON, "x86_64-manylinux_2_34", self.pinned)
        versions = tuple((n, p.version) for n, p in sorted(self.pinned.items()))
        about = {"wheelhouse": str(self.house), "keep": self.keep, **more}
        return PythonEnvironmentSpec("t", PYTHON, found.digest, found.requirements(), versions, self.pins, **about)

    def desired(self, **more: Any) -> DesiredState:
        resource = Resource(ResourceId("PythonEnvironment", "t"), self.spec(**more), Origin("v.yaml", 3))
        return DesiredState("lab", Revision("c" * 40), "d" * 64, {NODE: DesiredNode(NODE, SshAccess(NODE), (resource,))}, Rollout())

    def apply(self, **more: Any) -> Applied:
        return self.control.apply(self.desired(**more))

    def converge(self, **more: Any) -> None:
        ended = self.apply(**more).outcomes[NODE]
        assert ended.end is End.CONVERGED, (ended.reason, ended.data)

    def change(self, **more: Any) -> Change:
        (found,) = self.control.plan(self.desired(**more)).nodes[NODE].changes
        return found

    def fields(self) -> dict[str, tuple[Any, Any]]:
        return {f.path: (f.before, f.after) for f in self.change().fields}

    @property
    def linked(self) -> Path:
        """The real folder of the build that the name leads to."""
        return (self.root / "t").resolve(strict=True)

    def builds(self) -> list[str]:
        return sorted(p.name for p in (self.root / "t.d").iterdir() if p.is_dir() and "-" in p.name)

    def python(self, program: str) -> str:
        done = subprocess.run((str(self.root / "t/bin/python"), "-c", program), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def site_packages(self) -> Path:
        return self.linked / f"lib/python{PYTHON}/site-packages"


@pytest.fixture
def env(site: Site, control: Controller, tmp_path: Path) -> Iterator[Env]:
    found = Env(site, control, tmp_path / "house")
    found.lock({"alpha": "1.0", "beta": "1.0"}, alpha={"requires": ["beta>=1"]})
    (site.node(NODE) / "bin/uv").symlink_to(tools.uv())
    yield found
    subprocess.run(("chmod", "-R", "u+w", str(site.root)), check=False)


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
    assert {k: v for k, v in shown.items() if k.startswith("package")} == SHOWN.get(how, {})
    assert env.change().reason == "drift"
    env.converge()
    assert env.linked.name == f"{old.name[:-2]}-2"
    assert env.python("import alpha, beta; print(alpha.VERSION, beta.VERSION)") == "1.0 1.0"
    assert old.exists()  # the running process keeps what it started with
    assert user.communicate("\n", timeout=20)[0] == f"{old}\n"
    assert env.apply().plan.changes == 0


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
    ("how", "tool"), [*((how, "uv") for how in FAULTS), ("an-altered-wheel", "pip"), ("a-need-that-is-not-locked", "pip")]
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


def test_what_a_node_lacks_is_a_hold(env: Env) -> None:
    def code(**more: Any) -> str:
        hold = env.change(**more).hold
        assert hold is not None
        return hold.code

    assert code(wheelhouse=None) == "NoWheelhouse"
    assert code(wheelhouse=str(env.house / "nowhere")) == "WheelhouseUnreadable"
    assert code(builder="gpu02") == "BuilderFirst"
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


def _by_hand(env: Env, how: str, *, to: str | None = None, keep: int | None = None) -> Applied:
    """`env rollback` or `env gc` of the environment."""
    wanted = env.desired()
    opened, pool = journal.Journal(env.control.state.journal), env.site.pool(wanted)
    try:
        engine = Engine(wanted, pool, Selection(), env.control.events.append)
        rollback = how == "rollback"
        targets = environments.rollback(engine, "t", to, "ada@desk") if rollback else environments.collection(engine, "t")
        return environments.carry_out(engine, targets, keep, opened, env.control.state.holder(), 60.0)
    finally:
        pool.close()
        env.site.close()
        opened.close()


def test_a_rollback_sticks_until_the_lock_changes_or_it_is_taken_back(env: Env) -> None:
    env.lock({"alpha": "1.0"})
    env.converge()
    first = env.linked.name
    env.lock({"alpha": "2.0"})
    env.converge()
    second = env.linked.name
    assert _by_hand(env, "rollback").outcomes[NODE].end is End.CONVERGED
    assert (env.linked.name, env.python("import alpha; print(alpha.VERSION)")) == (first, "1.0")
    hold = env.change().hold
    assert hold is not None
    assert (hold.code, hold.data["by"], hold.data["lock"]) == ("RolledBack", "ada@desk", second[:12])
    before = env.site.records(NODE)
    assert env.apply().outcomes[NODE].held == 1
    assert (env.linked.name, env.site.records(NODE)) == (first, before)
    assert _by_hand(env, "rollback", to=second).outcomes[NODE].end is End.CONVERGED
    assert (env.linked.name, env.change().action) == (second, "none")
    _by_hand(env, "rollback", to=first)
    env.lock({"alpha": "3.0"})
    env.converge()
    assert env.python("import alpha; print(alpha.VERSION)") == "3.0"


def test_a_rollback_takes_no_damaged_build_and_none_that_is_not_there(env: Env) -> None:
    env.lock({"alpha": "1.0"})
    env.converge()
    with pytest.raises(Usage, match="NoEarlierBuild"):
        _by_hand(env, "rollback")
    with pytest.raises(Usage, match="NoSuchBuild"):
        _by_hand(env, "rollback", to="0123456789ab-1")
    (env.site_packages() / "alpha.py").write_text("VERSION = 'x'\n")
    env.lock({"alpha": "2.0"})
    env.converge()
    second = env.linked
    ended = _by_hand(env, "rollback").outcomes[NODE]
    assert "is not as it was sealed" in str(ended.data["output"])
    assert (env.linked, env.change().action) == (second, "none")


def test_clean_up_by_hand(env: Env) -> None:
    for version in ("1.0", "2.0", "3.0"):
        env.lock({"alpha": version})
        env.converge()
    assert len(env.builds()) == 3
    assert _by_hand(env, "gc", keep=1).outcomes[NODE].end is End.CONVERGED
    assert (env.builds(), env.change().action) == ([env.linked.name], "none")
