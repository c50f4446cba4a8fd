"""The state of a node's GPUs: what a person may write, and what is said about what they may not."""

import json
from typing import Any

import pytest

from lab.errors import UsageError
from lab.gpus.codec import assign, encode, from_json, parse_setting, to_json
from lab.gpus.defaults import default_state
from lab.gpus.reset import after_boot, after_reset
from lab.gpus.state import Ecc, EccCounts, Mig, NodeState, Rows

STATE = default_state("gpu01")


def test_a_state_survives_its_file() -> None:
    assert from_json(to_json(STATE)) == STATE


def test_nodes_differ_and_a_node_keeps_its_identity() -> None:
    nodes = [default_state(f"gpu{number:02}") for number in range(1, 81)]
    for name in ("uuid", "serial"):
        seen = [getattr(gpu, name) for node in nodes for gpu in node.gpus]
        assert len(set(seen)) == len(seen) == 640
    assert len({nic.node_guid for node in nodes for nic in node.nics}) == 160
    assert default_state("gpu07") == nodes[6]


def set_all(*settings: str) -> NodeState:
    state = STATE
    for setting in settings:
        state = assign(state, *parse_setting(setting))
    return state


def test_settings_reach_what_they_name() -> None:
    state = set_all("gpus.5.lost=true", "gpus.1.rows.pending=true", "gpus.2.pcie.width=8", "gpus.0.compute_mode=Prohibited",
                    "nics.0.counters.link_downed=3", "links.GPU0-NIC1=PHB", "gpus.3.fan=40")  # fmt: skip
    assert state.gpus[5].lost
    assert state.gpus[1].rows.pending
    assert state.gpus[2].pcie.width == 8
    assert state.gpus[0].compute_mode == "Prohibited"
    assert state.nics[0].counters["link_downed"] == 3
    assert state.links["GPU0-NIC1"] == "PHB"
    assert state.gpus[3].fan == 40
    assert state.gpus[4] == STATE.gpus[4]


MISTAKES = {
    "gpus.5.lsot=true": "gpus.5.lsot: no such field; did you mean lost?",
    "gpu.5.lost=true": "gpu: no such field; did you mean gpus?",
    "gpus.8.lost=true": "gpus.8: a number from 0 to 7 is expected",
    "gpus.x.lost=true": "gpus.x: a number from 0 to 7 is expected",
    "gpus.5.lost=1": "gpus.5.lost: bool is expected, found 1",
    "gpus.5.temperature=true": "gpus.5.temperature: int is expected, found true",
    "gpus.5.temperature=hot": 'gpus.5.temperature: int is expected, found "hot"',
    "gpus.5.lost.now=true": "gpus.5.lost.now: gpus.5.lost is one value",
    'gpus.5.throttle=["hw_power_brak"]': "gpus.5.throttle.0: 'hw_power_brak'; did you mean hw_power_brake?",
    "gpus.5.product=NVIDIA A100 80GB": "gpus.5.product: 'NVIDIA A100 80GB'; did you mean NVIDIA A100 80GB PCIe?",
    'gpus.5.processes=[{"pid": 1}]': "gpus.5.processes.0: Process.__init__() missing 1 required",
    'gpus.5.processes=[{"pid": 1, "nmae": "x"}]': "gpus.5.processes.0.nmae: no such field; did you mean name?",
    "driver_fault=broken": "driver_fault: 'broken';",
    "links.GPU0-GPU9=SYS": "links.GPU0-GPU9: GPU0-GPU1 or GPU0-NIC0 is expected",
    "gpus.1.bus=0000:17:00.0": "gpus: two have the same bus",
    "gpus=3": "gpus: a list is expected, found 3",
    "gpus.5.lost": "'gpus.5.lost': PATH=VALUE is expected",
}


@pytest.mark.parametrize("setting", MISTAKES)
def test_a_mistake_is_named_with_its_path_and_what_is_allowed(setting: str) -> None:
    with pytest.raises(UsageError) as caught:
        set_all(setting)
    assert str(caught.value).startswith(MISTAKES[setting])


def every_value(plain: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of each value of a state as JSON."""
    parts = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    return [path, *(found for key, each in parts for found in every_value(each, (*path, key)))]


def test_no_value_may_have_another_type() -> None:
    plain = encode(STATE)
    for path in every_value({**plain, "gpus": plain["gpus"][:1], "nics": plain["nics"][:1], "links": {}})[1:]:
        wrong = json.loads(to_json(STATE))
        at = wrong
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = {"no": ["such", "value"]}
        with pytest.raises(UsageError):
            from_json(json.dumps(wrong))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"gpus": null}', "\x00"])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        from_json(text)


def test_a_reset_makes_pending_things_current_and_volatile_counters_zero() -> None:
    state = set_all("gpus.0.ecc.pending=false", "gpus.0.ecc.volatile.dram_uncorrectable=2", "gpus.0.mig.pending=true",
                    "gpus.0.ecc.aggregate.dram_uncorrectable=5",
                    "gpus.0.rows.pending=true", "gpus.0.rows.failure=true", "gpus.0.requires_reset=true",
                    "gpus.0.lost=true")  # fmt: skip
    gpu = after_reset(state.gpus[0])
    assert gpu.ecc == Ecc(current=False, pending=False, aggregate=EccCounts(dram_uncorrectable=5))
    assert gpu.mig == Mig(current=True, pending=True)
    assert gpu.rows == Rows(pending=False, failure=True)
    assert not gpu.requires_reset
    assert gpu.lost


def test_a_boot_ends_processes_and_begins_a_new_log() -> None:
    state = after_boot(set_all('gpus.0.processes=[{"pid": 1, "name": "x"}]', "gpus.0.xids=[31, 43]"))
    assert state.gpus[0].processes == ()
    assert state.gpus[0].xids == ()
    assert state.gpus[1:] == STATE.gpus[1:]
