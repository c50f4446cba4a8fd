"""What a push may cost the machine it is judged on: past that it is refused in words, by exit status 1."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.push.conftest import ROOT

PROGRAM = """
import sys
from reconciler.commands.bounds import bounded
from reconciler.errors import ReconcileError
from reconciler.render.reasons import error
try:
    with bounded(cpu=1, memory=256):
        {work}
except ReconcileError as e:
    sys.exit(error(e))
"""
TOLD = "the manifests take more than 1.0 s of work or 256 MiB of memory to check"


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("print('done')", ""),
        ("while True: pass", TOLD),
        ("b'x' * (1 << 30)", TOLD),
        ("[[i] * 1000 for i in range(10**9)]", TOLD),
    ],
)
def test_a_call_ends_in_words(work: str, told: str) -> None:
    argv = (sys.executable, "-c", PROGRAM.format(work=work))
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.strip()) == (1 if told else 0, told)
