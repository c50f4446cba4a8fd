"""What holds for every plan, whatever is declared and whatever a node says."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.kinds import KINDS
from reconciler.kinds.base import spec_digest
from reconciler.model.desired import DesiredNode, PackageSpec, Resource, ResourceId
from reconciler.model.fact import Available, Facts, Probe, Raw, Reading
from reconciler.model.observed import Failure, Known, NodeState, ObservedState
from reconciler.model.plan import WRITING, Action, NodePlan, Reason, Selection
from reconciler.plan.build import build_plan, follow_up, still_differing, verify_probes
from reconciler.plan.scope import first_probes
from tests.plan.worlds import RELEASES, Case, ask, lines, look, node, node_plan, plan_of, resource, state

HOSTILE = ["--root=/", "$(id)", "a b", "x;y", "é\u202e", "\n", "'\"", "*"]
REST = b'"parent":"directory","owner_exists":true,"group_exists":true}'
RUNNING = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "SubState": "running",
    "NeedDaemonReload": "no",
    "UnitFileState": "enabled",
}
UNIT_STATES: list[dict[str, str]] = [
    RUNNING,
    RUNNING | {"InactiveExitTimestampMonotonic": "1000", "NeedDaemonReload": "yes"},
    RUNNING | {"ActiveState": "failed", "UnitFileState": "masked", "LoadState": "masked"},
    RUNNING | {"ActiveState": "inactive", "LoadState": "not-found", "UnitFileState": ""},
    RUNNING | {"ActiveState": "activating", "SubState": "auto-restart", "UnitFileState": "disabled"},
]


def state_of(names: str, **properties: str) -> bytes:
    return "".join(f"{key}={value}\n" for key, value in {"Names": names, **properties}.items()).encode()


answers = st.builds(
    Raw,
    out=st.sampled_from(
        [
            *(text.encode() for text in RELEASES.values()),
            b"",
            b"\xff\x00",
            b"tmux\t0\t3.2a\t4.el9\tx86_64\nrpm\t0\t4\t1\tx86_64\n",
            b"ii \ttmux\t3.3a-3\tamd64\n",
            b"tmux-0:3.2a-4.el9.*\n",
            b"gpu01\n",
            b"old\n",
            b"[main]\nenabled=1\n",
            b"Remv tmux\n",
            b"tmux | 3.3a-3 | x Packages\n",
            b"127.0.0.1 localhost\n# BEGIN reconcile\n10.0.0.9 gpu01\n# END reconcile\n",
            b"127.0.1.1 gpu01\n",
            *(state_of("a.service b.timer c@1.service", **properties) for properties in UNIT_STATES),
            b'{"version":1,"boot_id":"b","units":{"a.service":{"path":"/a","at":2000}}}',
            b'{"type":"none",' + REST,
            b'{"type":"file","mode":420,"owner":"root","group":"root","size":1,"sha256":"00",' + REST,
        ]
    ),
    err=st.sampled_from([b"", b"error: broken"]),
    status=st.sampled_from([0, 0, 0, 1, None]),
    error=st.sampled_from(["", "", "", "missing", "denied", "deadline", "io"]),
)
declared = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"package": st.sampled_from(["tmux", "htop"]), "ensure": st.sampled_from(["present", "absent", "3.2a"])}
        ),
        st.fixed_dictionaries({"file": st.sampled_from(["/a", "/b"]), "repository": st.booleans(), "content64": st.just("/wA=")}),
        st.just({"hostname": "gpu01"}),
        st.just({"hosts": {"gpu01": "10.0.0.1"}}),
        st.fixed_dictionaries(
            {"unit": st.sampled_from(["a.service", "b.timer", "c@.service", "c@1.service"])},
            optional={
                "content": st.sampled_from(["[Install]\nAlias=x.service\n", "[Service]\nType=oneshot\n"]),
                "enabled": st.booleans(),
                "state": st.sampled_from(["started", "stopped"]),
            },
        ),
    ),
    unique_by=lambda said: next(str(said[kind]) for kind in ("package", "file", "hostname", "hosts", "unit") if kind in said),
    max_size=6,
)
limits = st.fixed_dictionaries(
    {},
    optional={
        "manager": st.sampled_from(["dnf", "apt"]),
        "distributions": st.just(["debian-12"]),
        "running": st.just(["write-file"]),
    },
)


def _said(wanted: DesiredNode, data: st.DataObject, about: Case) -> tuple[Facts, NodeState]:
    """Two rounds of questions, each answered with something."""

    def answered(probes: tuple[Probe, ...]) -> dict[str, Reading]:
        return {p.key: Reading(p.key, tuple(data.draw(answers) for _ in p.parts), 0.0, "b") for p in probes}

    first = Facts(answered(first_probes(wanted, Selection())))
    facts = Facts({**first.readings, **answered(follow_up(wanted, first, Selection()))})
    return facts, NodeState(facts, "b", {}, tuple(about.get("running", ())))


@given(declared, limits, st.data())
@settings(max_examples=300, deadline=None)
def test_a_plan_is_total_ordered_and_the_same_again(said: list[Any], about: Case, data: st.DataObject) -> None:
    wanted = node({"declared": said, **about})
    facts, found = _said(wanted, data, about)
    plan = plan_of(state(wanted), {"gpu01": found}).nodes["gpu01"]
    assert sorted(c.id for c in plan.changes) == sorted(r.id for r in wanted.resources)
    numbers = {s.number: {c.id for c in plan.changes if s.number in c.steps} for s in plan.steps}
    assert list(numbers) == list(range(1, len(plan.steps) + 1))
    assert all(set(s.resources) == numbers[s.number] for s in plan.steps)
    for change in plan.changes:
        writes = change.action in WRITING
        assert bool(change.steps) == writes == bool(change.reason) == bool(change.fields)
        assert (change.hold is not None) == (change.action is Action.HOLD)
        assert change.hold is None or change.hold.code.isidentifier()
    specs = {r.id: r.spec for r in wanted.resources}
    if not (found.running or any(c.hold and c.hold.code in ("OtherDistribution", "DistributionUnknown") for c in plan.changes)):
        ranks = [KINDS[c.id.kind].rank(specs[c.id]) for c in plan.changes]
        assert ranks == sorted(ranks)
    assert set(plan.observed) == {str(c.id) for c in plan.writes()}
    assert plan_of(state(wanted), {"gpu01": found}).nodes["gpu01"] == plan
    still = still_differing(wanted, facts, facts, tuple(specs))
    assert {c.id for c in still} <= set(specs)


def test_a_node_that_did_not_answer_has_its_failure_and_no_change() -> None:
    why = Failure("unreachable", "ConnectTimedOut", {"host": "gpu01"})
    assert plan_of(state(node({"declared": [{"file": "/a"}]})), {"gpu01": why}).nodes["gpu01"] == NodePlan("gpu01", failure=why)


SPEC = {"file": "/a", "content": "x"}
DIGEST = spec_digest(resource(SPEC).spec)
OTHER = "0" * 16
REASONS = [
    (None, None, Reason.GIT),
    (None, DIGEST, Reason.DRIFT),
    (None, OTHER, Reason.GIT),
    (DIGEST, None, Reason.DRIFT),
    (DIGEST, DIGEST, Reason.DRIFT),
    (DIGEST, OTHER, Reason.GIT),  # what this controller found converged last is newer than what it carried out
    (OTHER, None, Reason.GIT),
    (OTHER, DIGEST, Reason.DRIFT),
    (OTHER, OTHER, Reason.GIT),
]


@pytest.mark.parametrize(("inventory", "converged", "expected"), REASONS)
def test_why_a_resource_changes(inventory: str | None, converged: str | None, expected: Reason) -> None:
    wanted = node({"declared": [SPEC]})
    facts = look(wanted, {"declared": [SPEC]}, Selection())
    found = NodeState(facts, "b", {"File//a": inventory} if inventory else {})
    known = Known({"gpu01": {"File//a": converged}} if converged else {"gpu02": {"File//a": DIGEST}})
    (change,) = plan_of(state(wanted), {"gpu01": found}, known).nodes["gpu01"].changes
    assert (change.action, change.reason) == (Action.CREATE, expected)


def test_any_field_of_a_spec_moves_its_digest() -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"content": "y"},
        {"mode": 0o600},
        {"owner": "a"},
        {"group": "a"},
        {"file": "/b"},
        {"repository": True},
    ]
    digests = {spec_digest(resource({**SPEC, **more}).spec) for more in variants}
    packages = {
        spec_digest(PackageSpec("a", "present")),
        spec_digest(PackageSpec("a", "exact", "1")),
        spec_digest(PackageSpec("a", "absent")),
    }
    assert len(digests | packages) == len(variants) + 3


PENDING = [
    ("not-there", {}, True),
    ("as-declared", {"files": {"/etc/yum.repos.d/s.repo": {"content": "[s]\n"}}}, False),
    ("another-content", {"files": {"/etc/yum.repos.d/s.repo": {"content": "[t]\n"}}}, True),
    ("held-and-so-never-written", {"missing_users": ["root"]}, False),
    ("not-readable", {"files": {"/etc/yum.repos.d/s.repo": {"error": "denied"}}}, False),
]


@pytest.mark.parametrize(("found", "asked"), [pytest.param(f, a, id=n) for n, f, a in PENDING])
def test_repositories_that_will_be_written_count_as_if_they_were_there(found: Case, asked: bool) -> None:
    files = [{"file": "/etc/yum.repos.d/s.repo", "content": "[s]\n", "repository": True}, {"file": "/etc/other", "content": "x"}]
    case = {"declared": [*files, {"package": "tmux"}], "found": found}
    wanted = node(case)
    (probe, *_) = [
        p for p in follow_up(wanted, Facts(ask(first_probes(wanted, Selection()), case)), Selection()) if p.key == "available"
    ]
    assert probe.parts == (Available("dnf", ("tmux",), (("s.repo", "[s]\n"),) if asked else ()),)


def test_a_repository_definition_that_is_no_text_does_not_end_the_plan() -> None:
    case = {"declared": [{"file": "/etc/yum.repos.d/s.repo", "content64": "/wA=", "repository": True}, {"package": "tmux"}]}
    assert [c.action for c in node_plan(case).changes] == [Action.CREATE, Action.HOLD]


@given(st.text(min_size=1, max_size=20), st.sampled_from(["dnf", "apt"]), st.booleans())
@example(HOSTILE[0], "dnf", True)
@settings(max_examples=80, deadline=None)
def test_hostile_values_are_one_argument(version: str, manager: Any, remove: bool) -> None:
    """Manifests refuse such versions and names; a repository or a recording may still say them."""
    other = [Resource(ResourceId("Package", "gone"), PackageSpec("gone", "absent"), resource(SPEC).origin)] if remove else []

    def counts(offered: str) -> list[int]:
        rpm = b"gone\t0\t1\t1\tx\n"
        deb = b"ii \tgone\t1\tx\n"
        line = f"tmux\t0\t{offered}\t1\tx\n" if manager == "dnf" else f"tmux | {offered} | x Packages\n"
        parts = {
            "packages-rpm": Raw(rpm, status=0),
            "packages-deb": Raw(deb, status=0),
            "available": Raw(line.encode("utf-8", "replace"), status=0),
        }
        facts = Facts({k: Reading(k, (v,), 0.0, "b") for k, v in parts.items()})
        bare = node({"declared": [{"package": "tmux"}], "manager": manager})
        wanted = DesiredNode("gpu01", bare.access, (*bare.resources, *other), manager=manager)
        plan = plan_of(state(wanted), {"gpu01": NodeState(facts, "b")}).nodes["gpu01"]
        commands = [c for s in plan.steps for c in s.action["commands"]]
        return [len(c["argv"]) for c in commands] + [
            len(shlex.split(line)) for c in commands for line in c.get("stdin", "").splitlines()
        ]

    plain = counts("3.2")
    assert counts(version) in (plain, counts(""))  # an answer that cannot be understood holds the package


VERIFIED = [("as-declared", "hi\n", []), ("another-content", "ho\n", ["content"])]


@pytest.mark.parametrize(("content", "differing"), [pytest.param(c, d, id=n) for n, c, d in VERIFIED])
def test_only_a_second_look_says_whether_a_step_did_it(content: str, differing: list[str]) -> None:
    case: Case = {"declared": [{"file": "/a", "content": "hi\n"}, {"file": "/b", "content": "never\n"}]}
    wanted = node(case)
    before = look(wanted, case, Selection())
    ids = (wanted.resources[0].id,)
    after = Facts(ask(verify_probes(wanted, ids), {**case, "found": {"files": {"/a": {"content": content}}}}))
    assert list(after.readings) == ["file:/a"]
    assert [f.path for c in still_differing(wanted, before, after, ids) for f in c.fields] == differing


def test_what_cannot_be_looked_at_after_a_step_differs_still() -> None:
    case: Case = {"declared": [{"file": "/a", "content": "hi\n"}]}
    wanted = node(case)
    (change,) = still_differing(wanted, look(wanted, case, Selection()), Facts(), (wanted.resources[0].id,))
    assert (change.action, change.hold and change.hold.code) == (Action.HOLD, "NotAsked")


def test_a_plan_names_what_it_was_made_from() -> None:
    case: Case = {"declared": [{"file": "/a"}]}
    wanted = node(case)
    about: dict[str, Any] = {"plan_id": "p9", "created": 12.5, "tool_version": "0.1", "selection": Selection(("gpu01",), ("File",))}
    observed = ObservedState({"gpu01": NodeState(look(wanted, case, Selection()), "b")})
    plan = build_plan(state(wanted), observed, Known(), **about)
    assert (plan.id, plan.created, plan.cluster, plan.revision.commit) == ("p9", 12.5, "lab", "c" * 40)
    assert (plan.manifest_digest, plan.tool_version, plan.selection) == ("d" * 64, "0.1", about["selection"])
    assert (plan.changes, plan.holds, next(lines(plan.nodes["gpu01"]))) == (1, 0, "create File//a (git-change)")
