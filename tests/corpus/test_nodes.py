"""The comparison itself: what it calls the same, and above all what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.corpus.nodes import differences

GONE, UNREAD = {"absent": "NoCuda"}, {"unknown": "NotANumber", "detail": "4O"}
PORTS = {"a": {"ports": {"1": {"rate": 100}, "2": {"rate": {"unknown": "PortNotActive", "detail": "40"}}}}}
COUNTED = {"each": {"keys": {"kind": ["kind"], "n": ["devices", "#"]}}}
NETS = [{"kind": "IB", "devices": ["m0", "m1"]}, {"kind": "Socket", "devices": ["eth0"]}]


@pytest.mark.parametrize(
    ("value", "expected", "node", "equal"),
    [
        (7, 7, [], True),
        (7, 8, [], False),
        (0, None, [], False),
        (GONE, None, [], True),
        (GONE, 0, [], False),
        (GONE, "N/A", [], True),
        (UNREAD, "4O", [], True),
        (UNREAD, "40", [], False),
        (1, True, [], False),
        (GONE, "No CUDA", {"as": {"NoCuda": "No CUDA"}}, True),
        (UNREAD, "No CUDA", {"as": {"NoCuda": "No CUDA"}}, False),
        ({"0": "PIX"}, {0: "PIX"}, [], True),
        ({"0": "PIX", "1": "PIX"}, {0: "PIX"}, [], False),
        ({"0": "PIX", "1": "PIX"}, {0: "PIX"}, {"every": []}, True),
        ({"0": "SYS"}, {0: "PIX"}, {"every": []}, False),
        ({}, {0: "PIX"}, {"every": []}, False),
        ("error: skipping h# 753", "error skipping 753", {"as": "quoted"}, True),
        ("error: skipping h# 753", "skipping error", {"as": "quoted"}, False),
        ("", "error", {"as": "quoted"}, False),
        (PORTS, [40, 100], {"gather": ["*", "ports", "*", "rate"], "as": "shown"}, True),
        (PORTS, [100], {"gather": ["*", "ports", "*", "rate"], "as": "shown"}, False),
        ([GONE, GONE], None, {"as": "one"}, True),
        ([GONE, 1], None, {"as": "one"}, False),
        (["A", "B"], "A/B", {"as": {"join": "/"}}, True),
        (["B", "A"], "A/B", {"as": {"join": "/"}}, False),
        ({}, "", {"as": {"join": ","}}, True),
        (GONE, "", {"as": {"join": ","}}, False),
        (NETS, [{"kind": "IB", "n": 2}, {"kind": "Socket", "n": 1}], COUNTED, True),
        (NETS, [{"kind": "IB", "n": 2}], COUNTED, False),
        (NETS, [{"kind": "IB", "x": 2}, {}], {"each": {"keys": {"kind": ["kind"]}}}, False),
        ({"a": 1, "b": "x"}, "1 (x)", {"paths": [["a"], ["b"]], "as": "{} ({})"}, True),
    ],
)
def test_what_is_the_same(value: Any, expected: Any, node: Any, equal: bool) -> None:
    assert (not list(differences(value, expected, node, "key"))) is equal
