"""The import contracts name every package, and each of them breaks when it should."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.sources import ROOT

CONTRACTS = {c["id"]: c for c in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]}
BREAKS = [
    ("pure", "plan/order.py", "import socket"),
    ("pure", "facts/raw.py", "import subprocess"),
    ("pure", "kinds/file.py", "import reconciler.transport.base"),
    ("controller", "controller/assess.py", "import reconciler.engine"),
    ("io", "transport/link.py", "import reconciler.plan.build"),
    ("io", "observe.py", "import reconciler.render.reasons"),
    ("io", "apply/lease.py", "import reconciler.kinds"),
    ("fabric", "pool.py", "import fabric"),
    ("fabric", "commands/plan.py", "import paramiko"),
    ("git", "commands/plan.py", "import git"),
    ("light", "engine.py", "import torch"),
    ("light", "commands/plan.py", "import lab"),
    ("trainer", "../trainer/spec.py", "import reconciler.config"),
    ("trainer", "../trainer/engines.py", "import lab"),
    ("words", "engine.py", "import reconciler.render.text"),
    ("node", "node/state.py", "import reconciler.events"),
    ("node", "node/state.py", "import yaml"),
]


def packages() -> set[str]:
    """Everything directly below reconciler/."""
    found = (ROOT / "reconciler").iterdir()
    return {f"reconciler.{path.stem}" for path in found if path.suffix == ".py" or (path / "__init__.py").exists()}


def lint(folder: Path, contract: str | None = None) -> subprocess.CompletedProcess[str]:
    argv = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    argv += ["--contract", contract] if contract else []
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in ("reconciler", "trainer"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_this_repository_keeps_its_contracts() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


def test_every_contract_has_a_case() -> None:
    assert {contract for contract, _, _ in BREAKS} == set(CONTRACTS)


@pytest.mark.parametrize(("contract", "file", "line"), BREAKS, ids=[f"{c}-{f}" for c, f, _ in BREAKS])
def test_a_contract_breaks(copy: Path, contract: str, file: str, line: str) -> None:
    path = copy / "reconciler" / file
    path.write_text(f"{path.read_text()}\n{line}\n")
    done = lint(copy, contract)
    assert done.returncode == 1, done.stdout
    assert f"{CONTRACTS[contract]['name']} BROKEN" in done.stdout


def test_no_package_is_left_out() -> None:
    """A new package has to be put on one side: it decides, it does I/O, or it puts both together."""
    both = {
        "engine",
        "snapshots",
        "survey",
        "system_pins",
        "environments",
        "controller",
        "commands",
        "cli",
        "render",
        "node",
        "config",
        "errors",
        "events",
        "__init__",
        "__main__",
    }
    sides = {*CONTRACTS["pure"]["source_modules"], *CONTRACTS["io"]["source_modules"]}
    assert packages() == sides | {f"reconciler.{name}" for name in both}


def test_the_node_program_may_import_no_other_package_and_no_dependency() -> None:
    forbidden = set(CONTRACTS["node"]["forbidden_modules"])
    assert packages() - {"reconciler.node", "reconciler.__init__", "reconciler.__main__"} <= forbidden
    names = {"GitPython": "git", "PyYAML": "yaml", "prometheus-client": "prometheus_client", "ruamel.yaml": "ruamel"}
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    plain = [entry.partition(">")[0].strip() for entry in wanted]
    assert {names.get(name, name) for name in plain} <= forbidden
