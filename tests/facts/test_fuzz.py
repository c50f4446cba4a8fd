"""On any bytes, and on damaged copies of the cases, every parser gives one of the three answers and raises nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.facts import (
    available,
    declared_units,
    environment_builds,
    file,
    hostname,
    hosts_file,
    order,
    os_release,
    packages,
    restarts,
)
from reconciler.facts import raw as raw_text
from reconciler.model.fact import Fact, Facts, Raw, Value
from tests.cases import is_fact, keyed, raw, values

Parser = Callable[[Facts], Fact[Any]]
ENABLED = Raw(b"[main]\nenabled=1\n")


def _asked(key: str, answer: Raw) -> Facts:
    return keyed({key: (answer, ENABLED) if key == "versionlock" else (answer, answer)})


def hosts(found: Facts) -> Fact[Any]:
    """Whatever is there, it comes out again byte for byte around our block, which is then found."""
    answer = raw_text.part(found, "hosts-file")
    assert answer is not None
    read = hosts_file.parse(answer.out)
    if isinstance(read, Value):
        assert read.value.content == answer.out
        list(read.value.others())
        again = hosts_file.parse(read.value.with_block("10.0.0.1 a\n"))
        assert isinstance(again, Value)
        assert (again.value.lines(), again.value.after) == (("10.0.0.1 a",), read.value.after)
        assert again.value.before.removesuffix(b"\n") == read.value.before.removesuffix(b"\n")
        assert again.value.with_block("10.0.0.1 a\n") == again.value.content
    return hosts_file.read(found) if found.raws("hosts-file") else read


PARSERS: dict[str, tuple[str, str, Parser]] = {
    "os-release": ("os-release", "os_release", os_release.distribution),
    "hostname": ("hostname", "hostname", hostname.static),
    "rpm": ("packages-rpm", "rpm", lambda f: packages.installed(f, "dnf")),
    "dpkg": ("packages-deb", "dpkg", lambda f: packages.installed(f, "apt")),
    "locks": ("versionlock", "versionlock", packages.locks),
    "dnf": ("available", "repoquery", lambda f: available.offered(f, "dnf")),
    "apt": ("available", "madison", lambda f: available.offered(f, "apt")),
    "environment": ("environment:x", "environment", lambda f: environment_builds.found(f, "x")),
    "stat": ("file:/x", "stat", lambda f: file.place(f, "/x")),
    "hosts": ("hosts-file", "hosts", hosts),
    "units": ("declared-units", "units", lambda f: declared_units.unit(f, "a.service")),
    "restarts": ("restarts", "restarts", restarts.notes),
}
ERRORS = ["", "missing", "denied", "deadline", "too-large", "not-regular", "not-recorded", "io", "something new"]
raws = st.builds(
    Raw,
    out=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda t: t.encode("utf-8", "surrogatepass"))),
    err=st.binary(max_size=40),
    status=st.none() | st.integers(-64, 255),
    error=st.sampled_from(ERRORS),
)
parser = pytest.mark.parametrize(("key", "cases", "parse"), PARSERS.values(), ids=PARSERS)


@parser
@given(answer=raws)
@example(answer=Raw(b"[" * 100_000, status=0))
@example(answer=Raw(b"1" * 10_000, status=0))
@settings(max_examples=60, deadline=None)
def test_any_bytes(key: str, cases: str, parse: Parser, answer: Raw) -> None:
    assert is_fact(parse(_asked(key, answer)))


@parser
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_damaged_cases(key: str, cases: str, parse: Parser, seed: int) -> None:
    chosen = random.Random(seed)
    data = bytearray(raw(chosen.choice(values(f"facts/{cases}.yaml"))).out)
    for _ in range(chosen.randint(1, 6)):
        at = chosen.randrange(len(data) + 1)
        change = chosen.choice(("cut", "byte", "twice", "tab"))
        if change == "cut":
            del data[at : at + chosen.randint(1, 20)]
        elif change == "byte":
            data[at : at + 1] = bytes([chosen.randrange(256)])
        elif change == "twice":
            data[at:at] = data[: chosen.randint(0, 60)]
        else:
            data[at:at] = b"\t"
    assert is_fact(parse(_asked(key, Raw(bytes(data), status=0))))


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_rpm_versions_have_one_order(one: str, two: str, three: str) -> None:
    assert order.compare(one, one) == 0
    assert order.compare(one, two) == -order.compare(two, one)
    if order.compare(one, two) >= 0 and order.compare(two, three) >= 0:
        assert order.compare(one, three) >= 0


@given(st.text(max_size=900), st.integers(4, 400))
@settings(max_examples=100, deadline=None)
def test_details_are_one_short_line_without_controls(text: str, limit: int) -> None:
    found = raw_text.clean(text, limit)
    assert len(found) <= limit
    assert not any(ord(c) < 32 or ord(c) == 127 for c in found)
    assert len(found.splitlines()) <= 1
