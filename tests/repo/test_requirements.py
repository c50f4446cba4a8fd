"""What is imported is asked for: the trainer's libraries, in both places that name them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from tools.sources import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORTED = {"liger-kernel": "liger_kernel", "prometheus-client": "prometheus_client", "PyYAML": "yaml"}
GPU_ONLY = {"liger-kernel"}
FOR_TESTS = {"pytest", "pytest-timeout"}


def name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9.-]", requirement, maxsplit=1)[0]


def exact(requirements: list[str]) -> set[str]:
    return {requirement for requirement in requirements if "==" in requirement}


def asked_in_file() -> list[str]:
    lines = (ROOT / "trainer" / "requirements.in").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"trainer"}


def test_every_library_that_the_trainer_imports_is_asked_for() -> None:
    used = {module for path in (ROOT / "trainer").rglob("*.py") for module in imports(path)}
    extra = {name(entry) for entry in PROJECT["optional-dependencies"]["trainer"]}
    core = {name(entry) for entry in PROJECT["dependencies"]}
    assert used <= {IMPORTED.get(entry, entry) for entry in extra | core}


def test_the_trainers_environment_for_tests_has_the_same() -> None:
    extra = PROJECT["optional-dependencies"]["trainer"]
    asked = asked_in_file()
    core = {name(entry) for entry in PROJECT["dependencies"]}
    assert {name(entry) for entry in asked} - FOR_TESTS - core == {name(entry) for entry in extra} - GPU_ONLY
    assert exact(asked) == {entry for entry in exact(extra) if name(entry) not in GPU_ONLY}
