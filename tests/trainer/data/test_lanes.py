"""Every file of this folder runs in one lane."""

from __future__ import annotations

from pathlib import Path

from tests.trainer.data.conftest import FAST, TRAIN

HERE = Path(__file__).parent
MARK = "pytestmark = pytest.mark.train\n"


def test_every_file_is_in_one_list_and_marked_for_it() -> None:
    files = sorted(path.name for path in HERE.glob("test_*.py"))
    assert files == sorted([*FAST, *TRAIN])
    marked = [name for name in files if MARK in (HERE / name).read_text(encoding="utf-8").splitlines(keepends=True)]
    assert marked == sorted(TRAIN)
