"""A node's state for the history: the same state is the same text."""

from __future__ import annotations

import json
from dataclasses import replace

from reconciler.model.fact import Facts
from reconciler.plan.normalise import normalise, probes
from tests.plan.worlds import Case, ask, node

CASE: Case = {
    "declared": [{"package": "tmux", "ensure": "3.2a-4.el9"}, {"file": "/etc/motd", "content": "hi\n"}, {"hostname": "gpu01"}],
    "found": {
        "rpm": ["tmux 0 3.2a 4.el9 x86_64", "glibc 0 2.34 1 x86_64", "glibc 0 2.34 1 i686"],
        "deb": {"error": "missing"},
        "locks": "tmux-0:3.2a-4.el9.*\n",
        "hostname": ["gpu01", {"error": "denied"}],
        "files": {"/etc/motd": {"content": "hi\n"}},
    },
}


def test_a_whole_node() -> None:
    wanted = node(CASE)
    found = normalise(wanted, Facts(ask(probes(wanted), CASE)))
    digest = found["resources"]["File//etc/motd"].pop("content")
    assert digest.startswith("sha256:")
    assert found == {
        "format": "reconcile-snapshot/1",
        "node": "gpu01",
        "distribution": "centos-stream-9",
        "hostname": {"static": "gpu01", "running": {"unknown": "PermissionDenied"}},
        "packages": {
            "rpm": {"glibc": ["2.34-1.i686", "2.34-1.x86_64"], "tmux": ["3.2a-4.el9.x86_64"]},
            "deb": {"absent": "NotInstalled"},
        },
        "locks": {"tmux": ["3.2a-4.el9"]},
        "resources": {
            "File//etc/motd": {"type": "file", "owner": "root", "group": "root", "mode": "0644"},
            "Hostname/gpu01": {"unknown": "PermissionDenied"},
            "Package/tmux": {"version": "3.2a-4.el9", "lock": "3.2a-4.el9"},
        },
    }


def test_time_boot_and_duration_are_not_state() -> None:
    wanted = node(CASE)
    once = ask(probes(wanted), CASE)
    later = {
        k: replace(r, taken=9.0, boot_id="other", raws=tuple(replace(x, milliseconds=7.0) for x in r.raws)) for k, r in once.items()
    }
    texts = {json.dumps(normalise(wanted, Facts(r)), sort_keys=True) for r in (once, later)}
    assert len(texts) == 1


def test_a_node_of_which_nothing_is_known() -> None:
    found = normalise(node(CASE), Facts())
    assert found["distribution"] == found["locks"] == found["packages"]["rpm"] == {"unknown": "NotAsked"}
    assert set(found["resources"]) == {"File//etc/motd", "Hostname/gpu01", "Package/tmux"}
