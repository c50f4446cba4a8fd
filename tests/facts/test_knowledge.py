"""What comes with the package: meanings of Xid numbers and names of devices, whole and with their sources."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.data import pci, xid
from reconciler.facts import kernel_log
from reconciler.model.fact import Value
from reconciler.render.headlines import headline, notes
from tests.cases import DATA


def document(name: str) -> Any:
    return yaml.safe_load((resources.files("reconciler.data") / name).read_text(encoding="utf-8"))


def test_every_xid_is_there_once_with_words_a_class_and_a_source() -> None:
    entries = document("xid.yaml")["xids"]
    assert len({entry["code"] for entry in entries}) == len(entries) == len(xid.catalogue()) > 100
    classes = {"application", "application_or_hardware", "hardware", "driver_or_firmware", "informational", "unknown"}
    for found in xid.catalogue().values():
        assert found.meaning.strip()
        assert found.cls in classes
        assert found.severity in ("info", "warn", "critical", "parse")
    assert {"nvidia_catalog", "driver_header", "aws", "gpud", "gcm", "policy"} <= set(document("xid.yaml")["sources"])


@pytest.mark.parametrize("file", sorted((DATA / "corpus/kernel-log").glob("*.txt")), ids=lambda file: file.stem)
def test_every_xid_of_the_corpus_has_a_meaning(file: Path) -> None:
    log = kernel_log.parse(file.read_text(errors="replace"))
    codes = set(log.value.codes) if isinstance(log, Value) else set()
    assert codes <= set(xid.catalogue())


def seen(**more: Any) -> dict[str, Any]:
    about = {"source": "journal", "events": [], "kinds": {}, "xids": {}, "lost": [], "recovery": {}, "unlisted": 0}
    return {**about, "whole": True, "more": False, "continued": False, "again": "", "cursor": "c", "tried": {}, **more}


def test_the_headline_names_what_an_xid_means_and_the_detail_who_says_so() -> None:
    value = seen(xids={"0000:9b:00": {"79": 3, "999": 1}}, kinds={"xid": 4, "oom-kill": 2}, lost=["0000:9b:00.0"], unlisted=7)
    assert headline("kernel-log", value) == (
        "GPU 0000:9b:00.0 lost; Xid 79 on 0000:9b:00 (3 lines): GPU has fallen off the bus; Xid 999 on 0000:9b:00; 2 x oom-kill; "
        "7 lines not listed (journal)"
    )
    first, second, source = notes("kernel-log", value)
    assert first.startswith("Xid 79: GPU has fallen off the bus (")
    assert "hardware" in first
    assert second == "Xid 999: not in the catalogue"
    assert "NVIDIA" in source
    assert notes("kernel-log", seen()) == []


def test_the_worst_comes_first() -> None:
    value = seen(xids={"0000:17:00": {"31": 1, "43": 1, "63": 1}, "0000:9b:00": {"79": 1}})
    assert headline("kernel-log", value).startswith("Xid 79 on 0000:9b:00: ")
    assert "; 1 more Xid (" in headline("kernel-log", value)


def test_the_headline_says_what_was_not_read() -> None:
    assert headline("kernel-log", seen()) == "nothing of interest (journal)"
    cut = seen(whole=False, more=True, source="kmsg")
    assert (
        headline("kernel-log", cut) == "nothing of interest (kmsg, not read to the end yet, the beginning of the boot is missing)"
    )


def test_names_of_devices_are_by_four_digits() -> None:
    assert all(len(key) == 4 and int(key, 16) for key in pci.names())
    assert pci.names()["20b5"] == "A100 PCIe 80GB"
