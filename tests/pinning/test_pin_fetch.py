"""`reconcile pin` and `reconcile fetch` as a person calls them, with real uv and pip over a folder of tiny wheels."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.wheels import source, wheel

ROOT = Path(__file__).parents[2]
HEAD = "apiVersion: reconcile/v1\nkind: Versions\nmetadata: {name: s}\nspec:\n"


@dataclass
class Desk:
    """A folder of manifests, and one of what can be downloaded."""

    manifests: Path
    offered: Path

    @property
    def house(self) -> Path:
        return self.manifests.parent / "house"

    @property
    def lock(self) -> Path:
        return self.manifests / "locks/s/t.txt"

    def declare(self, packages: str, series: str = f"{sys.version_info[0]}.{sys.version_info[1]}") -> None:
        self.manifests.mkdir(exist_ok=True)
        (self.manifests / "v.yaml").write_text(f"{HEAD}  python: {series}\n  environments: {{t: {{packages: {packages}}}}}\n")

    def run(self, *words: str, path: str | None = None) -> tuple[int, str]:
        told = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.offered), "PYTHONPATH": str(ROOT)}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
        argv = [sys.executable, "-m", "reconciler", *words]
        env = {**kept, **told, **({"PATH": path} if path else {})}
        done = subprocess.run(argv, cwd=self.manifests, env=env, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    def fetch(self, house: str = "house") -> tuple[int, str]:
        return self.run("fetch", "--to", str(self.house.with_name(house)))

    def locked(self) -> dict[str, str]:
        lines = [line for line in self.lock.read_text().splitlines() if "==" in line]
        return dict(line.removesuffix(" \\").split("==") for line in lines)

    def wheels(self) -> list[str]:
        return sorted(f.name for f in self.house.glob("*.whl"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path / "site", tmp_path / "offered")
    wheel(found.offered, "alpha", "1.0", requires=["beta>=1"])
    wheel(found.offered, "beta", "1.0")
    found.declare("{alpha: 1.*}")
    return found


def test_a_lock_has_everything_with_hashes_and_the_second_run_changes_nothing(desk: Desk) -> None:
    code, said = desk.run("pin")
    assert (code, desk.locked()) == (0, {"alpha": "1.0", "beta": "1.0"}), said
    assert "locks/s/t.txt: 2 packages, written" in said
    before = (desk.lock.read_bytes(), desk.lock.stat().st_mtime_ns)
    assert desk.run("pin") == (0, "locks/s/t.txt: 2 packages, unchanged\n")
    assert (desk.lock.read_bytes(), desk.lock.stat().st_mtime_ns) == before
    assert desk.run("validate", "v.yaml") == (0, "valid: 1 Versions, 0 nodes\n")


def test_what_a_lock_chose_stays_until_it_is_asked_for(desk: Desk) -> None:
    desk.run("pin")
    wheel(desk.offered, "beta", "2.0")
    wheel(desk.offered, "alpha", "1.1", requires=["beta>=1"])
    assert desk.run("pin")[1] == "locks/s/t.txt: 2 packages, unchanged\n"
    assert "beta 1.0 -> 2.0" in desk.run("pin", "--upgrade")[1]
    assert desk.locked() == {"alpha": "1.1", "beta": "2.0"}


def test_a_changed_pin_is_resolved_anew(desk: Desk) -> None:
    desk.run("pin")
    wheel(desk.offered, "alpha", "2.0")
    desk.declare("{alpha: 2.0}")
    assert desk.run("pin")[0] == 0
    assert desk.locked() == {"alpha": "2.0"}


@pytest.mark.parametrize("packages", ["{alpha: 9.0}", "{nowhere: 1.0}", "{alpha: 1.0, beta: '<1'}"])
def test_what_cannot_be_resolved_is_said_and_the_lock_stays(desk: Desk, packages: str) -> None:
    desk.run("pin")
    before = desk.lock.read_bytes()
    desk.declare(packages)
    code, said = desk.run("pin")
    assert code == 1
    assert "error: s/t cannot be resolved: " in said
    assert desk.lock.read_bytes() == before


def test_manifests_with_a_mistake_are_not_pinned(desk: Desk) -> None:
    desk.declare("{alpha: one}")
    code, said = desk.run("pin")
    assert code == 1
    assert "'one' is not a version" in said
    assert not desk.lock.exists()


def test_a_name_that_no_environment_has(desk: Desk) -> None:
    assert "no stack here has */train (s/t)" in desk.run("pin", "--environment", "train")[1]


@pytest.mark.parametrize("series", ["3.11", "3.12"])
def test_a_path_without_any_program(desk: Desk, tmp_path: Path, series: str) -> None:
    """uv beside this interpreter is enough, whether that is of the series that is wanted or not."""
    (tmp_path / "bin").mkdir()
    desk.declare("{alpha: 1.*}", series)
    code, said = desk.run("pin", path=str(tmp_path / "bin"))
    beside = Path(sys.executable).with_name("uv").exists()
    assert (code == 0) if beside else ("uv is not installed on this machine" in said), said


def test_fetch_fills_the_wheelhouse_once(desk: Desk) -> None:
    desk.run("pin")
    assert "2 files downloaded" in desk.fetch()[1]
    assert desk.wheels() == ["alpha-1.0-py3-none-any.whl", "beta-1.0-py3-none-any.whl"]
    (desk.house / ".parts").mkdir()
    (desk.house / ".parts" / "half.whl").write_text("of an earlier one")
    assert "nothing new" in desk.fetch()[1]
    assert not (desk.house / ".parts").exists()


def test_a_fetch_goes_on_where_an_earlier_one_ended(desk: Desk) -> None:
    desk.run("pin")
    desk.fetch()
    (desk.house / "beta-1.0-py3-none-any.whl").unlink()
    assert "1 file downloaded" in desk.fetch()[1]


def test_a_file_that_was_damaged_in_the_wheelhouse_is_fetched_again(desk: Desk) -> None:
    desk.run("pin")
    desk.fetch()
    whole = (desk.house / "beta-1.0-py3-none-any.whl").read_bytes()
    (desk.house / "beta-1.0-py3-none-any.whl").write_bytes(whole[:-10])
    assert "1 file downloaded" in desk.fetch()[1]
    assert (desk.house / "beta-1.0-py3-none-any.whl").read_bytes() == whole


def test_a_wheel_that_is_not_what_the_lock_says_never_arrives(desk: Desk) -> None:
    desk.run("pin")
    wheel(desk.offered, "beta", "1.0", files={"beta.py": "import os  # something else\n"})
    code, said = desk.fetch()
    assert code == 1
    assert "DO NOT MATCH THE HASHES" in said
    assert desk.wheels() == []


def test_a_wheel_that_nobody_has_any_more(desk: Desk) -> None:
    desk.run("pin")
    (desk.offered / "beta-1.0-py3-none-any.whl").unlink()
    code, said = desk.fetch()
    assert code == 1
    assert "beta" in said


def test_a_lock_that_differs_is_not_fetched(desk: Desk) -> None:
    desk.run("pin")
    desk.declare("{alpha: 2.0}")
    code, said = desk.fetch()
    assert code == 1
    assert "locks/s/t.txt has alpha 1.0, declared is 2.0" in said
    assert not desk.house.exists()


def test_a_source_is_built_once_and_its_wheel_is_what_counts(desk: Desk) -> None:
    source(desk.offered, "gamma")
    desk.declare("{gamma: 1.0}")
    assert desk.run("pin")[0] == 0
    code, said = desk.fetch()
    assert "1 file built; its lock has the hash of what was built" in said, said
    lock = desk.lock.read_text()
    assert "# built once from source: gamma-1.0-py3-none-any.whl sha256:" in lock
    assert "nothing new" in desk.fetch()[1]
    assert desk.run("pin")[1] == "locks/s/t.txt: 1 package, unchanged\n"
    assert desk.lock.read_text() == lock
    code, said = desk.fetch("elsewhere")  # a second build would have another hash
    assert code == 1
    assert "the wheel gamma-1.0-py3-none-any.whl was built once, elsewhere" in said
