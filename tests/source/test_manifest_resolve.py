"""Documents together: the override rule, extends, clusters, derived files, digests."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.desired import FileSpec
from reconciler.model.versions import DISTRIBUTIONS
from reconciler.render.problems import CODES, problem_text
from reconciler.source import load_desired, validate_path
from reconciler.source.merge import _DEEPEST, Layer, Leaves, Nulls, Said, _add, overlay
from reconciler.source.parse import Document, parse
from tests.source.manifest_site import files, packages, said, site, state


def test_the_nearest_wins(tmp_path: Path) -> None:
    nodes = state(
        site(
            tmp_path,
            """
  packages: {a: 1, b: 1, c: 1, d: 1}
  files: {/etc/motd: {source: files/motd, mode: 0600, owner: ops}}
  ssh: {user: ops, port: 2200}
  packageManager: apt
  profiles:
    p: {packages: {b: 2, c: 2}, files: {/etc/motd: {mode: 0640}}, ssh: {port: 2201}}
    bare: {packages: null, files: null, ssh: null, packageManager: null}
  nodes:
    n[1-3]: {profile: p, packages: {c: 3, e: 3}}
    n4: {profile: bare}
    n5: {files: {/etc/motd: {owner: null}}}
  overrides:
    n[2-3]: {packages: {d: 4, a: null}, files: {/etc/motd: null}}
    n3: {packages: {d: 5}, ssh: {user: root}}
""",
        )
    ).nodes
    assert packages(nodes["n1"]) == {"a": "1", "b": "2", "c": "3", "d": "1", "e": "3"}
    assert packages(nodes["n2"]) == {"b": "2", "c": "3", "d": "4", "e": "3"}
    assert packages(nodes["n3"]) == {"b": "2", "c": "3", "d": "5", "e": "3"}
    assert packages(nodes["n4"]) == {}
    assert files(nodes["n1"]) == {"/etc/motd": ("ops", 0o640, b"hello\n")}
    assert files(nodes["n2"]) == files(nodes["n4"]) == {}
    assert files(nodes["n5"]) == {"/etc/motd": ("root", 0o600, b"hello\n")}
    reached = {name: (n.access.user, n.access.port) for name, n in nodes.items()}
    assert reached == {
        "n1": ("ops", 2201),
        "n2": ("ops", 2201),
        "n3": ("root", 2201),
        "n4": ("root", 22),
        "n5": ("ops", 2200),
    }
    assert [n.manager for n in nodes.values()] == ["apt", "apt", "apt", None, "apt"]
    assert [n.profile for n in nodes.values()] == ["p", "p", "p", "bare", None]


def test_long_chains_of_overrides_are_as_short_ones() -> None:
    document, layer, nulls = Document("f"), Layer(), Nulls()
    for n in range(3 * _DEEPEST):
        over = {"packages": Leaves({(f"p{n}",): Said(str(n), document, ("p", n))})}
        layer = overlay(layer, over, nulls)
    assert len(layer["packages"]) == 3 * _DEEPEST
    assert layer["packages"].depth <= _DEEPEST
    assert [said.value for said in layer["packages"].values()] == [str(n) for n in range(3 * _DEEPEST)]
    with pytest.raises(KeyError):
        layer["packages"][("none",)]


def test_what_has_no_rule_is_not_merged_silently() -> None:
    with pytest.raises(TypeError):
        _add({}, (), 1.5, Document("f"), ())


def test_node_and_stack_agree_where_one_says_more(tmp_path: Path) -> None:
    folder = site(
        tmp_path,
        "  versions: a\n  nodes: {n1: }\n  packages: {x: present, y: '2', z: present, w: '1'}\n",
        "a: {os: {debian-12: {packages: {x: 1, y: present, w: 1}}, rocky-9: {packages: {z: 3}}}}",
    )
    node = state(folder).nodes["n1"]
    assert packages(node, "debian-12") == {"x": "1", "y": "2", "z": "present", "w": "1"}
    assert packages(node, "rocky-9") == {"x": "present", "y": "2", "z": "3", "w": "1"}


@pytest.mark.parametrize(("mine", "theirs"), [("absent", "1"), ("present", "absent"), ("1", "2"), ("absent", "present")])
def test_node_and_stack_contradict_each_other(tmp_path: Path, mine: str, theirs: str) -> None:
    folder = site(
        tmp_path,
        f"  versions: a\n  nodes: {{'n[1-9]': }}\n  packages: {{x: '{mine}'}}\n",
        f"a: {{os: {{debian-12: {{packages: {{x: {theirs}}}}}}}}}",
    )
    place = "v.yaml:4:39"
    assert said(folder) == [
        f"c.yaml:7:17: spec.packages.x: '{mine}' here, '{theirs}' in Versions 'a' for debian-12 ({place}): keep one"
    ]


def test_a_mirror_is_a_repository_for_each_distribution(tmp_path: Path) -> None:
    node = state(site(tmp_path, "  nodes: {n1: }\n  mirrors: {nvidia: 'https://m.example.net/x/'}\n")).nodes["n1"]
    found = [(r.distribution, r.manager, r.spec) for r in node.resources if isinstance(r.spec, FileSpec)]
    assert [d for d, _, _ in found] == list(DISTRIBUTIONS)
    by = {d: (m, s) for d, m, s in found}
    manager, spec = by["rocky-9"]
    assert (manager, spec.path, spec.repository) == ("dnf", "/etc/yum.repos.d/reconcile-nvidia.repo", True)
    assert spec.content.decode() == (
        "# Managed by reconcile (mirrors.nvidia of the Cluster): changes made here are undone.\n"
        "[reconcile-nvidia]\nname=NVIDIA packages for rhel9, from this site's mirror\n"
        "baseurl=https://m.example.net/x/rhel9/x86_64/\nenabled=1\ngpgcheck=1\n"
        "gpgkey=https://m.example.net/x/rhel9/x86_64/D42D0685.pub\n"
    )
    manager, spec = by["ubuntu-24.04"]
    assert (manager, spec.path) == ("apt", "/etc/apt/sources.list.d/reconcile-nvidia.sources")
    assert spec.content.decode() == (
        "# Managed by reconcile (mirrors.nvidia of the Cluster): changes made here are undone.\n"
        "Types: deb\nURIs: https://m.example.net/x/ubuntu2404/x86_64/\nSuites: /\n"
        "Signed-By: /usr/share/keyrings/cuda-archive-keyring.gpg\n"
    )


def test_what_is_written_wins_over_what_is_derived(tmp_path: Path) -> None:
    repository = "/etc/yum.repos.d/reconcile-nvidia.repo"
    spec = f"  nodes: {{n1: }}\n  mirrors: {{nvidia: http://m}}\n  files: {{{repository}: {{source: files/motd}}}}\n"
    node = state(site(tmp_path, spec)).nodes["n1"]
    assert files(node)[repository][2] == b"hello\n"


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        (
            "  nodes: {n1: }\n  files: {/a: {source: files/big}, /b: {source: files/link}, /c: {source: files}}\n",
            [
                "c.yaml:6:24: spec.files./a.source: 'files/big' is 1048577 bytes, a managed file may have 1048576",
                "c.yaml:6:49: spec.files./b.source: 'files/link' is not a regular file (a link, a folder or a device)",
                "c.yaml:6:75: spec.files./c.source: 'files' is not a regular file (a link, a folder or a device)",
            ],
        ),
        (  # in a profile that no node takes
            "  nodes: {n1: }\n  profiles: {p: {versions: x, files: {/a: {source: files/mot}}}}\n",
            [
                "c.yaml:6:28: no Versions is named 'x'; there is none",
                "c.yaml:6:52: spec.profiles.p.files./a.source: the repository has no file 'files/mot'; did you mean 'files/motd'?",
            ],
        ),
        (
            "  nodes:\n    n[1-3]: {address: '10.0.0.[1-3]'}\n    m[1-3]: {address: '10.0.0.[1-3]'}\n",
            ["c.yaml:7:23: m1 has the address 10.0.0.1 of n1 (and 2 more)"],
        ),
        (
            "  nodes: {n1: }\n  files: {/a: {mode: 0600}}\n",
            ["c.yaml:6:11: spec.files./a: no source: say which file of the repository it is (source: files/NAME)"],
        ),
        (
            "  nodes: {'n[1-9999]': , 'm[1-9]': }\n",
            ["c.yaml:5:3: more than 10000 nodes in one cluster"],
        ),
        (
            "  nodes: {n1: }\n  overrides: {" + ", ".join(f"'n1,m[{n}-9999]': " for n in range(1, 12)) + "}\n",
            ["c.yaml:6:3: more than 100000 nodes in one cluster"],
        ),
    ],
)
def test_said_of_a_cluster(tmp_path: Path, spec: str, problems: list[str]) -> None:
    folder = site(tmp_path, spec)
    (folder / "files" / "big").write_bytes(b"x" * ((1 << 20) + 1))
    (folder / "files" / "link").symlink_to("motd")
    assert said(folder) == problems


def test_one_address_may_have_several_ports(tmp_path: Path) -> None:
    nodes = "  nodes: {n1: {address: nat, ssh: {port: 2201}}, n2: {address: nat, ssh: {port: 2202}}}\n"
    assert len(state(site(tmp_path, nodes)).nodes) == 2


def test_several_clusters(tmp_path: Path) -> None:
    site(tmp_path, "  nodes: {n1: }\n", name="one", file="a.yaml")
    site(tmp_path, "  nodes: {n2: }\n", name="two", file="b.yaml")
    loaded = validate_path(tmp_path)
    assert (loaded.problems, loaded.desired, loaded.nodes, sorted(loaded.states)) == ((), None, 2, ["one", "two"])
    chosen = load_desired(tmp_path, cluster="two").desired
    assert chosen is not None
    assert list(chosen.nodes) == ["n2"]
    (problem,) = load_desired(tmp_path).problems
    assert problem_text(problem) == f"{tmp_path}: there are several clusters, say which: --cluster one or two"
    assert said(tmp_path, "twoo") == ["SITE: no Cluster is named 'twoo'; did you mean 'two'?"]
    site(tmp_path, "  nodes: {'n[1-3]': }\n", name="two", file="b.yaml")
    assert said(tmp_path) == ["b.yaml:5:11: n1 belongs to cluster 'one' already: a node is in one cluster"]
    site(tmp_path, "  nodes: {n2: }\n", name="one", file="b.yaml")
    assert said(tmp_path) == ["b.yaml:3:18: Cluster 'one' is declared twice (first in a.yaml:3)"]


def test_a_broken_cluster_is_not_missed_as_well(tmp_path: Path) -> None:
    folder = site(tmp_path, "  nodes: {n1: }\n  driver: 1\n")
    assert said(folder, "c") == said(folder) == said(folder, "d")
    assert len(said(folder)) == 1


def test_the_digest_is_over_all_that_is_read(tmp_path: Path) -> None:
    spec = "  nodes: {n1: }\n  files: {/etc/motd: {source: files/motd}}\n"
    folder = site(tmp_path, spec)
    digests = [state(folder).digest]
    for name in ("files/motd", "known_hosts", "c.yaml", "v.yaml"):
        with (folder / name).open("a") as file:
            file.write("# more\n")
        digests.append(state(folder).digest)
    (folder / "c.yaml").rename(folder / "d.yaml")
    digests.append(state(folder).digest)
    assert len(set(digests)) == 6
    (folder / "files" / "unused").write_text("")
    assert state(folder).digest == digests[-1]


def test_no_sentence_is_left_without_a_use() -> None:
    root = Path(__file__).parents[2] / "reconciler"
    text = "".join(p.read_text() for folder in ("source", "model") for p in (root / folder).glob("*.py"))
    made = ("source-", "folder-", "manifest-")  # followed by the code of a file's failure
    assert [code for code in CODES if f'"{code}"' not in text and not code.startswith(made)] == []


def test_a_place_for_every_value_of_the_site() -> None:
    parsed = parse((Path(__file__).parents[1] / "data/manifests/site/cluster.yaml").read_bytes(), "c.yaml")
    (document,) = parsed.documents
    assert set(document.keys) == {path for path in document.values if path}
