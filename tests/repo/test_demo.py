"""The demo tells the truth: broken promises are told and counted, its site is the lab's, and nothing of the user's is used."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from demo import offline, run
from demo.shown import Done, Promises, environment, shown
from demo.site import Site
from lab import Lab, LabConfig, LabError
from reconciler.source import load_desired
from reconciler.transport import recording
from tools.sources import ROOT


@pytest.fixture
def unbooted(tmp_path: Path) -> Lab:
    """A lab that was never booted, with the files that the demo reads of one."""
    found = Lab(LabConfig("nolab", "10.97.0", cache=tmp_path / "cache", run=tmp_path / "run"))
    found.config.state.mkdir(parents=True)
    found.config.cache.mkdir()
    keys = [f"10.97.0.{n} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1dCBub3QgYSByZWFsIGtleSBhdCBhbGwhISE=\n" for n in (11, 12, 13)]
    found.known_hosts.write_text("".join(keys))
    return found


def test_a_broken_promise_is_told_with_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    promises = Promises()
    promises.check("one and one is two", True)
    promises.check("the earth is flat", False, "round")
    assert (promises.kept, promises.broken) == (1, ["the earth is flat"])
    assert "NOT AS PROMISED: the earth is flat: round" in capsys.readouterr().out


def test_a_command_is_shown_with_its_output_status_and_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = shown(("sh", "-c", "echo said; exit 3"), tmp_path, {"PATH": "/usr/bin:/bin"})
    assert done == Done(3, "said\n")
    out = capfd.readouterr().out
    assert "$ sh -c echo said; exit 3\nsaid\n[exit 3, 0." in out


def test_nothing_of_the_user_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("RECONCILE_STATE_DIR", "/elsewhere")
    found = environment(tmp_path)
    assert "GIT_DIR" not in found
    assert found["RECONCILE_STATE_DIR"] == str(tmp_path / "state")
    assert found["GIT_CONFIG_GLOBAL"] == "/dev/null"


def test_the_site_is_the_labs_and_lives_in_git(unbooted: Lab, tmp_path: Path) -> None:
    site = Site(unbooted, tmp_path / "work", environment(tmp_path / "work"))
    site.create()
    loaded = load_desired(site.clone)
    assert loaded.problems == ()
    assert loaded.desired is not None
    assert [node.access.host for node in loaded.desired.nodes.values()] == ["10.97.0.11", "10.97.0.12", "10.97.0.13"]
    assert {node.access.identity for node in loaded.desired.nodes.values()} == {str(unbooted.identity)}
    site.replace("tmux: 3.2a-4.el9", "tmux: 3.2a-5.el9")
    commit = site.push("tmux")
    assert site.git("rev-parse", "--short=8", "main", cwd=site.bare).strip() == commit
    with pytest.raises(ValueError, match="no 'emacs: present'"):
        site.replace("emacs: present", "")


def test_the_verdict_names_what_broke_and_the_stand_in(unbooted: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo = run.Demo(unbooted, tmp_path / "work")
    demo.expect(Done(0, "0 changes\n"), 0, "0 changes")
    run.verdict(demo, "cold", 40.0, 62.0)
    good = capsys.readouterr().out.splitlines()[-1]
    assert good.startswith(
        "demo: all 2 promises held; this run 62 s (cold; nodes ready after 40 s); cold 62 s, warm not measured here. "
    )
    assert "STAND-IN" in good
    demo.expect(Done(2, "1 change on 1 node\n"), 0, "0 changes")
    run.verdict(demo, "warm", 2.0, 23.0)
    assert "demo: 2 of 4 promises BROKEN: exit 0; it says '0 changes'; this run 23 s" in capsys.readouterr().out
    assert run.remembered(unbooted, "warm", 20.0) == {"cold": 62.0, "warm": 20.0}


def test_a_folder_or_a_network_of_somebody_else_is_left_alone(
    unbooted: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def routes(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(argv, 0, "10.97.0.0/24 dev eth1\n" if used else "")

    used = False
    monkeypatch.setattr(run, "run", routes)
    (tmp_path / "mine").mkdir()
    with pytest.raises(LabError, match="exists already"):
        run.refuse_what_is_not_ours(unbooted, tmp_path / "mine")
    used = True
    with pytest.raises(LabError, match="in use on this machine"):
        run.refuse_what_is_not_ours(unbooted, tmp_path / "new")


def test_the_offline_demo_needs_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(offline, "ROOT", tmp_path)
    assert offline.main() == 1
    assert "no recording" in capsys.readouterr().out


def test_the_offline_demo_says_where_a_recording_has_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "manifests" / "lab-trio", tmp_path / "manifests" / "lab-trio")
    folder = tmp_path / "snapshots" / "lab-trio"
    folder.mkdir(parents=True)
    for name in ("gpu01", "gpu02", "gpu03"):
        recording.save(folder, recording.Recording(name, "0", name, "3.9.18", 0, 0.0, {}, {}, {"steps": [], "inventory": {}}))
    monkeypatch.setattr(offline, "ROOT", tmp_path)
    assert offline.main() == 1
    out = capfd.readouterr().out
    assert "does not fit any more: gpu01 " in out
    assert "demo-offline: 0 of 1 plans made from recordings." in out


def test_the_offline_demo_needs_what_it_says() -> None:
    """Nothing but the core of this project: neither the lab nor anything of the development environment."""
    program = (
        "import sys, demo.offline; sys.exit(any(name.partition('.')[0] in ('lab', 'pytest', 'coverage') for name in sys.modules))"
    )
    outside = environment(ROOT / ".demo")
    plain = {name: value for name, value in outside.items() if not name.startswith("COVERAGE")}
    assert subprocess.run((sys.executable, "-c", program), cwd=ROOT, env=plain, check=False).returncode == 0
