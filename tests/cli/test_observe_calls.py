"""`reconcile observe` called in ways that cannot be meant, and where it may not write; recordings that are chosen by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler import cli
from reconciler.apply import observations
from reconciler.errors import Unreachable
from reconciler.model.seen import NodeSeen
from tests.cli.conftest import BOOT
from tests.cli.conftest import Run as Call
from tests.nodes.site import Site


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("--as", "me"), "--as means something only together with --local"),
        (("--local", "gpu01"), "--local and NODE cannot be said together"),
        (("--local", "--path", "."), "--local and --path cannot be said together"),
        (("--local", "--commit", "HEAD"), "--local and --commit cannot be said together"),
        (("--local", "--cluster", "x"), "--local and --cluster cannot be said together"),
        (("--from", "x", "--last"), "--from and --last cannot be said together"),
        (("--from", "x", "--record", "y"), "--from and --record cannot be said together"),
        (("--from", "x", "--local", "--as", "me"), "--from and --as cannot be said together"),
        (("--last", "--record", "x"), "--last and --record cannot be said together"),
        (("--last", "--environment", "/x"), "--last and --environment cannot be said together"),
        (("--environment", "x/y"), "--environment x/y: not an absolute path"),
        *((("--local", "--as", name), f"'{name}' is no name of a node") for name in ("../x", "a b", "A", "/x", ".", "a/b", "")),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_happens(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["observe", *call, "--state-dir", str(tmp_path / "deep/state")]) == 1
    assert said in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../evil", "a/b", "", ".."])
def test_what_is_kept_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "kept").mkdir()
    with pytest.raises(ValueError, match="no name for a file"):
        observations.save(tmp_path / "kept", name, NodeSeen(BOOT))
    assert [path.name for path in tmp_path.rglob("*")] == ["kept"]


def test_recorded_machines_are_chosen_by_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = str(tmp_path / "kept")
    for name in ("h100", "h200"):
        state = ("--state-dir", str(tmp_path / "state"))
        assert cli.run(["observe", "--local", "--as", name, "--fact", "boot", "--record", kept, *state]) == 0
    capfd.readouterr()
    assert cli.run(["observe", "h200", "--local", "--from", kept, "--fact", "boot", "--json"]) == 0
    assert list(json.loads(capfd.readouterr().out)["nodes"]) == ["h200"]
    assert cli.run(["observe", "h20", "--local", "--from", kept]) == 1
    assert "there is no recording of h20 in" in (said := capfd.readouterr().err)
    assert "did you mean 'h200'?" in said


def test_a_recording_is_as_old_as_it_is(run: Call, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    run("observe", "--path", "@", "--fact", "boot", "--record", str(kept))
    for file in kept.iterdir():
        file.write_text(json.dumps({**json.loads(file.read_text()), "taken": 1_000_000_000.5}))
    _, out, _ = run("observe", "--path", "@", "--fact", "boot", "--json", "--from", str(kept))
    assert {node["facts"]["boot"]["taken"] for node in json.loads(out)["nodes"].values()} == {1_000_000_000.5}


@pytest.mark.parametrize("option", ["--record", "--state-dir"])
def test_where_nothing_can_be_written_no_node_is_asked(run: Call, site: Site, tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("kept")
    site.down["gpu01"] = Unreachable("ConnectionRefused", host="10.0.0.1", port=22)  # would be exit 4 if it were asked
    for place in (tmp_path / "file", tmp_path / "file/below"):
        code, out, err = run("observe", "--path", "@", "--fact", "boot", option, str(place))
        assert (code, out) == (1, "")
        assert ("cannot take a recording" if option == "--record" else "cannot be used") in err
    assert (tmp_path / "file").read_text() == "kept"


def test_a_state_directory_that_is_a_file_is_not_called_damaged(run: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    code, _, err = run("observe", "--path", "@", "--last", "--state-dir", str(tmp_path / "file"))
    assert (code, "cannot be used: Not a directory" in err, "remove it" in err) == (1, True, False)


def test_a_folder_without_recordings_is_a_wrong_call(run: Call, tmp_path: Path) -> None:
    code, out, err = run("observe", "--path", "@", "--from", str(tmp_path / "nowhere"))
    assert (code, out) == (1, "")
    assert "there is no recording in" in err
