"""Parquet files, zst, and datasets by name (from a folder: no network)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from trainer.data.read import Malformed, Row, SourceError, rows

pytestmark = pytest.mark.train


def parquet(path: Path, found: list[dict[str, Any]]) -> Path:
    columns = {key: [row.get(key) for row in found] for row in found for key in row}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=100)
    return path


def instruction(number: int) -> dict[str, Any]:
    return {"instruction": f"问题 {number}", "input": None, "output": f"回答 {number}"}


def problem(source: str | Path) -> str:
    with pytest.raises(SourceError) as caught:
        list(rows(source))
    (said,) = caught.value.problems
    return said


def test_rows_of_a_table_have_numbers_and_no_lines(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", [instruction(number) for number in range(1000)])
    found = [row for row in rows(path) if isinstance(row, Row)]
    assert [row.messages[0]["content"] for row in found] == [f"问题 {number}" for number in range(1000)]
    assert {row.line for row in found} == {None}
    assert found[776].where == f"{path} row 777"


def test_columns_that_a_row_has_not_are_not_there(tmp_path: Path) -> None:
    """A table has every column for every row, and every key for every message."""
    first = {"messages": [{"role": "user", "content": "a", "name": None}, {"role": "assistant", "content": "b", "name": None}]}
    second = {"instruction": "c", "output": "d", "history": None}
    found = list(rows(parquet(tmp_path / "a.parquet", [first, second])))
    assert [row.kind for row in found if isinstance(row, Row)] == ["messages", "instruction"]
    assert isinstance(found[0], Row)
    assert found[0].messages == [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def test_what_is_no_row_of_a_table_is_told_by_its_number(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", [instruction(1), {"instruction": "x", "output": None}, instruction(3)])
    _, wrong, last = rows(path)
    assert isinstance(wrong, Malformed)
    assert (wrong.where, wrong.why) == (f"{path} row 2", "output is null, a text is wanted")
    assert isinstance(last, Row)
    assert (last.index, last.number) == (1, 3)


def test_bytes_that_are_no_utf8_in_a_table(tmp_path: Path) -> None:
    texts = pyarrow.array([b"a", b"\xff", b"c"], pyarrow.binary()).cast(pyarrow.string(), safe=False)
    table = pyarrow.table({"instruction": texts, "output": ["x", "y", "z"]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    first, wrong, last = rows(tmp_path / "a.parquet")
    assert isinstance(first, Row)
    assert isinstance(wrong, Malformed)
    assert wrong.why == "not UTF-8: byte 0xff"
    assert isinstance(last, Row)


def test_a_file_that_is_no_table_or_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"no table at all")
    assert problem(path).startswith(f"{path}: not Parquet, or damaged: ")
    whole = parquet(path, [instruction(number) for number in range(1000)]).read_bytes()
    path.write_bytes(whole[:100] + b"\0" * 400 + whole[500:])
    assert problem(path).startswith(f"{path}: ")


def test_a_packed_file(tmp_path: Path) -> None:
    lines = "".join(json.dumps(instruction(number), ensure_ascii=False) + "\n" for number in range(20_000)).encode()
    path = tmp_path / "a.jsonl.zst"
    with pyarrow.CompressedOutputStream(str(path), "zstd") as out:
        out.write(lines)
    found = list(rows(path))
    assert len(found) == 20_000
    assert found[-1].line == 20_000
    whole = path.read_bytes()
    for cut in (len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:cut])
        *_, last = rows(path)
        assert isinstance(last, Malformed)
        assert last.why.startswith("the packed file is damaged here or shortly after: ")
    path.write_bytes(whole[:100] + b"\0" * 50 + whole[150:])
    assert any(isinstance(row, Malformed) for row in rows(path))


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the library datasets takes for a dataset, and a cache of its own."""
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "named"
    folder.mkdir()
    for split, count in (("train", 5), ("test", 2)):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(instruction(n)) + "\n" for n in range(count)))
    return folder


@pytest.mark.parametrize(("more", "count"), [("", 5), ("::test", 2), (":default:train", 5)])
def test_a_dataset_by_its_name(more: str, count: int, named: Path) -> None:
    source = f"datasets:{named}{more}"
    found = list(rows(source))
    assert [isinstance(row, Row) for row in found] == [True] * count
    assert found[-1].where == f"{source} row {count}"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("::tset", "no split 'tset'; there are: train, test; did you mean 'test'?"),
        (":a:b:c", "allowed is datasets:NAME[:CONFIG[:SPLIT]]"),
        (":german", "ValueError: BuilderConfig 'german' not found"),
    ],
)
def test_what_is_no_split_and_no_configuration(more: str, said: str, named: Path) -> None:
    assert said in problem(f"datasets:{named}{more}")


def test_a_name_that_is_none(tmp_path: Path) -> None:
    assert problem("datasets:") == "datasets:: allowed is datasets:NAME[:CONFIG[:SPLIT]]"
    assert problem(f"datasets:{tmp_path}/gone").startswith(f"datasets:{tmp_path}/gone: ")
