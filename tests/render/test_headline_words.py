"""A headline that cuts a list says how much it left out."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.render.headlines import headline
from reconciler.render.headlines.words import some

SIX = [f"0000:{n}:00.0" for n in range(10, 16)]


@pytest.mark.parametrize("total", range(9))
@pytest.mark.parametrize("most", [3, 4])
def test_what_is_left_out_is_counted(total: int, most: int) -> None:
    said = some((f"n{i}" for i in range(total)), most)
    shown, _, more = said.partition(" and ")
    assert len([name for name in shown.split(", ") if name]) == min(total, most)
    assert more == (f"{total - most} more" if total > most else "")


def test_names_of_a_node_do_not_reach_the_terminal_as_they_came() -> None:
    assert "\x1b" not in some(["\x1b[2J"])


def device(address: str, **more: Any) -> dict[str, Any]:
    aer = {"fatal": 0, "nonfatal": 0}
    found = {"address": address, "device": "20b5", "answers": True, "width": 16, "width_max": 16, "driver": "nvidia", "aer": aer}
    return {**found, **more}


@pytest.mark.parametrize(
    "fault",
    [{"answers": False}, {"width": 8}, {"driver": {"absent": "NoDriver"}}, {"aer": {"fatal": 1, "nonfatal": 0}}],
    ids=lambda fault: next(iter(fault)),
)
def test_each_deviation_of_pci_devices(fault: dict[str, Any]) -> None:
    value = {"gpus": [device(address, **fault) for address in SIX], "switches": [], "unread": []}
    assert headline("pci-gpus", value).endswith(f": {', '.join(SIX[:4])} and 2 more")


def test_kernels_without_a_module() -> None:
    nobody: dict[str, list[int]] = {"pids": []}
    value = {
        "state": "loaded",
        **{key: {"absent": "NoSuchFile"} for key in ("loaded_version", "on_disk", "userspace", "fabric_manager_version")},
        "kernels": {f"5.14.{n}": {"absent": "NoSuchFile"} for n in range(6)},
        "fabric_manager": nobody,
        "persistence_daemon": nobody,
        "switches": 0,
    }
    assert headline("driver", value).endswith("no module for kernel 5.14.0, 5.14.1, 5.14.2, 5.14.3 and 2 more")
