"""Whatever the bytes: a state or problems, never an exception, and nothing raw on the terminal."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.render.problems import problem_text
from reconciler.source import load_desired, validate_path

DATA = Path(__file__).parents[1] / "data" / "manifests" / "site"
CLUSTER = (DATA / "cluster.yaml").read_bytes()
LINES = CLUSTER.splitlines(keepends=True)
TREE = yaml.safe_load(CLUSTER)
FUZZ = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
words = st.sampled_from(
    ["spec", "nodes", "packages", "files", "ssh", "null", "gpu[001-040]", "{", "[", "&a", "*a", "<<", "present"]
)
trees = st.recursive(scalars, lambda t: st.lists(t, max_size=3) | st.dictionaries(words | st.text(max_size=6), t, max_size=3))


def judge(content: bytes) -> None:
    """Both ways in, over one file beside the site's other files."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "versions.yaml").write_bytes((DATA / "versions.yaml").read_bytes())
        (root / "known_hosts").write_bytes(content)
        (root / "cluster.yaml").write_bytes(content)
        for loaded in (validate_path(root), load_desired(root), validate_path(root / "cluster.yaml")):
            assert loaded.desired is None or not loaded.problems
            assert loaded.problems or loaded.states or loaded.unchecked or not loaded.documents.get("Cluster")
            for problem in (*loaded.problems, *loaded.warnings):
                assert problem_text(problem).isprintable()
                assert problem.line == 0 or problem.column >= 1


@FUZZ
@given(st.binary(max_size=300))
def test_random_bytes(content: bytes) -> None:
    judge(content)


@FUZZ
@given(st.integers(0, len(CLUSTER)), st.integers(0, 40), st.binary(max_size=8) | words.map(str.encode))
def test_a_part_replaced(at: int, length: int, by: bytes) -> None:
    judge(CLUSTER[:at] + by + CLUSTER[at + length :])


@FUZZ
@given(st.lists(st.sampled_from(LINES), max_size=40))
def test_lines_in_any_order(lines: list[bytes]) -> None:
    judge(b"".join(LINES[:4] + lines))


@FUZZ
@given(st.data())
def test_a_subtree_replaced(data: st.DataObject) -> None:
    tree = yaml.safe_load(CLUSTER)
    here = tree
    while isinstance(here, dict) and here:
        key = data.draw(st.sampled_from(sorted(here, key=str)))
        if not isinstance(here[key], dict) or data.draw(st.booleans()):
            here[key] = data.draw(trees)
            break
        here = here[key]
    judge(yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "surrogatepass"))
