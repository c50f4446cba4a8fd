"""Which checkpoint is whole, which is the newest, which may go."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from trainer import checkpoint, durable, result


def make(root: Path, step: int) -> Path:
    folder = checkpoint.aside(root, step)
    (folder / "inner").mkdir(parents=True)
    for name in ("model.safetensors", "inner/part", "optimizer.pt"):
        (folder / name).write_bytes(f"{name} of {step}".encode() * 100)
        (folder / name).chmod(0o600)
    files = checkpoint.settle(folder, checkpoint.contents(folder))
    checkpoint.seal(folder, step, {"world": 2}, files)
    return checkpoint.name(root, step)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for step in (8000, 9000, 10000, 11000):
        make(tmp_path, step)
    return tmp_path


def test_the_newest_is_found_and_latest_leads_to_it(root: Path) -> None:
    choice = checkpoint.newest(root)
    assert choice.found is not None
    assert (choice.found.step, choice.found.about, choice.skipped) == (11000, {"world": 2}, ())
    assert (root / "latest").readlink() == Path("checkpoint-11000")
    assert [path.name for path in (root / "latest").iterdir()]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[7] ^= 1
    path.write_bytes(data)


DAMAGES = [
    (lambda f: cut(f / "model.safetensors"), "model.safetensors has 2497 bytes, not 2500"),
    (lambda f: flip(f / "inner/part"), "inner/part was altered"),
    (lambda f: (f / "optimizer.pt").unlink(), "optimizer.pt is missing"),
    (lambda f: (f / "more").touch(), "more is not in the seal"),
    (lambda f: (f / "seal.json").unlink(), "it has no seal: its saving was cut off"),
    (lambda f: cut(f / "seal.json"), "its seal is torn or was altered"),
    (lambda f: flip(f / "seal.json"), "its seal is torn or was altered"),
    (lambda f: (f / "seal.json").write_text(durable.sealed({"format": 9})), "its format is 9, this trainer reads 1"),
    (lambda f: (f / "seal.json").write_text("[1]"), "its seal is torn or was altered"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGES, ids=[said for _, said in DAMAGES])
def test_a_damaged_one_is_passed_over_and_said(root: Path, damage: object, said: str) -> None:
    if "2497" in said:
        (root / "checkpoint-11000/model.safetensors").write_bytes(b"x" * 2500)
        sealed = checkpoint.settle(root / "checkpoint-11000", checkpoint.contents(root / "checkpoint-11000"))
        checkpoint.seal(root / "checkpoint-11000", 11000, {}, sealed)
    damage(root / "checkpoint-11000")  # type: ignore[operator]
    choice = checkpoint.newest(root)
    assert choice.found is not None
    assert choice.found.step == 10000
    assert choice.skipped == (f"checkpoint-11000 is skipped: {said}",)


def test_a_run_that_was_killed_while_it_saved_11000_goes_on_at_10000(tmp_path: Path) -> None:
    make(tmp_path, 10000)
    (checkpoint.aside(tmp_path, 11000) / "inner").mkdir(parents=True)
    choice = checkpoint.newest(tmp_path)
    assert choice.found is not None
    assert choice.found.step == 10000
    assert choice.skipped == ("checkpoint-11000 was being saved when an earlier run ended: not used",)
    assert [path.name for path in checkpoint.sweep(tmp_path)] == [".checkpoint-11000.saving"]
    assert checkpoint.newest(tmp_path).skipped == ()


def test_nothing_there_is_nothing_found(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path / "none") == checkpoint.Choice(None, ())
    assert checkpoint.steps(tmp_path) == []


def test_a_damaged_one_of_the_same_step_is_put_aside_not_overwritten(root: Path) -> None:
    flip(root / "checkpoint-11000/optimizer.pt")
    make(root, 11000)
    assert checkpoint.newest(root).skipped == ()
    assert len(list(root.glob("checkpoint-11000.damaged-*"))) == 1


def test_anybody_can_read_it(root: Path) -> None:
    for path in (root / "checkpoint-11000", *(root / "checkpoint-11000").rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o755 if path.is_dir() else 0o644), path


@pytest.mark.parametrize(
    ("last", "best", "every", "gone"),
    [
        (2, None, 0, [100, 200, 300]),
        (1, None, 0, [100, 200, 300, 400]),
        (2, 200, 0, [100, 300]),
        (1, None, 200, [100, 300]),
        (9, None, 0, []),
    ],
)
def test_what_may_go(last: int, best: int | None, every: int, gone: list[int]) -> None:
    assert checkpoint.expendable([500, 100, 300, 200, 400], last, best, every) == gone


def test_pruning_deletes_only_what_is_sealed(root: Path) -> None:
    (root / "checkpoint-8000/seal.json").unlink()
    assert checkpoint.prune(root, 2) == [9000]
    assert checkpoint.steps(root) == [11000, 10000, 8000]


def test_every_altered_file_is_told(root: Path) -> None:
    found = checkpoint.read_seal(root / "checkpoint-11000")
    assert isinstance(found, checkpoint.Sealed)
    for name in found.files:
        flip(found.path / name)
    assert checkpoint.faults(found) == sorted(f"{name} was altered" for name in found.files)


def test_a_result_is_sealed_and_an_altered_one_is_none(tmp_path: Path) -> None:
    path = result.write(tmp_path, result.Result("preempted", step=7, metrics={"loss": 0.5}))
    found = result.read(tmp_path)
    assert found is not None
    assert (found["status"], found["step"], found["metrics"]) == ("preempted", 7, {"loss": 0.5})
    path.write_text(path.read_text().replace('"step": 7', '"step": 8'))
    assert result.read(tmp_path) is None
    assert result.read(tmp_path / "none") is None
