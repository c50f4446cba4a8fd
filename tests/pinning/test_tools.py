"""Where pip's configuration says that packages come from, and which programs are taken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reconciler.errors import Usage
from reconciler.pinning.tools import Origins, interpreter, parse_configuration, uv

CASES = [
    ("", Origins()),
    ("global.index-url='https://a/simple'\n", Origins(index="https://a/simple")),
    ("global.index-url='https://a'\n:env:.index-url='https://b'\n", Origins(index="https://b")),
    (":env:.index-url='https://b'\nglobal.index-url='https://a'\n", Origins(index="https://b")),
    ("global.index-url='https://a'\ndownload.index-url='https://c'\n", Origins(index="https://c")),
    ("install.index-url='https://a'\n", Origins()),
    ("global.extra-index-url='\\nhttps://a\\nhttps://b'\n", Origins(extra=("https://a", "https://b"))),
    ("global.find-links='/w1 /w2'\n", Origins(links=("/w1", "/w2"))),
    (":env:.no-index='1'\n", Origins(bare=True)),
    (":env:.no-index='false'\n", Origins()),
    (
        "global.cert='/etc/ca.pem'\nglobal.constraint='/etc/c.txt'\n",
        Origins(certificates="/etc/ca.pem", constraints=("/etc/c.txt",)),
    ),
    ("global.index-url=not python\nWARNING: x\n", Origins()),
    ("global.index-url='it''s'\n", Origins(index="its")),
]


@pytest.mark.parametrize(("text", "found"), CASES)
def test_what_pip_config_list_says(text: str, found: Origins) -> None:
    assert parse_configuration(text) == found


def test_arguments_for_both_tools() -> None:
    told = Origins(index="https://a", extra=("https://b",), links=("/w",)).arguments()
    assert told == ("--index-url", "https://a", "--extra-index-url", "https://b", "--find-links", "/w")
    assert Origins(index="https://a", extra=("https://b",), links=("/w",), bare=True).arguments() == (
        "--no-index",
        "--find-links",
        "/w",
    )


def test_nothing_of_the_callers_environment_adds_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://x")
    monkeypatch.setenv("UV_INDEX", "https://x")
    told = Origins(certificates="/etc/ca.pem").environment()
    assert "PIP_INDEX_URL" not in told
    assert "UV_INDEX" not in told
    assert told["SSL_CERT_FILE"] == "/etc/ca.pem"


def test_programs_on_the_path_beside_us_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("path/python3.9", "path/uv", "beside/uv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "beside/python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert (uv(), interpreter("3.9")) == (str(tmp_path / "beside/uv"), str(tmp_path / "path/python3.9"))
    assert interpreter("3.10") == sys.executable
    (tmp_path / "beside/uv").unlink()
    assert uv() == str(tmp_path / "path/uv")
    (tmp_path / "path/uv").unlink()
    with pytest.raises(Usage) as raised:
        uv()
    assert raised.value.reason == "NoUv"
