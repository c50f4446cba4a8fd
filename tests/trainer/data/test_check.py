"""The check as a function: what is found in small sets, from any kind of file, and that batches do not matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acceptance import planted_data
from trainer.data import check as module
from trainer.data.check import Options, check
from trainer.data.ledger import BEGINNING, one_line
from trainer.data.read import rows
from trainer.data.report import Asked, Finding, Report
from trainer.data.row import Row
from trainer.data.split import split

pytestmark = pytest.mark.train
LONG = "some words that are long enough to be compared with what other rows have to say"
LONGER = f"{LONG}, and then some that nobody else has ever said or will say, whatever the question may have been"


def asked(source: Path, validation: Path | str = "", share: float = 0.05, seed: int = 42) -> Asked:
    return Asked(str(source), str(validation), 0.0 if validation else share, seed, "", 0)


def line(question: str, answer: str = "answer", **more: Any) -> str:
    return json.dumps({"instruction": question, "output": answer, **more}, ensure_ascii=False) + "\n"


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines), encoding="utf-8")
    return path


def codes(report: Report) -> dict[str, int]:
    return {finding.code: finding.count for finding in report.findings}


def finding(report: Report, code: str) -> Finding:
    found = report.found(code)
    assert found is not None
    return found


def test_a_good_set_has_no_finding(tmp_path: Path) -> None:
    report = check(asked(write(tmp_path / "a.jsonl", *(line(f"{n * 7919} and {n * n} of {n * 104729 % 9973}") for n in range(40)))))
    assert report.good
    assert codes(report) == {}
    assert (report.rows, report.training, report.validation) == (40, 38, 2)
    assert report.formats == {"instruction": 40}


@pytest.mark.parametrize("batch", [(1, 1), (3, 10**6), (512, 65536)])
def test_a_planted_set_is_judged_the_same_whatever_is_worked_on_together(
    batch: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted_data, "ROWS", 150)
    planted = planted_data.plant(tmp_path, 7)
    monkeypatch.setattr(module, "_BATCH_ROWS", batch[0])
    monkeypatch.setattr(module, "_BATCH_BYTES", batch[1])
    report = check(asked(planted.training, planted.validation), options=Options(show=100))
    wanted = {
        code: places for code, places in planted.faults.items() if code not in ("OverLength", "TemplateRefuses", "UnreadKeys")
    }
    found = {one.code: {example.where for example in one.examples} for one in report.findings if one.code != "UnreadKeys"}
    assert found == wanted


def test_the_split_is_the_one_that_training_makes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *(line(f"question {n % 90}") for n in range(100)))
    given = [row for row in rows(path) if isinstance(row, Row)]
    for share, seed in ((0.05, 42), (0.3, 1), (0.5, 7)):
        training, validation = split(given, share, seed)
        report = check(asked(path, share=share, seed=seed))
        assert (report.training, report.validation) == (len(training), len(validation))


def test_copies_are_told_with_the_place_of_the_first(tmp_path: Path) -> None:
    few = ("a", "b", "a", "a")
    path = write(tmp_path / "a.jsonl", *map(line, few), line(LONGER), "\n", line(f"{LONGER}!"), line(f"{LONGER} x"))
    report = check(asked(path, share=0))
    assert codes(report) == {"Duplicates": 2, "NearDuplicates": 2, "TrainsOnEverything": 1}
    assert (report.duplicates, report.near_duplicates) == (2, 2)
    assert [(one.where, one.what) for one in finding(report, "Duplicates").examples] == [
        (f"{path}:3", f"equal to {path}:1"),
        (f"{path}:4", f"equal to {path}:1"),
    ]
    first, second = finding(report, "NearDuplicates").examples
    assert (first.where, first.what) == (f"{path}:7", f"about 100% like {path}:5")
    assert first.text == one_line(f"{LONGER}!".encode()[:BEGINNING]) + "…"
    assert second.where == f"{path}:8"


def test_leaks_are_told_once_and_not_as_copies(tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl", line("a"), line(LONG), line("c"))
    held = write(tmp_path / "b.jsonl", line("x"), line("a"), line(f"{LONG}?"), line("x"))
    report = check(asked(train, held))
    assert codes(report) == {"Leakage": 1, "NearLeakage": 1, "Duplicates": 1}
    assert [(one.where, one.what) for one in finding(report, "Leakage").examples] == [(f"{held}:2", f"equal to {train}:1")]
    assert [(one.where, one.what) for one in finding(report, "NearLeakage").examples] == [
        (f"{held}:3", f"nearly equal to {train}:2")
    ]
    assert not report.good


def test_a_shared_system_prompt_does_not_make_rows_alike(tmp_path: Path) -> None:
    def turns(number: int) -> str:
        said = [
            ("system", LONG * 20),
            ("user", f"{number}{LONG[number:]}{number}"),
            ("assistant", f"{number * 999} is it {number}"),
        ]
        return json.dumps({"messages": [{"role": role, "content": content} for role, content in said]}) + "\n"

    assert codes(check(asked(write(tmp_path / "a.jsonl", *map(turns, range(8)))))) == {}


def test_the_same_rows_have_the_same_digest_in_another_format_and_folder(tmp_path: Path) -> None:
    pairs = [(f"question {n}", f"answer {n}") for n in range(10)]
    one = write(tmp_path / "a.jsonl", *(line(*pair) for pair in pairs))
    folder = tmp_path / "parts"
    folder.mkdir()
    write(folder / "1.json", json.dumps([{"instruction": a, "output": b, "id": a} for a, b in pairs[:4]], indent=2))
    write(folder / "2.jsonl", *(line(a, output=b) for a, b in pairs[4:]))
    first, second = check(asked(one)), check(asked(folder))
    assert first.digest == second.digest
    assert first.validation == second.validation
    assert codes(second) == {"UnreadKeys": 4}
    write(tmp_path / "c.jsonl", *(line(*pair) for pair in reversed(pairs)))
    assert check(asked(tmp_path / "c.jsonl")).digest != first.digest


def test_only_so_many_places_are_kept_of_a_million(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", line("a"), line("b"), "{}\n" * 5000, line("", ""))
    report = check(asked(path), options=Options(show=3))
    assert codes(report) == {"Malformed": 5000, "Empty": 1}
    assert [one.where for one in finding(report, "Malformed").examples] == [f"{path}:{n}" for n in (3, 4, 5)]


def test_mixed_formats_are_told_with_the_first_row_of_each(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", line("a"), line("b"), '{"prompt": "a", "chosen": "b", "rejected": "c"}\n')
    told = finding(check(asked(path)), "MixedFormats")
    assert told.count == 1
    assert [(one.where, one.what) for one in told.examples] == [(f"{path}:1", "instruction"), (f"{path}:3", "preference")]


def test_progress_is_told_while_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH_ROWS", 10)
    seen: list[int] = []
    check(asked(write(tmp_path / "a.jsonl", *(line(str(n)) for n in range(25)))), options=Options(progress=seen.append))
    assert seen == [10, 20, 25]
