"""One Python environment of one node for tests: real venvs of tiny wheels, the real node program, offline."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconciler import environments
from reconciler.apply import journal
from reconciler.engine import Applied, Engine
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


def by_hand(env: Env, how: str, *, to: str | None = None, keep: int | None = None) -> Applied:
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
