"""Whatever a node answers for a fact of the catalogue: one of the three answers, plain JSON, a headline, never an exception."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.facts import driver, gpu_links, gpu_users, gpus, kernel_events, pci_gpus
from reconciler.facts.formats import plain
from reconciler.facts.live import LiveFact, selected
from reconciler.model.fact import Raw
from reconciler.render.headlines import headline, notes
from tests.cases import DATA, is_fact
from tests.facts.test_fuzz import raws
from tests.facts.test_gpu_nodes import answers
from tests.nodes import gpu_tree

Answers = tuple[Raw, ...]
CALLS = {
    "gpus": ["h200/nvidia-smi-q.xml"],
    "topology": ["corpus/topo/6gpu-pix-pxb-sys.txt"],
    "nvlink": ["corpus/nvsmi-nvlink/a100-status.txt"],
    "p2p": ["h200/nvidia-smi-topo-p2p.txt", "h200/nvidia-smi-topo-p2p.txt"],
}
FACTS = {
    fact.name: fact
    for fact in (
        pci_gpus.FACT, driver.FACT, driver.MODULES, gpus.FACT, gpu_users.FACT, gpu_links.TOPOLOGY, gpu_links.NVLINK, gpu_links.P2P,
        kernel_events.FACT,
    )
}  # fmt: skip
by_fact = pytest.mark.parametrize("name", FACTS)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode(), status=0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    """A good answer for each fact."""
    root: Path = tmp_path_factory.mktemp("node")
    gpu_tree.device(root, "0000:17:00.0")
    gpu_tree.device(root, "0000:c5:00.0", kind="0x068000")
    gpu_tree.loaded(root, "580.95.05", "0000:17:00.0")
    gpu_tree.libraries(root, "580.95.05")
    gpu_tree.on_disk(root, gpu_tree.KERNEL, "580.95.05")
    gpu_tree.process(root, 10, "/dev/nvidia0")
    gpu_tree.put(root / "etc/passwd", "root:x:0:0::/:/bin/sh\n")
    found = {fact.name: answers(fact, root) for fact in (pci_gpus.FACT, driver.FACT, driver.MODULES, gpu_users.FACT)}
    for name, files in CALLS.items():
        calls = [{"out": (DATA / file).read_text(), "err": "", "status": 0} for file in files]
        said = raw({"loaded": True, "calls": calls})
        found[name] = (said, *found["pci-gpus"]) if name == "gpus" else (said,)
    lines = ["<3>2026-11-30T13:43:34+00:00 [5.0] NVRM: Xid (PCI:0000:9b:00): 79, pid=4, name=p, x", "[9.5] eth0: NIC Link is Down"]
    log = {"source": "journal", "boot": "b", "lines": lines, "counts": {"Xid (PCI:0000:9b:00): 79": 3, "ink is Down": 1}}
    found["kernel-log"] = (
        raw({**log, "cursor": "journal b c", "continued": True, "again": "", "whole": True, "more": False, "tried": {}}),
    )
    return found


def holds(fact: LiveFact, said: Answers) -> None:
    found = fact.read(said)
    assert is_fact(found)
    value = plain(found)
    again = json.loads(json.dumps(value))
    json.dumps(selected(fact, again))
    for line in [headline(fact.name, again), *notes(fact.name, again)]:
        assert line.isprintable()
    if fact.merge and isinstance(again, dict) and "events" in again:
        json.dumps(fact.merge(again, again))


@by_fact
def test_a_good_answer_is_a_value(name: str, whole: dict[str, Answers]) -> None:
    found = plain(FACTS[name].read(whole[name]))
    assert not {"unknown", "absent"} & set(found)
    assert "unknown" not in headline(name, found)
    holds(FACTS[name], whole[name])


@by_fact
@given(first=raws, second=raws)
@settings(max_examples=60, deadline=None)
def test_any_bytes(name: str, first: Raw, second: Raw) -> None:
    holds(FACTS[name], (first, second))


@by_fact
@given(first=anything, second=anything)
@settings(max_examples=60, deadline=None)
def test_any_json(name: str, first: Any, second: Any) -> None:
    holds(FACTS[name], (raw(first), raw(second)))


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


def _changed(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _changed(value[path[0]], path[1:], change)
    return copy


def _torn(text: Any, chosen: random.Random) -> Any:
    """A text with a piece of it lost or doubled."""
    if not isinstance(text, str):
        return text
    at = chosen.randrange(len(text) + 1)
    return text[:at] + chosen.choice(["", "\0", text[:20], "\n", "\u202e"]) + text[at + chosen.randrange(40) :]


@by_fact
@given(seed=st.integers(0, 2**32), other=anything)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_good_answer_with_wrong_pieces(name: str, seed: int, other: Any, whole: dict[str, Answers]) -> None:
    chosen = random.Random(seed)
    said = [json.loads(each.out) for each in whole[name]]
    for _ in range(chosen.randint(1, 3)):
        number = chosen.randrange(len(said))
        place = chosen.choice(_places(said[number]))
        if chosen.random() < 0.5:
            said[number] = _changed(said[number], place, lambda text: _torn(text, chosen))
        else:
            said[number] = _changed(said[number], place, lambda _: other)
    holds(FACTS[name], tuple(map(raw, said)))
