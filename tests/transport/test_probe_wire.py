"""Probes on the wire and back: total on any JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.fact import Available, Probe, Raw, Read, Run, Stat
from reconciler.transport.probe import decode, encode

PROBE = Probe(
    "k",
    (
        Run(("rpm", "-q", "a b"), 5.0),
        Read("/etc/hostname", 100),
        Stat("/etc/motd", "root", "adm"),
        Available("dnf", ("tmux",), (("a.repo", "[a]"),), 60.0),
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
ANSWER = st.dictionaries(st.sampled_from(["out", "err", "out64", "err64", "status", "error", "ms"]), JSON)


def test_encoded() -> None:
    assert encode(Probe("k", (Run(("id",), unprivileged=True),)))[0]["unprivileged"] is True
    assert encode(PROBE) == [
        {"do": "run", "argv": ["rpm", "-q", "a b"], "deadline": 5.0, "unprivileged": False},
        {"do": "read", "path": "/etc/hostname", "limit": 100},
        {"do": "stat", "path": "/etc/motd", "owner": "root", "group": "adm"},
        {
            "do": "available",
            "manager": "dnf",
            "names": ["tmux"],
            "repositories": [["a.repo", "[a]"]],
            "deadline": 60.0,
            "every_stream": False,
        },
    ]
    assert encode(Probe("k", (Available("dnf", ("tmux",), every_stream=True),)))[0]["every_stream"] is True
    assert json.loads(json.dumps(encode(PROBE))) == encode(PROBE)


@given(answers=JSON | st.lists(JSON | ANSWER, max_size=6))
def test_decoding_is_total(answers: Any) -> None:
    raws = decode(PROBE, answers)
    assert [raw.source for raw in raws] == [raw.source for raw in decode(PROBE, None)]
    for part, raw in zip(PROBE.parts, raws, strict=True):
        assert isinstance(raw.out, bytes)
        assert isinstance(raw.status, int | None)
        assert raw.error or raw.status is not None or isinstance(part, Read | Stat)


@pytest.mark.parametrize(
    ("answer", "raw"),
    [
        ({"out": "é\n", "status": 0, "ms": 1.5}, Raw(b"\xc3\xa9\n", b"", 0, "", "", 1.5)),
        ({"out64": "/w==", "err": "e", "status": 3}, Raw(b"\xff", b"e", 3)),
        ({"error": "deadline", "status": -9, "out": "x"}, Raw(b"x", b"", -9, "deadline")),
        ({"error": "missing", "ms": 0.1}, Raw(error="missing", milliseconds=0.1)),
        ({"ms": 0}, Raw(error="io")),
        ({"status": True}, Raw(error="io")),
        ({"status": "0"}, Raw(error="io")),
        ({"status": 0, "out": 5}, Raw(error="io")),
        ({"status": 0, "out64": "%"}, Raw(error="io")),
        ({"status": 0, "out64": None}, Raw(error="io")),
        ({"status": 0, "ms": "x"}, Raw(error="io")),
        ({"status": 0, "ms": 10**400}, Raw(error="io")),
        ({"status": 0, "error": "made-up"}, Raw(status=0, error="io")),
        ([], Raw(error="io")),
        (None, Raw(error="io")),
    ],
)
def test_answers_to_a_command(answer: Any, raw: Raw) -> None:
    (found,) = decode(Probe("k", (Run(("x",)),)), [answer])
    assert found == Raw(raw.out, raw.err, raw.status, raw.error, "x", raw.milliseconds)


def test_an_empty_file_is_not_an_error() -> None:
    assert decode(Probe("k", (Read("/f"),)), [{"ms": 0.0}]) == (Raw(source="/f"),)


def test_answers_that_are_missing_are_errors_and_others_are_ignored() -> None:
    probe = Probe("k", (Read("/a"), Read("/b")))
    assert [raw.error for raw in decode(probe, [{"out": "x"}])] == ["", "io"]
    assert len(decode(probe, [{}] * 5)) == 2
