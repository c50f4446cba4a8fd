"""How processes of the trainer end: with the status they were told, whatever threads of native code still do."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys

import pytest

from tools.sources import ROOT

# a thread of native code that lets go of tensors while Python is taken down, as gloo's do
BUSY = """
import atexit, sys, threading, time, torch
from trainer.leave import leave
torch.set_num_threads(1)
held = []
def work():
    while True:
        held[:] = [torch.randn(64) + 1]
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
while not held:
    time.sleep(0.001)
atexit.register(print, "exit function ran")
print("said before the end")
"""


def ended(last: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-c", BUSY + last)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.train
@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_thread_that_lets_go_of_tensors_late_changes_no_exit_status(status: int) -> None:
    found = ended(f"leave({status})")
    assert found.returncode == status, found.stderr[-2000:]
    assert found.stdout.splitlines() == ["said before the end", "exit function ran"]


@pytest.mark.train
def test_which_python_itself_does_not_promise() -> None:
    """The day on which this fails, `leave` can go."""
    assert -signal.SIGABRT in {ended("sys.exit(0)").returncode for _ in range(5)}


def test_every_program_of_the_trainer_that_may_join_a_group_leaves_so() -> None:
    programs = {
        path.relative_to(ROOT / "trainer").as_posix(): text
        for path in sorted((ROOT / "trainer").rglob("*.py"))
        if '__name__ == "__main__"' in (text := path.read_text(encoding="utf-8"))
    }
    assert {"train.py", "gates/__main__.py"} < set(programs)
    assert [name for name, text in programs.items() if _calls(text, "exit")] == []
    assert [name for name, text in programs.items() if not _calls(text, "leave")] == []


def _calls(text: str, name: str) -> bool:
    called = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return any(name in (getattr(func, "attr", ""), getattr(func, "id", "")) for func in called)
