"""Facts of software: what a node answered in, a plain value out; and on anything else one of the three answers."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.facts import (
    config_files,
    cuda,
    cuda_libraries,
    dcgm,
    holds,
    packages_deb,
    packages_rpm,
    python_environments,
    repositories,
    torch_build,
)
from reconciler.facts.catalogue import BY_NAME
from reconciler.facts.formats import plain
from reconciler.facts.live import About, LiveFact, selected
from reconciler.facts.urls import redacted
from reconciler.model.fact import Raw, Value
from reconciler.render.headlines import headline
from tests.cases import DATA, is_fact, raw, values
from tests.facts.test_fuzz import raws

FACTS: tuple[LiveFact, ...] = tuple(
    module.FACT
    for module in (
        packages_rpm,
        packages_deb,
        repositories,
        holds,
        python_environments,
        cuda,
        cuda_libraries,
        torch_build,
        dcgm,
        config_files,
    )
)
CASES = [
    pytest.param(fact, case, id=f"{fact.name} {case['name']}") for fact in FACTS for case in values(f"facts/live/{fact.name}.yaml")
]
Case = Mapping[str, Any]


def part(said: Case) -> Raw:
    """As in tests.cases, or `json`: what a fragment answered."""
    return Raw(json.dumps(said["json"]).encode(), status=0) if "json" in said else raw(said)


def found(fact: LiveFact, case: Case) -> Any:
    value = plain(fact.read(tuple(map(part, case["raws"]))))
    json.dumps(value)
    return value


def at(value: Any, path: str) -> Any:
    """`a/0/b` in plain JSON; a key that begins with a slash follows a second one and takes the longest that is there."""
    while path:
        step, _, rest = path.partition("/")
        if not step:
            step = max((key for key in value if path == key or path.startswith(key + "/")), key=len)
            rest = path.removeprefix(step).removeprefix("/")
        value = value[int(step)] if isinstance(value, list) else value[step]
        path = rest
    return value


@pytest.mark.parametrize(("fact", "case"), CASES)
def test_what_a_node_answered(fact: LiveFact, case: Case) -> None:
    value = found(fact, case)
    if "value" in case:
        assert value == case["value"]
    if "absent" in case:
        assert value == {"absent": case["absent"]}
    if "unknown" in case:
        assert value["unknown"] == case["unknown"]
    assert {path: at(value, path) for path in case.get("at", {})} == case.get("at", {})
    for secret in case.get("never", ()):
        assert secret not in json.dumps(value)
    line = headline(fact.name, value)
    assert line
    assert "\n" not in line
    json.dumps(selected(fact, value))


def test_every_file_of_cases_is_used() -> None:
    assert {path.stem for path in (DATA / "facts/live").glob("*.yaml")} >= {fact.name for fact in FACTS}
    for fact in FACTS:
        assert BY_NAME[fact.name] is fact
        assert fact.parts(About())


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(["error", "missing"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.sampled_from(["error", "files"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def judged(fact: LiveFact, answers: tuple[Raw, ...]) -> None:
    """A fact, plain JSON and a headline: nothing raises, whatever a node says."""
    answer = fact.read(answers)
    assert is_fact(answer)
    value = plain(answer)
    json.dumps(selected(fact, value))
    assert headline(fact.name, value)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: str(fact.name))
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_any_bytes_and_any_json(fact: LiveFact, data: st.DataObject) -> None:
    form = raws | anything.map(lambda value: Raw(json.dumps(value).encode(), status=0))
    judged(fact, tuple(data.draw(form) for _ in fact.parts(About())))


def altered(value: Any, chance: random.Random) -> Any:
    """One place of a JSON value is another type, gone, or doubled."""
    others: list[Any] = [
        None,
        True,
        0,
        -1,
        10**30,
        "",
        "x",
        "\x00\u2028",
        [],
        {},
        ["x"],
        {"error": "denied"},
        {"error": {}},
        {"files": 1},
        1e308,
    ]
    if isinstance(value, Mapping) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value))
        if chance.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: altered(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        return [*value[:place], altered(value[place], chance), *value[place:][chance.randrange(2) :]]
    if isinstance(value, str) and value and chance.random() < 0.6:
        cut = chance.randrange(len(value))
        return value[:cut] + chance.choice(["", "\n", "\t", "=", "[", "{", "\udcff"]) + value[cut + chance.randrange(3) :]
    return chance.choice(others)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: str(fact.name))
@given(seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_altered_answers(fact: LiveFact, seed: int) -> None:
    chance = random.Random(seed)
    case = chance.choice(values(f"facts/live/{fact.name}.yaml"))
    answers = []
    for said in case["raws"]:
        key = "json" if "json" in said else "out"
        changed = said.get(key, "")
        for _ in range(chance.randint(1, 4)):
            changed = altered(changed, chance)
        text = json.dumps(changed) if key == "json" else str(changed)
        answers.append(Raw(text.encode("utf-8", "surrogatepass"), status=said.get("status", 0), error=said.get("error", "")))
    judged(fact, tuple(answers))


LOGIN = st.text("abcXYZ019._~!$&'()*+,;=%-", min_size=6, max_size=12)


@given(
    user=LOGIN,
    password=LOGIN,
    scheme=st.sampled_from(["https", "http", "ftp", "git+https", "ssh"]),
    before=st.text("ab [=", max_size=5),
)
@example(user="robot1", password="a@b@c!", scheme="https", before="deb ")
def test_no_login_stays_in_an_address(user: str, password: str, scheme: str, before: str) -> None:
    shown = redacted(f"{before}{scheme}://{user}:{password}@host.example.com/path?x=1")
    assert shown == f"{before}{scheme}://REDACTED@host.example.com/path?x=1"


@pytest.mark.parametrize(
    "address",
    [
        "https://host/a@b",
        "git+ssh://git@host/x.git@v1",
        "file:///a@b/c",
        "https://host/?monkey=1&page=2",
        "cdrom:[Debian]/",
        "a@b.c",
    ],
)
def test_what_is_no_secret_stays(address: str) -> None:
    assert redacted(address) == address


def test_five_thousand_packages_are_read_in_time() -> None:
    lines = (f"package-{i}\t{i % 3}\t{i}.1\t{i}.el9\tx86_64\n" for i in range(5000))
    answer = (Raw("".join(lines).encode(), status=0),)
    best = 1.0
    for _ in range(3):
        began = time.process_time()
        value = packages_rpm.parse(answer)
        plain(value)
        best = min(best, time.process_time() - began)
    assert isinstance(value, Value)
    assert value.value.count == 5000
    assert best < 0.1


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        ("nccl", 22907, "2.29.7"),
        ("nccl", 21805, "2.18.5"),
        ("nccl", 2804, "2.8.4"),
        ("cudnn", 92000, "9.20.0"),
        ("cudnn", 8902, "8.9.2"),
        ("cudart", 13000, "13.0"),
        ("cudart", 12080, "12.8"),
        ("cudart", 11080, "11.8"),
    ],
)
def test_version_numbers_of_headers(kind: str, number: int, text: str) -> None:
    assert cuda_libraries.spelled(kind, number) == Value(text)


def test_the_probes_of_packages_are_those_of_the_plan() -> None:
    from reconciler.facts import packages

    assert packages_rpm.FACT.probe(About()) == packages.RPM
    assert packages_deb.FACT.probe(About()) == packages.DEB
