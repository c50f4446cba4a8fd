"""The work as each tool gets it: the same resources everywhere, and manifests that our own loader takes."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from benchmarks.peers import work
from benchmarks.peers.work import Endpoint
from reconciler.source.api import validate_path

ENDPOINTS = tuple(Endpoint(f"gpu{n:02}", f"10.0.0.{n}", 2200 + n) for n in (1, 2, 3))
NAMES = work.names_of(ENDPOINTS)


def test_the_manifest_is_valid_and_declares_the_resources_on_each_node(tmp_path: Path) -> None:
    work.write_files(tmp_path / "files")
    (tmp_path / "site.yaml").write_text(work.manifest(ENDPOINTS, NAMES, Path("/root/.ssh/id_ed25519")))
    (tmp_path / "known_hosts").write_text(
        "[127.0.0.1]:2201 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1dCBub3QgYSByZWFsIGtleSBhdCBhbGwhISE=\n"
    )
    loaded = validate_path(tmp_path)
    assert not loaded.problems
    assert loaded.desired is not None
    for node in loaded.desired.nodes.values():
        assert len(node.resources) == work.RESOURCES == 15
        assert {work.task_of(str(r.id)) for r in node.resources} == set(work.TASKS)


def test_ansible_has_each_task_once_and_shows_the_facts(tmp_path: Path) -> None:
    (play,) = yaml.safe_load(work.playbook(NAMES, tmp_path))
    assert tuple(task["name"] for task in play["tasks"]) == work.TASKS
    (play,) = yaml.safe_load(work.facts_playbook())
    assert tuple(play["tasks"][-1]["debug"]["msg"]) == work.FACTS
    assert len(work.FACTS) == 20


def test_pyinfra_has_the_same_files_packages_and_names(tmp_path: Path) -> None:
    told = json.loads(work.for_pyinfra(NAMES, tmp_path))
    assert set(told["files"]) == set(work.FILES)
    assert len(told["present"]) + len(told["absent"]) + len(told["files"]) + len(told["units"]) + 2 == work.RESOURCES
    deploy = Path(work.__file__).with_name("pyinfra_plan.py").read_text()
    assert all(f'name="{task}"' in deploy for task in work.TASKS if task not in {*work.FILES, *work.UNITS})


def test_each_drift_is_one_task_of_its_own() -> None:
    tasks = [task for _, task in work.DRIFT]
    assert len(set(tasks)) == len(tasks)
    assert set(tasks) <= set(work.TASKS)
