"""What a node is, where a lab lives, and the command line: pure, without root."""

from pathlib import Path

import pytest

from lab.cli import main, parser, split_command
from lab.config import LabConfig
from lab.errors import UsageError, nearest
from lab.nodespec import NodeSpec, default_names, parse_option, size_bytes


@pytest.mark.parametrize(
    ("name", "face", "number"),
    [("gpu01", "el9", 11), ("gpu02", "el9", 12), ("gpu32", "el9", 42), ("deb01", "debian", 101)],
)
def test_name_says_face_and_address(name: str, face: str, number: int) -> None:
    spec = NodeSpec(name)
    assert (spec.face, spec.host_number) == (face, number)


@pytest.mark.parametrize("name", ["gpu00", "gpu1", "gpu81", "web01", "", "gpu01x", "GPU01"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="gpu01 to gpu80"):
        NodeSpec(name)


def test_addresses_of_all_names_differ() -> None:
    numbers = [NodeSpec(name).host_number for name in default_names(80, 80)]
    assert len(set(numbers)) == 160
    assert max(numbers) < 255


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("gpu01", NodeSpec("gpu01")),
        ("gpu01:mem=6G,disk=host", NodeSpec("gpu01", mem="6G", disk="host")),
        ("deb02:size=512M", NodeSpec("deb02", size="512M")),
        ("gpu01:bind=/a:/b,bind-ro=/c:/d", NodeSpec("gpu01", bind=("/a:/b",), bind_ro=("/c:/d",))),
    ],
)
def test_option_is_parsed(text: str, spec: NodeSpec) -> None:
    assert parse_option(text) == spec
    assert NodeSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu01:mem=lots", "a number and M or G"),
        ("gpu01:memory=1G", "did you mean mem"),
        ("gpu01:disk=ssd", "tmpfs or host"),
        ("gpu01:mem", "KEY=VALUE"),
        ("gpu01:bind=relative:/x", "/SOURCE:/TARGET"),
    ],
)
def test_bad_option_says_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_option(text)


def test_sizes() -> None:
    assert size_bytes("512M") == 512 * 1024**2
    assert size_bytes("6G") == 6 * 1024**3


def test_nearest_name_comes_first() -> None:
    assert nearest("gpu1", ["gpu01", "deb01"]).startswith("did you mean gpu01?")
    assert nearest("x", []) == "allowed: none"


def test_config_from_environment() -> None:
    config = LabConfig.from_environment({"RECONCILE_LAB_NAME": "two", "RECONCILE_LAB_SUBNET": "10.89.7"})
    assert config.state == Path("/run/reconcile-two")
    assert config.gateway == "10.89.7.1"
    assert config.network == "10.89.7.0/24"
    assert LabConfig.from_environment({}) == LabConfig()


@pytest.mark.parametrize("name", ["lab", "eightchr"])
def test_labs_side_by_side_have_nothing_in_common_but_the_cache(name: str) -> None:
    first = LabConfig(name=name, subnet="10.88.254")
    labs = [first, *(first.beside(number) for number in range(1, 13))]
    for own in ("name", "network", "state", "lock", "bridge", "nft_table", "cgroup"):
        assert len({getattr(lab, own) for lab in labs}) == len(labs), own
    assert {lab.cache for lab in labs} == {first.cache}
    # what is swept by the beginning of its name is never another lab's
    assert [b.name for a in labs for b in labs if a is not b and b.link("gpu01").startswith(a.link(""))] == []
    assert [LabConfig.from_environment(lab.environment) for lab in labs] == labs


@pytest.mark.parametrize("bad", [{"name": "ninechars"}, {"name": "Lab"}, {"subnet": "10.88"}, {"subnet": "10.88.256"}])
def test_config_refuses_what_would_not_work(bad: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        LabConfig(**bad)  # type: ignore[arg-type]


def test_interface_names_fit() -> None:
    config = LabConfig(name="eightchr")
    assert max(len(config.link(name)) for name in default_names(80, 80)) <= 15
    assert len(config.bridge) <= 15


@pytest.mark.parametrize(
    ("argv", "before", "command"),
    [
        (["run", "gpu01", "--", "ls", "-l"], ["run", "gpu01"], "ls -l"),
        (["run", "--", "echo", "--", "x"], ["run"], "echo -- x"),
        (["status"], ["status"], ""),
    ],
)
def test_command_after_dashes(argv: list[str], before: list[str], command: str) -> None:
    assert split_command(argv) == (before, command)


@pytest.mark.parametrize("argv", [["slow", "gpu01", "gpu02", "1mbit"], ["loss", "gpu01", "gpu02", "20"]])
def test_last_word_of_a_fault_is_its_value(argv: list[str]) -> None:
    parsed = parser().parse_args(argv)
    assert (parsed.nodes, parsed.value) == (["gpu01", "gpu02"], argv[-1])


@pytest.mark.parametrize("argv", [[], ["fly"], ["up", "--node", "gpu1"], ["poweroff"]])
def test_bad_command_line_is_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(argv)
    assert exit_.value.code == 2
    assert "python -m lab" in capsys.readouterr().err


def test_lab_that_is_not_up_is_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("RECONCILE_LAB_NAME", "nosuch")
    assert main(["cut", "gpu01"]) == 3
    assert main(["run", "--", "true"]) == 3
    assert "lab nosuch is not up" in capsys.readouterr().err
    assert main(["status", "--json"]) == 0
    assert '"up": false' in capsys.readouterr().out
