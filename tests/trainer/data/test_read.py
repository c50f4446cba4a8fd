"""What is read from files: every case of tests/data/training/rows.yaml, plain and packed; sizes; sources that are none."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases import load
from trainer.data import jsontext
from trainer.data.read import Malformed, Row, SourceError, rows

GOOD = b'{"instruction": "a", "output": "b"}\n'


def content(case: dict[str, Any]) -> bytes:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    return str(case["text"]).encode() * int(case.get("repeat", 1))


def told(row: Row) -> list[Any]:
    """A row as the cases write it."""
    parts = (row.messages,) if row.kind != "preference" else (row.prompt, row.chosen, row.rejected)
    flat: list[str] = []
    for number, part in enumerate(parts):
        flat += ["|"] * bool(number) + [text for turn in part for text in (turn["role"], turn["content"])]
    return [row.line, row.kind, flat]


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize("case", load("training/rows.yaml"))
def test_every_case(case: dict[str, Any], packing: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{case.get('suffix', '.jsonl')}{packing}"
    path.write_bytes(gzip.compress(content(case)) if packing else content(case))
    found = list(rows(path))
    good = [row for row in found if isinstance(row, Row)]
    assert [told(row) for row in good] == case.get("rows", [])
    assert [[bad.line, bad.why] for bad in found if isinstance(bad, Malformed)] == case.get("malformed", [])
    assert [row.index for row in good] == list(range(len(good)))
    assert {key for row in good for key in row.unread} == set(case.get("unread", []))
    assert all(place.where == f"{path}:{place.line}" for place in found)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_may_be_as_long_as_it_may_be_and_no_byte_longer(end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsontext, "LONGEST", 100)
    path = tmp_path / "rows.jsonl"

    def line(size: int) -> bytes:
        return b'{"instruction": "' + b"x" * (size - 34) + b'", "output": "y"}'

    assert len(line(100)) == 100
    path.write_bytes((end or b"\n").join((line(100), line(101), line(102), line(5000), GOOD.strip(), line(100))) + end)
    found = list(rows(path))
    assert [(place.line, isinstance(place, Row)) for place in found] == list(
        enumerate((True, False, False, False, True, True), start=1)
    )
    assert [place.why for place in found if isinstance(place, Malformed)] == [
        f"{size:,} bytes are too long for a row: at most 100" for size in (101, 102, 5000)
    ]


def test_an_element_of_an_array_may_be_cut_anywhere_by_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [{"instruction": f"你好 {number}\n" * number, "output": '"]},{' * number} for number in range(1, 12)]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(wanted, ensure_ascii=False, indent=1))
    for piece in (1, 2, 3, 7, 64):
        monkeypatch.setattr(jsontext, "_PIECE", piece)
        found = [row for row in rows(path) if isinstance(row, Row)]
        assert [row.messages[0]["content"] for row in found] == [row["instruction"] for row in wanted]
        assert [row.line for row in found] == [2 + 4 * number for number in range(11)]


def test_an_element_that_is_too_long_ends_its_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsontext, "LONGEST", 1000)
    monkeypatch.setattr(jsontext, "_PIECE", 64)
    path = tmp_path / "rows.json"
    path.write_text('[{"instruction": "a", "output": "b"},\n{"instruction": "' + "x" * 5000 + '", "output": "b"}]')
    first, second = rows(path)
    assert isinstance(first, Row)
    assert isinstance(second, Malformed)
    assert second.line == 2
    assert re.fullmatch(r"[\d,]+ bytes are too long for a row: at most 1,000", second.why)


def test_a_packed_file_that_was_cut_off_or_altered_says_so(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    whole = gzip.compress(
        b"".join(json.dumps({"instruction": f"{n} {n * n}", "output": "b"}).encode() + b"\n" for n in range(20_000))
    )
    for damaged in (whole[:-9], whole[:-1000], whole[:5000] + b"\0" * 64 + whole[5064:], b"not packed at all"):
        path.write_bytes(damaged)
        *_, last = rows(path)
        assert isinstance(last, Malformed)
        assert last.why.startswith("the packed file is damaged here or shortly after: ")


def test_a_folder_is_read_by_name_without_what_is_hidden_or_something_else(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/z.json", "a/y.jsonl", ".hidden.jsonl", "_tmp/x.jsonl", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(GOOD)
    found = list(rows(tmp_path))
    assert [Path(row.file).relative_to(tmp_path).as_posix() for row in found] == ["a/y.jsonl", "a/z.json", "b.jsonl"]
    assert [row.index for row in found if isinstance(row, Row)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("train.jsnl", "{}/train.jsnl: no such file or folder; did you mean {}/train.jsonl?"),
        ("gone/train.jsonl", "{}/gone/train.jsonl: no such file or folder"),
        ("notes.txt", "{}/notes.txt: .txt is not read; allowed: .jsonl, .json"),
        ("empty", "{}/empty: no file in this folder can be read; allowed: .jsonl, .json"),
    ],
)
def test_what_is_no_source(source: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_bytes(GOOD)
    (tmp_path / "notes.txt").write_bytes(GOOD)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError) as caught:
        list(rows(tmp_path / source))
    (problem,) = caught.value.problems
    assert problem.startswith(said.format(tmp_path, tmp_path))


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    link = tmp_path / "rows.jsonl"
    link.symlink_to("gone.jsonl")
    with pytest.raises(SourceError, match="no such file or folder"):
        list(rows(link))
