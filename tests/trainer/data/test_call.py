"""`python -m trainer.data` as it is called: exit status, verdict, JSON, page, and every way to call it wrongly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trainer import tiny

pytestmark = pytest.mark.train
ROOT = Path(__file__).parents[3]
HELP = """
import sys
from trainer.data import cli
try:
    cli.main(["check", "--help"])
except SystemExit:
    print("numpy" in sys.modules)
"""
GOOD = "".join(json.dumps({"instruction": f"问题 {n}", "output": f"回答 {n}"}, ensure_ascii=False) + "\n" for n in range(40))


def call(folder: Path, *argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **environ}
    return subprocess.run(
        (sys.executable, "-m", "trainer.data", *argv),
        cwd=folder,
        env=known,
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "good.jsonl").write_text(GOOD, encoding="utf-8")
    (folder / "bad.jsonl").write_text(GOOD + "{}\n", encoding="utf-8")
    tiny.tokenizer().save_pretrained(folder / "model")
    bare = tiny.tokenizer()
    bare.chat_template = None
    bare.save_pretrained(folder / "bare")
    return folder


def test_good_data_is_exit_0(site: Path) -> None:
    done = call(site, "check", "good.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "GOOD: good.jsonl: can be trained on"


def test_findings_that_stop_are_exit_2(site: Path) -> None:
    done = call(site, "check", "bad.jsonl")
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.splitlines()[0] == "STOP: bad.jsonl: 1 finding to mend before training"
    assert "      bad.jsonl:41  no format that is known" in done.stdout


def test_json_with_tokens_and_a_page_in_a_terminal_without_unicode(site: Path) -> None:
    argv = ("--tokenizer", "model", "--max-length", "12", "--json", "--html", "page.html", "--cores", "1")
    done = call(site, "check", "good.jsonl", *argv, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["asked"]["max_length"] == 12
    over = sum(bar["count"] for bar in told["tokens"]["histogram"] if bar["low"] > 12)
    assert {one["code"]: one["count"] for one in told["findings"]}["OverLength"] == over > 0
    assert told["samples"][0]["text"].startswith("问题")
    page = (site / "page.html").read_text(encoding="utf-8")
    assert "问题" in page
    assert sorted(path.name for path in site.glob(".*")) == []


def test_a_tokenizer_without_a_template_stops(site: Path) -> None:
    done = call(site, "check", "good.jsonl", "--tokenizer", "bare", "--json")
    assert done.returncode == 2
    assert [one["code"] for one in json.loads(done.stdout)["findings"]] == ["NoChatTemplate"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("check", "gone.jsonl"), ["gone.jsonl: no such file or folder; did you mean good.jsonl?"]),
        (
            ("check", "good.jsonl", "--tokeniser", "model"),
            ["unrecognized arguments: --tokeniser model; --tokeniser: did you mean --tokenizer?"],
        ),
        (("chek", "good.jsonl"), ["invalid choice: 'chek'"]),
        (("check",), ["the following arguments are required: PATH"]),
        ((), ["the following arguments are required: check"]),
        (("check", "good.jsonl", "--seed", "x"), ["argument --seed: invalid int value: 'x'"]),
        (("check", "good.jsonl", "--tokenizer", "gone"), ["gone: no such folder"]),
        (
            (
                "check",
                "good.jsonl",
                "--split",
                "1",
                "--max-length",
                "5",
                "--seed",
                "-1",
                "--scratch",
                "gone",
                "--html",
                "gone/p.html",
            ),
            [
                "--split 1.0: allowed is 0",
                "--max-length 5: ",
                "--seed -1: allowed is 0",
                "--scratch gone: no such",
                "--html gone/p.html: no",
            ],
        ),
        (("check", "good.jsonl", "--split", "0.1", "--validation", "bad.jsonl"), ["--split and --validation: "]),
    ],
)
def test_a_wrong_call_is_exit_1_with_everything_that_is_wrong(argv: tuple[str, ...], said: list[str], site: Path) -> None:
    done = call(site, *argv)
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert len(lines) == len(said)
    for line, wanted in zip(lines, said, strict=True):
        assert line.startswith("error: ")
        assert wanted in line


def test_a_wrong_call_under_json_is_json(site: Path) -> None:
    done = call(site, "check", "gone.jsonl", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"error": {"problems": ["gone.jsonl: no such file or folder; did you mean good.jsonl?"]}}


def test_a_full_disk_is_told_with_its_folder_and_without_a_traceback(site: Path, tmp_path: Path) -> None:
    """A file that may not grow is as good as a disk that is full: notes on 40 rows are more than 4,000 bytes."""
    limited = ("prlimit", "--fsize=4000", sys.executable, "-m", "trainer.data", "check", "good.jsonl", "--scratch", str(tmp_path))
    known = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(limited, cwd=site, env=known, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"error: {tmp_path}: File too large (notes on rows; --scratch names another folder)\n"


def test_a_reader_that_leaves_is_no_traceback(site: Path) -> None:
    command = f"{sys.executable} -m trainer.data check good.jsonl --json | true"
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, shell=True, cwd=site, env=known, check=False, capture_output=True, text=True)
    assert done.stderr == ""


def test_help_says_the_exit_status_and_needs_no_library(site: Path) -> None:
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run((sys.executable, "-c", HELP), cwd=site, env=known, check=True, capture_output=True, text=True)
    assert "Exit status: 0" in done.stdout
    assert done.stdout.endswith("False\n")
