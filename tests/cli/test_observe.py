"""`reconcile observe`: what is asked, what is kept, and how old it is said to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler import cli
from reconciler.apply import observations
from reconciler.commands import observe as command
from reconciler.errors import StateDamaged, Unreachable
from reconciler.facts import boot
from reconciler.facts.catalogue import LIVE
from reconciler.facts.formats import plain
from reconciler.facts.live import About, LiveFact, selected
from reconciler.model.fact import Raw, Run, Unknown, Value
from reconciler.model.seen import Cost, NodeSeen, Seen, cursors, later
from reconciler.render import headlines, observed
from reconciler.render.style import Style
from tests.cli.conftest import BOOT
from tests.cli.conftest import Run as Call
from tests.nodes.site import Site

OTHER = "11111111-08ce-4eee-9863-637b5a55c715"
PLAIN = Style(False)


def test_all_nodes_one_line_for_those_that_agree(run: Call) -> None:
    code, out, err = run("observe", "--path", "@", "--fact", "boot", "--costs")
    assert (code, err) == (0, "")
    assert out.count(f"  id: {BOOT}\n") == 2
    code, out, _ = run("observe", "--path", "@", "--last")
    assert code == 0
    assert out.splitlines()[0] == "2 facts of 2 nodes, 0 unknown"
    assert out.splitlines()[2].startswith("boot  gpu[01-02]  ")


def test_a_node_is_asked_for_the_names_of_all_whichever_are_shown(run: Call) -> None:
    _, out, _ = run("observe", "gpu02", "--path", "@", "--fact", "names", "--json")
    (node,) = json.loads(out)["nodes"].values()
    assert {"gpu01", "gpu02"} <= set(node["facts"]["names"]["value"]["names"])


def test_one_node_by_name_and_one_that_is_not_declared(run: Call) -> None:
    code, out, _ = run("observe", "gpu02", "--path", "@", "--fact", "boot", "--json")
    assert (code, list(json.loads(out)["nodes"])) == (0, ["gpu02"])
    code, out, err = run("observe", "gpu20", "--path", "@", "--json")
    assert (code, json.loads(out)["error"]["reason"]) == (1, "NoSuchNode")
    assert "did you mean 'gpu0" in err


def test_a_fact_that_is_not_known(run: Call) -> None:
    code, _, err = run("observe", "--path", "@", "--fact", "bot")
    assert code == 1
    assert "'bot' is not a fact that is known (boot" in err
    assert "did you mean 'boot'?" in err


def test_a_node_that_is_down_is_shown_as_it_was_and_as_not_seen(run: Call, site: Site) -> None:
    run("observe", "--path", "@", "--fact", "boot")
    site.down["gpu02"] = Unreachable("ConnectionRefused", host="10.0.0.2", port=22)
    code, out, _ = run("observe", "--path", "@")
    assert code == 4
    assert "1 node not seen" in out.splitlines()[0]
    assert "nothing listens on 10.0.0.2 port 22" in out
    assert out.splitlines()[2].split()[:2] == ["boot", "gpu[01-02]"]  # as it was seen before


def test_facts_of_a_recording_are_those_of_the_node(run: Call, tmp_path: Path) -> None:
    _, real, _ = run("observe", "--path", "@", "--fact", "boot", "--json", "--record", str(tmp_path / "kept"))
    _, replayed, _ = run("observe", "--path", "@", "--fact", "boot", "--json", "--from", str(tmp_path / "kept"))
    values = [
        {name: node["facts"]["boot"]["value"] for name, node in json.loads(text)["nodes"].items()} for text in (real, replayed)
    ]
    assert values[0] == values[1]
    assert len(values[0]) == 2


def test_only_the_fast_ones_are_asked_and_the_slow_ones_stay_as_old_as_they_are(
    run: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    slow = LiveFact("slow", lambda _: (Run(("sh", "-c", f"echo x >> {asked}")),), lambda _: Value({}), slow=True)
    monkeypatch.setattr(command, "LIVE", (boot.FACT, slow))
    monkeypatch.setattr(headlines, "HEADLINES", {**headlines.HEADLINES, "slow": lambda value: "read"})
    _, first, _ = run("observe", "gpu01", "--path", "@", "--json")
    _, second, _ = run("observe", "gpu01", "--path", "@", "--json", "--fast")
    before, after = (json.loads(text)["nodes"]["gpu01"]["facts"] for text in (first, second))
    assert asked.read_text() == "x\n"
    assert before["slow"]["taken"] == after["slow"]["taken"]
    assert before["boot"]["taken"] < after["boot"]["taken"]
    assert after["slow"]["age"] > after["boot"]["age"]


def test_this_machine_needs_no_repository(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["observe", "--local", "--fact", "boot", "--json", "--state-dir", str(tmp_path)]) == 0
    (node,) = json.loads(capfd.readouterr().out)["nodes"].values()
    assert node["boot_id"] == node["facts"]["boot"]["value"]["id"]


def test_what_was_kept_and_is_damaged_is_named(run: Call, tmp_path: Path) -> None:
    run("observe", "gpu01", "--path", "@", "--fact", "boot")
    kept = tmp_path / "controller/observations/gpu01.json"
    kept.write_text(kept.read_text()[:-20])
    code, _, err = run("observe", "gpu01", "--path", "@", "--last")
    assert code == 1
    assert f"{kept} is not what was kept of a node's facts: remove it, and look again" in err


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"format": "x"}', b'{"format": "reconcile-observation/1", "boot_id": "", "facts": 3}', b"[" * 5000,
     b'{"format": "reconcile-observation/1", "boot_id": "", "facts": {"a": {"value": 1, "taken": "x"}}}', b"\xff"],
)  # fmt: skip
def test_no_file_is_trusted_blindly(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "n.json").write_bytes(content)
    with pytest.raises(StateDamaged):
        observations.load(tmp_path, "n")


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    seen = NodeSeen(BOOT, {"a": Seen({"x": [1, None]}, 12.5, BOOT, Cost(1, 2.0, 3.0)), "b": Seen({"absent": "Y"}, 1.0, OTHER)})
    observations.save(tmp_path, "n", seen)
    assert observations.load(tmp_path, "n") == seen
    assert observations.load(tmp_path, "m") is None


def value(began: int = 0, **more: Any) -> Any:
    return {"id": BOOT, "began": began, **more}


def test_nodes_that_differ_have_lines_of_their_own() -> None:
    found = {
        "gpu01": NodeSeen(BOOT, {"boot": Seen(value(), 100.0, BOOT)}),
        "gpu02": NodeSeen(BOOT, {"boot": Seen(value(), 40.0, BOOT)}),
        "gpu03": NodeSeen(BOOT, {"boot": Seen({"unknown": "PermissionDenied", "detail": ""}, 100.0, BOOT)}),
        "gpu04": NodeSeen(OTHER, {"boot": Seen(value(), 100.0, BOOT)}),
        "gpu05": NodeSeen(BOOT, {"boot": Seen({"absent": "NoSuchFile"}, 100.0, BOOT)}),
    }
    assert observed.render((found, {}, {}), 100.0, PLAIN) == [
        "5 facts of 5 nodes, 1 unknown",
        "",
        f"boot  gpu[01-02]  60 s   {BOOT} since 1970-01-01 00:00:00 UTC",
        "      gpu03       0.0 s  unknown: it may not be read",
        f"      gpu04       0.0 s  {BOOT} since 1970-01-01 00:00:00 UTC; of an earlier boot",
        "      gpu05       0.0 s  absent: there is no such file",
    ]


def test_what_a_node_says_does_not_reach_the_terminal_as_it_came() -> None:
    found = {"gpu01": NodeSeen(BOOT, {"boot": Seen({"unknown": "UnreadableText", "detail": "\x1b[2J"}, 100.0, BOOT)})}
    assert "\x1b" not in "\n".join([*observed.render((found, {}, {}), 100.0, PLAIN), *observed.details((found, {}, {}), 100.0)])


def test_every_fact_has_its_headline() -> None:
    assert set(headlines.HEADLINES) == {fact.name for fact in LIVE}


def test_a_stable_selection_of_what_is_not_known_is_that() -> None:
    assert selected(boot.FACT, value(7)) == {"id": BOOT}
    assert selected(boot.FACT, plain(Unknown("DeadlinePassed"))) == {"unknown": "DeadlinePassed", "detail": ""}


def test_nothing_is_written_where_only_the_past_is_shown(run: Call, tmp_path: Path) -> None:
    code, out, _ = run("observe", "--path", "@", "--last")
    assert (code, out) == (4, "0 facts of 0 nodes, 0 unknown, 2 nodes never looked at\n\n  gpu[01-02]: never looked at\n")
    assert not (tmp_path / "controller").exists()


def test_a_fact_that_nobody_looked_at_is_named_and_not_left_out(run: Call) -> None:
    run("observe", "gpu01", "--path", "@", "--fact", "boot")
    code, out, _ = run("observe", "--path", "@", "--last", "--fact", "boot", "--fact", "hostname")
    assert code == 4  # of gpu02 there is nothing
    assert out.splitlines()[0] == "1 fact of 1 node, 0 unknown, 1 node never looked at"
    assert out.splitlines()[-2:] == ["  gpu01: never looked at: hostname", "  gpu02: never looked at"]
    code, out, _ = run("observe", "gpu01", "--path", "@", "--last", "--fact", "boot", "--fact", "hostname", "--json")
    assert (code, json.loads(out)["never"]) == (0, {"gpu01": ["hostname"]})


@pytest.mark.parametrize("form", [(), ("--fact", "boot"), ("--fact", "boot", "--fact", "hostname"), ("--fast",), ("--costs",)])
def test_each_form_says_the_verdict_first_and_why_a_node_was_not_seen(run: Call, site: Site, form: tuple[str, ...]) -> None:
    site.down["gpu02"] = Unreachable("ConnectionRefused", host="10.0.0.2", port=22)
    code, out, _ = run("observe", "--path", "@", *form)
    assert code == 4
    assert out.splitlines()[0].endswith("1 node not seen")
    assert "\n\n  gpu02: nothing listens on 10.0.0.2 port 22\n" in out
    assert "\n\n\n" not in out


def test_recorded_machines_need_no_manifest(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = str(tmp_path / "kept")
    state = ("--state-dir", str(tmp_path / "state"))
    assert cli.run(["observe", "--local", "--as", "h200", "--fact", "boot", "--json", "--record", kept, *state]) == 0
    real = json.loads(capfd.readouterr().out)["nodes"]
    assert cli.run(["observe", "--local", "--fact", "boot", "--json", "--from", kept]) == 0
    replayed = json.loads(capfd.readouterr().out)["nodes"]
    values = [{name: node["facts"]["boot"]["value"] for name, node in nodes.items()} for nodes in (real, replayed)]
    assert values[0] == values[1]
    assert list(values[0]) == ["h200"]
    (tmp_path / "empty").mkdir()
    assert cli.run(["observe", "--local", "--from", str(tmp_path / "empty")]) == 1
    assert f"there is no recording in {tmp_path / 'empty'}" in capfd.readouterr().err


def _reads_on(tmp_path: Path) -> LiveFact:
    """A log of which a look answers what is behind the cursor: a file of one letter a line."""

    def parts(about: About) -> tuple[Run, ...]:
        return (Run(("sh", "-c", f"echo {about.cursors.get('log', '0')}; cat {tmp_path}/letters")),)

    def parse(raws: tuple[Raw, ...]) -> Value[dict[str, Any]]:
        cursor, *letters = raws[0].out.decode().split()
        return Value({"letters": letters[int(cursor) :], "cursor": str(len(letters)), "continued": cursor != "0"})

    def merge(before: Any, now: Any) -> Any:
        return {**now, "letters": before["letters"] + now["letters"]} if now["continued"] else now

    return LiveFact("boot", lambda about: parts(About(cursors={"log": about.cursors.get("boot", "0")})), parse, merge=merge)


def test_the_second_look_reads_on_and_shows_the_whole(
    run: Call, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "LIVE", (_reads_on(tmp_path),))

    def look(*more: str) -> list[Any]:
        code, out, _ = run("observe", "--path", "@", "--fact", "boot", "--json", *more)
        assert code == 0
        return [node["facts"]["boot"]["value"] for node in json.loads(out)["nodes"].values()]

    (tmp_path / "letters").write_text("a\nb\n")
    assert look() == [{"letters": ["a", "b"], "cursor": "2", "continued": False}] * 2
    (tmp_path / "letters").write_text("a\nb\nc\n")
    expected = [{"letters": ["a", "b", "c"], "cursor": "3", "continued": True}] * 2
    assert look() == expected
    assert look("--last") == expected
    assert look("--record", str(tmp_path / "kept"))[0]["continued"] is False  # a recording is whole
    assert [value["letters"] for value in look("--from", str(tmp_path / "kept"))] == [["a", "b", "c"]] * 2


@pytest.mark.parametrize("old", [{"unknown": "DeadlinePassed", "detail": ""}, {"absent": "NoLog"}])
def test_only_values_of_the_same_boot_are_put_together(old: Any) -> None:
    merges = {"log": lambda before, now: {**now, "n": before["n"] + now["n"]}}
    new = NodeSeen("b1", {"log": Seen({"n": 2, "cursor": "x"}, 2.0, "b1")})
    for value, boot_id, n in (({"n": 1, "cursor": "w"}, "b1", 3), ({"n": 1, "cursor": "w"}, "b0", 2), (old, "b1", 2)):
        before = NodeSeen(boot_id, {"log": Seen(value, 1.0, boot_id), "other": Seen(1, 1.0, boot_id)})
        both = later(before, new, merges)
        assert both.facts["log"] == Seen({"n": n, "cursor": "x"}, 2.0, "b1")
        assert both.facts["other"] == before.facts["other"]
        assert cursors(before, merges) == ({"log": "w"} if "n" in value else {})
    assert (later(None, new, merges), cursors(None, merges)) == (new, {})
