"""Python environments: what a stack declares, what its lock has to hold, and what follows for nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.desired import PythonEnvironmentSpec
from reconciler.model.lock import parse
from tests.cases import values
from tests.source.manifest_site import said, site, state

HASH = "0123456789abcdef" * 4
STACK = "s: {python: 3.11, environments: {train: {packages: {torch: 2.13.*, Numpy_X: '>=2,<3'}}}}"
NODES = "  versions: s\n  nodes: {n1: {environments: [train]}, n2: }\n"


def lock(*pins: str, python: str = "3.11", packages: str = "sha256:0") -> str:
    head = f"# made by hand\n# packages: {packages}\n# python: {python}\n# platform: x86_64-manylinux_2_34\n"
    return head + "".join(f"{pin} \\\n    --hash=sha256:{HASH}\n" for pin in pins)


GOOD = lock("numpy-x==2.4.1", "torch==2.13.0+cpu")


def make(
    folder: Path, text: str | bytes | None = GOOD, spec: str = NODES, stack: str = STACK, at: str = "locks/s/train.txt"
) -> Path:
    found = site(folder, spec, stack)
    if text is not None:
        (folder / at).parent.mkdir(parents=True)
        (folder / at).write_bytes(text.encode() if isinstance(text, str) else text)
    return found


def environment(folder: Path, node: str) -> PythonEnvironmentSpec:
    (spec,) = [r.spec for r in state(folder).nodes[node].resources if isinstance(r.spec, PythonEnvironmentSpec)]
    return spec


def names(folder: Path) -> dict[str, list[str]]:
    return {n: [r.id.name for r in d.resources if r.id.kind == "PythonEnvironment"] for n, d in state(folder).nodes.items()}


def test_a_node_gets_the_environments_that_it_names(tmp_path: Path) -> None:
    folder = make(tmp_path)
    assert names(folder) == {"n1": ["train"], "n2": []}
    spec = environment(folder, "n1")
    assert (spec.python, spec.pins, spec.keep, spec.wheelhouse) == ("3.11", ("Numpy_X", "torch"), 3, None)
    assert spec.versions == (("numpy-x", "2.4.1"), ("torch", "2.13.0+cpu"))
    assert spec.requirements == "".join(f"{pin} \\\n    --hash=sha256:{HASH}\n" for pin in ("numpy-x==2.4.1", "torch==2.13.0+cpu"))


def test_comments_and_order_of_a_lock_do_not_make_another_environment(tmp_path: Path) -> None:
    first, other = (
        parse(GOOD.encode())[0],
        parse(lock("torch==2.13.0+cpu", "numpy-x==2.4.1").replace("by hand", "again").encode())[0],
    )
    assert first is not None
    assert other is not None
    assert first.digest == other.digest
    assert first.text() == other.text()
    more = parse(lock("torch==2.13.0+cpu", "numpy-x==2.4.1", python="3.12").encode())[0]
    assert more is not None
    assert more.digest != first.digest


def test_the_lock_counts_in_the_digest_of_the_state(tmp_path: Path) -> None:
    folder = make(tmp_path)
    before = state(folder).digest
    (folder / "locks/s/train.txt").write_text(lock("numpy-x==2.4.2", "torch==2.13.0+cpu"))
    assert state(folder).digest != before


@pytest.mark.parametrize(
    ("pin", "locked", "right"),
    [
        ("2.13.0", "2.13.0", True),
        ("2.13.0", "2.13.0+cpu", True),
        ("2.13", "2.13.0", True),
        ("2.13.0+cu128", "2.13.0+cu128", True),
        ("2.13.0+cu128", "2.13.0", False),
        ("2.13.0+cu128", "2.13.0+cpu", False),
        ("2.13.0", "2.13.1", False),
        ("2.13.*", "2.13.7", True),
        ("2.1.*", "2.13.7", False),
        ("'>=2,<3'", "2.0.0rc1", False),
        ("'>=2,<3'", "2.9", True),
        ("'>=2,<3'", "3.0", False),
        ("~=2.4", "2.9", True),
        ("2.0rc1", "2.0rc1", True),
    ],
)
def test_a_pin_and_what_meets_it(tmp_path: Path, pin: str, locked: str, right: bool) -> None:
    stack = f"s: {{python: 3.11, environments: {{train: {{packages: {{torch: {pin}}}}}}}}}"
    told = said(make(tmp_path, lock(f"torch=={locked}"), stack=stack))
    shown = pin.strip("'")
    differs = f"v.yaml:4:63: locks/s/train.txt has torch {locked}, declared is {shown}: run `reconcile pin` and commit it"
    assert told == ([] if right else [differs])


MISTAKES: dict[str, tuple[str | bytes | None, list[str]]] = {
    "missing-lock": (None, ["v.yaml:4:37: environment 'train' has no lock locks/s/train.txt: run `reconcile pin` and commit it"]),
    "another-version": (
        lock("numpy-x==1.9", "torch==2.13.0"),
        ["v.yaml:4:80: locks/s/train.txt has Numpy_X 1.9, declared is >=2,<3: run `reconcile pin` and commit it"],
    ),
    "missing-package": (
        lock("torch==2.13.0"),
        ["v.yaml:4:80: locks/s/train.txt does not have Numpy_X, declared is >=2,<3: run `reconcile pin` and commit it"],
    ),
    "more-than-declared": (lock("numpy-x==2.0", "torch==2.13.0", "six==1.0"), []),
    "another-python": (
        lock("numpy-x==2.0", "torch==2.13.0", python="3.12"),
        ["v.yaml:4:16: locks/s/train.txt was made for Python 3.12, declared is 3.11: run `reconcile pin` and commit it"],
    ),
    "a-hash-too-short": (
        GOOD.replace(HASH, HASH[1:], 1),
        ["locks/s/train.txt:6:5: '--hash=sha256:"],
    ),
    "a-hash-in-capitals": (GOOD.replace(HASH, HASH.upper(), 1), ["locks/s/train.txt:6:5: '--hash=sha256:"]),
    "another-algorithm": (GOOD.replace("sha256:" + HASH, "md5:abc", 1), ["locks/s/train.txt:6:5: '--hash=md5:abc' is not a hash"]),
    "no-hash": (GOOD + "six==1.0\n", ["locks/s/train.txt:9:1: 'six==1.0' is no line of a lock"]),
    "cut-off": (GOOD + "six==1.0 \\\n", ["locks/s/train.txt:10:1: '' is not a hash"]),
    "twice": (GOOD + GOOD[GOOD.index("torch") :], ["locks/s/train.txt:9:1: 'torch' is locked twice (first on line 7)"]),
    "an-option": (GOOD + "--index-url http://x\n", ["locks/s/train.txt:9:1: '--index-url http://x' is no line of a lock"]),
    "a-path": (GOOD + "/tmp/x.whl\n", ["locks/s/train.txt:9:1: '/tmp/x.whl' is no line of a lock"]),
    "a-marker": (GOOD + "six==1.0 ; x \\\n", ["locks/s/train.txt:9:1: 'six==1.0 ; x"]),
    "no-header": (GOOD[GOOD.index("numpy") :], ["locks/s/train.txt:1:1: the lock does not say its packages"]),
    "not-text": (b"# x\n\xff", ["locks/s/train.txt:2:1: 'bytes that are not UTF-8' is no line of a lock"]),
    "empty": ("", ["locks/s/train.txt:1:1: the lock does not say its packages"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_lock_that_is_not_right_is_refused_at_its_place(tmp_path: Path, name: str) -> None:
    text, wanted = MISTAKES[name]
    told = said(make(tmp_path, text))
    assert len(told) == len(wanted), told
    for got, expected in zip(told, sorted(wanted), strict=True):
        assert got.startswith(expected), told


@pytest.mark.parametrize("case", values("manifests/environments.yaml"), ids=lambda case: case["says"][:40])
def test_a_mistake_in_what_is_declared(tmp_path: Path, case: dict[str, str]) -> None:
    assert said(make(tmp_path, GOOD, case["spec"], case["stack"])) == [case["says"]]


def test_a_stack_that_extends_another_has_a_lock_of_its_own(tmp_path: Path) -> None:
    stacks = STACK + "\nt: {extends: s, environments: {train: {packages: {Numpy_X: null, torch: 2.14.0}}, more: null}}"
    folder = make(tmp_path, spec=NODES.replace("versions: s", "versions: t"), stack=stacks)
    assert said(folder) == ["v.yaml:9:35: environment 'train' has no lock locks/t/train.txt: run `reconcile pin` and commit it"]
    (folder / "locks/t").mkdir()
    (folder / "locks/t/train.txt").write_text(lock("torch==2.14.0"))
    assert environment(folder, "n1").versions == (("torch", "2.14.0"),)


def test_one_lock_for_several_stacks(tmp_path: Path) -> None:
    stack = STACK.replace("{packages", "{lock: locks/shared/t.txt, packages")
    folder = make(tmp_path, stack=stack, at="locks/shared/t.txt")
    assert names(folder) == {"n1": ["train"], "n2": []}


def test_a_shared_environment_has_one_lock_for_it_has_one_link(tmp_path: Path) -> None:
    stacks = STACK + "\nt: {extends: s, environments: {train: {lock: locks/t.txt}}}"
    spec = "  versions: s\n  environments: [train]\n  environmentLocation: shared\n  nodes: {n1: , n2: {versions: t}, n3: }\n"
    folder = make(tmp_path, spec=spec, stack=stacks)
    (folder / "locks/t.txt").write_text(lock("numpy-x==2.1", "torch==2.13.0"))
    wanted = "n1 wants locks/s/train.txt and n2 wants locks/t.txt"
    assert said(folder) == [f"c.yaml:7:24: environment 'train' is shared and has one link, but {wanted}"]
    (folder / "locks/t.txt").write_text(GOOD)
    assert said(folder) == []


@pytest.mark.parametrize(("said_", "builder"), [("shared", "n1"), ("{type: shared, builder: n2}", "n2")])
def test_a_shared_environment_has_one_builder(tmp_path: Path, said_: str, builder: str) -> None:
    spec = f"  versions: s\n  environments: [train]\n  environmentLocation: {said_}\n  nodes: {{n1: , n2: , n3: }}\n"
    folder = make(tmp_path, spec=spec)
    assert {n: environment(folder, n).builder for n in ("n1", "n2", "n3")} == {
        n: None if n == builder else builder for n in ("n1", "n2", "n3")
    }


def test_the_nearest_list_wins_whole(tmp_path: Path) -> None:
    stack = STACK.replace("}}}}", "}}, more: {packages: {torch: 2.13.0}, lock: locks/s/train.txt}}}")
    spec = "  versions: s\n  environments: [train, more]\n  mirrors: {wheels: /mnt/wheels}\n"
    spec += "  nodes: {n1: , n2: {environments: [more]}, n3: {environments: []}, n4: {environments: null}}\n"
    assert names(make(tmp_path, spec=spec, stack=stack)) == {"n1": ["train", "more"], "n2": ["more"], "n3": [], "n4": []}
