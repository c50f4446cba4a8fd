"""What the workers of a pool share is made once, and fabric is loaded without what it does not need."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from reconciler.transport import program, ssh
from reconciler.transport.once import once

ROOT = Path(__file__).parent.parent.parent
WORKERS = 16


def test_workers_that_ask_at_the_same_moment_get_what_one_of_them_made() -> None:
    arrived, everybody, made = Counter[str](), threading.Event(), Counter[str]()

    @once
    def slow(name: str) -> str:
        made[name] += 1
        assert everybody.wait(20)  # so long that every other worker has asked as well
        return name * 2

    found: list[str] = []
    guard = threading.Lock()

    def worker() -> None:
        with guard:
            arrived["all"] += 1
            if arrived["all"] == WORKERS:
                everybody.set()
        found.append(slow("x"))

    threads = [threading.Thread(target=worker) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (found, made) == (["xx"] * WORKERS, Counter({"x": 1}))
    assert slow("y") == "yy"


def test_what_could_not_be_made_is_tried_again() -> None:
    tried = []

    @once
    def fails_first() -> int:
        tried.append(0)
        if len(tried) == 1:
            raise OSError
        return len(tried)

    with pytest.raises(OSError):  # noqa: PT011 any
        fails_first()
    assert [fails_first(), fails_first()] == [2, 2]


@pytest.mark.parametrize("shared", [program.packed, program.fragment, ssh._fabric])
def test_what_every_channel_needs_is_made_that_way(shared: object) -> None:
    assert getattr(shared, "__code__").co_filename == once.__code__.co_filename  # noqa: B009


def test_fabric_brings_no_framework_for_tests() -> None:
    code = (
        "import sys\nfrom reconciler.transport.ssh import _fabric\nfabric = _fabric()[0]\n"
        "print([m for m in ('unittest', 'unittest.mock', 'asyncio') if m in sys.modules])\n"
        "import unittest.mock, invoke\nunittest.mock.Mock().call(1)\nassert _fabric()[0] is fabric\n"
    )
    done = subprocess.run((sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_framework_that_is_loaded_already_stays() -> None:
    code = (
        "import sys, unittest.mock\nbefore = unittest.mock\nfrom reconciler.transport.ssh import _fabric\n_fabric()\n"
        "import invoke.context\nassert sys.modules['unittest.mock'] is before\nprint(invoke.context.Mock is before.Mock)"
    )
    done = subprocess.run((sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")
