"""The lock of OS packages as text: what is one, what is not and where, and that no bytes make its parser raise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.lock import MADE_BY, Flaw
from reconciler.model.system_lock import Locked, SystemLock, parse
from reconciler.model.version import Version, is_prefix, narrower

HEAD = f"{MADE_BY}\n# a note of somebody\n# distribution: centos-stream-9\n# repository: os http://mirror.example.net/os\n"
GOOD = HEAD + "dcgm 1:4.7.0-1\ntmux 3.2a-4.el9\n"


def found(text: str) -> SystemLock:
    lock, flaws = parse(text.encode())
    assert flaws == ()
    assert lock is not None
    return lock


def test_a_lock_and_its_text() -> None:
    lock = found(GOOD)
    assert (lock.distribution, lock.repositories) == ("centos-stream-9", ("os http://mirror.example.net/os",))
    assert {name: (str(p.version), p.line) for name, p in lock.packages.items()} == {
        "dcgm": ("1:4.7.0-1", 5),
        "tmux": ("3.2a-4.el9", 6),
    }
    assert lock.text() == GOOD
    assert lock.version("dcgm", "4.7.*") == "1:4.7.0-1"
    assert lock.version("dcgm", "4.8.*") is None
    assert lock.version("htop", "3.*") is None


def test_the_order_of_lines_is_the_order_of_names_whatever_it_was() -> None:
    assert found(HEAD + "tmux 3.2a-4.el9\n\ndcgm 1:4.7.0-1").text() == GOOD


FLAWS = {
    "tmux": (5, 1, "lock-line"),
    "tmux 3.2a-4.el9 x": (5, 1, "lock-line"),
    " tmux 3.2a-4.el9": (5, 1, "lock-line"),
    "tmux  3.2a-4.el9": (5, 1, "lock-line"),
    "tmux 3.2a-4.el9\r": (5, 1, "lock-line"),
    "tmux=3.2a-4.el9": (5, 1, "lock-line"),
    "tmux 3.2.*": (5, 1, "lock-line"),
    "tmux -3": (5, 1, "lock-line"),
    "-y 3": (5, 1, "lock-line"),
    "tmux 0:3.2a": (5, 6, "lock-line"),
    "tmux 3.2a$(reboot)": (5, 1, "lock-line"),
    "tmux 3.2a-": (5, 1, "lock-line"),
    "<<<<<<< HEAD": (5, 1, "lock-line"),
    "tmux 3-1\ntmux 3-1": (6, 1, "lock-twice"),
    "tmux 3-1\nhtop 2\ntmux 3-2": (7, 1, "lock-twice"),
}


@pytest.mark.parametrize("text", FLAWS)
def test_what_is_no_line_of_a_lock_is_refused_at_its_place(text: str) -> None:
    lock, flaws = parse((HEAD + text + "\n").encode())
    assert [(f.line, f.column, f.code) for f in flaws] == [FLAWS[text]]
    assert lock is None


def test_all_flaws_at_once_and_a_head_that_says_no_distribution() -> None:
    assert [f.line for f in parse((HEAD + "one\ntwo\nhtop 3\nfour\n").encode())[1]] == [5, 6, 8]
    assert parse(b"tmux 3\n")[1] == (Flaw(1, 1, "lock-header", {"found": "distribution"}),)
    assert parse(b"")[1] == (Flaw(1, 1, "lock-header", {"found": "distribution"}),)
    assert parse(b"# distribution: x\n\xff\n")[1][0].line == 2


@given(st.binary())
def test_no_bytes_make_it_raise(content: bytes) -> None:
    lock, flaws = parse(content)
    assert (lock is None) == bool(flaws)


LINES = st.sampled_from(
    [
        *HEAD.splitlines(),
        "tmux 3.2a-4.el9",
        "dcgm 1:4.7.0-1",
        "tmux",
        "#",
        "# repository: ",
        "a 1:2:3",
        "x 1-2-3",
        "x 10000000:2",
        "",
    ]
)


@given(st.lists(st.one_of(LINES, st.text()), max_size=12))
def test_what_is_read_is_written_and_read_the_same(lines: list[str]) -> None:
    lock, flaws = parse("\n".join(lines).encode("utf-8", "replace"))
    assert (lock is None) == bool(flaws)
    if lock:
        again, none = parse(lock.text().encode())
        assert none == ()
        assert again is not None
        assert again.text() == lock.text()
        assert {n: p.version for n, p in again.packages.items()} == {n: p.version for n, p in lock.packages.items()}


WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.+~^_]{0,12}", fullmatch=True)


@given(st.integers(0, 99), WORDS, st.one_of(st.just(""), WORDS), st.sampled_from(["dcgm", "libnvidia-ml1", "g++"]))
def test_every_version_that_a_package_manager_tells_can_be_locked(epoch: int, version: str, release: str, name: str) -> None:
    told = Version(str(epoch), version, release)
    assert Version.parse(str(told)) == told
    lock = SystemLock("debian-12", (), {name: Locked(told)})
    assert found(lock.text()).packages[name].version == told


@given(st.text())
def test_any_text_is_some_version(text: str) -> None:
    Version.parse(text).meets(text)


NARROWER = [
    ("2.0.*", "2.0.19", "2.0.19"),
    ("2.0.19-3.el9", "2.0.*", "2.0.19-3.el9"),
    ("2.*", "2.0.*", "2.0.*"),
    ("2.0.*", "2.0.*", "2.0.*"),
    ("5.14.0-*", "5.14.0-611.el9", "5.14.0-611.el9"),
    ("4.7.*", "1:4.7.0-1", "1:4.7.0-1"),
    ("2.1.*", "2.0.*", None),
    ("2.1.*", "2.0.19", None),
    ("2.0.*", "2.01", None),
    ("2.0.18", "2.0.19", None),
]


@pytest.mark.parametrize(("one", "other", "more"), NARROWER)
def test_of_two_pins_the_one_that_says_more(one: str, other: str, more: str | None) -> None:
    assert narrower(one, other) == narrower(other, one) == more


@pytest.mark.parametrize(("pin", "prefix"), [("2.0.*", True), ("5.14.0-*", True), ("2.0", False), ("2*", False), ("*", False)])
def test_a_prefix_ends_at_a_dot_or_a_dash(pin: str, prefix: bool) -> None:
    assert is_prefix(pin) is prefix
