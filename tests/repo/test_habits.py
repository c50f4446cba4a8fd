"""Sizes and habits: this repository keeps them, and what does not is found."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from tools import habits
from tools.sources import ROOT, Finding, files

CASES = {
    "try:\n    f()\nexcept Exception:\n    pass\n": "catches every error and does nothing about it",
    "try:\n    f()\nexcept:\n    ...\n": "catches every error and does nothing about it",
    "for x in y:\n    try:\n        f()\n    except (OSError, BaseException):\n        continue\n": "catches every error",
    "with contextlib.suppress(Exception):\n    f()\n": "suppresses every error",
    "import pytest\n@pytest.mark.skipif(True, reason='')\ndef test_f(): ...\n": "skipif",
    "import pytest\npytest.skip('no')\n": "skip",
    "import pytest\n@pytest.mark.xfail\ndef test_f(): ...\n": "xfail",
    "import unittest\n@unittest.skip('no')\ndef test_f(): ...\n": "skip",
    "# TO" + "DO later\n": "do it",
    "x = 1\n" * 301: "301 lines",
    "def f():\n" + "    x = 1\n" * 40: "f has 41 lines",
}
FINE = (
    "try:\n    f()\nexcept OSError:\n    pass\n",
    "try:\n    f()\nexcept Exception as e:\n    tell(e)\n",
    "with contextlib.suppress(OSError):\n    f()\n",
    "parser.skip('a word')\n",
    "def f():\n" + "    x = 1\n" * 39,
    "x = 1\n" * 300,
)


def repository(folder: Path, text: str) -> Path:
    subprocess.run(("git", "init", "--quiet", str(folder)), check=True)
    (folder / "module.py").write_text(text)
    return folder


def test_this_repository_keeps_its_habits() -> None:
    assert habits.findings() == []


@pytest.mark.parametrize(("text", "told"), CASES.items(), ids=range(len(CASES)))
def test_a_bad_habit_is_found_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    found = habits.findings(repository(tmp_path, text))
    assert len(found) == 1
    assert found[0].file == "module.py"
    assert told in str(found[0])
    assert habits.main(found) == 1


@pytest.mark.parametrize("text", FINE, ids=range(len(FINE)))
def test_a_good_one_is_not(tmp_path: Path, text: str) -> None:
    assert habits.findings(repository(tmp_path, text)) == []


def test_every_exception_is_about_something_that_is_there() -> None:
    """An exemption whose file is gone, or needs it no more, goes as well."""
    for entry, why in habits.EXEMPT.items():
        name, _, what = entry.partition(":")
        assert why
        assert what in (ROOT / name).read_text(encoding="utf-8")


def test_findings_are_told_as_file_line_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert habits.main([Finding("a.py", 3, "is wrong")]) == 1
    assert capsys.readouterr().out == "a.py:3: is wrong\n"
    assert habits.main([]) == 0


def test_all_python_can_be_parsed_and_belongs_to_git() -> None:
    for path in files():
        if path.suffix == ".py":
            ast.parse(path.read_text(encoding="utf-8"), str(path))
