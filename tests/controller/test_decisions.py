"""What the controller decides, as pure functions over values: revisions, retries, conditions, flapping, suspensions, settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.controller import retry
from reconciler.controller.assess import of_many
from reconciler.controller.conditions import Said, Status, Subject, as_data, from_data, together, update
from reconciler.controller.flapping import flapping
from reconciler.controller.retry import LONGEST, Retry
from reconciler.controller.revisions import Head, Next, choose, emptied
from reconciler.controller.settings import Settings, Wrong, parse
from reconciler.controller.suspensions import of_node as suspension_of
from reconciler.controller.suspensions import suspended
from reconciler.model.durations import seconds
from reconciler.model.problem import Problem

A, B, NONE = "a" * 40, "b" * 40, frozenset[str]()
TRUE, FALSE, UNKNOWN = Status.TRUE, Status.FALSE, Status.UNKNOWN

REVISIONS: dict[str, tuple[Head, str | None, frozenset[str], tuple[str | None, str]]] = {
    "the first one": (Head(A), None, NONE, (A, "")),
    "a newer one": (Head(B), A, NONE, (B, "")),
    "the same": (Head(A, forward=False), A, NONE, (A, "")),
    "rewritten": (Head(B, forward=False), A, NONE, (A, "NonFastForward")),
    "rewritten and approved": (Head(B, forward=False), A, frozenset({B}), (B, "")),
    "another one approved": (Head(B, forward=False), A, frozenset({A}), (A, "NonFastForward")),
    "no answer": (Head(None, "RepositoryUnread"), A, NONE, (A, "RepositoryUnread")),
    "no answer from the first": (Head(None, "RepositoryUnread"), None, NONE, (None, "RepositoryUnread")),
}


@pytest.mark.parametrize(("head", "accepted", "approved", "expected"), REVISIONS.values(), ids=REVISIONS)
def test_which_revision_is_next(head: Head, accepted: str | None, approved: frozenset[str], expected: tuple[str, str]) -> None:
    found = choose(head, accepted, approved)
    assert (found.commit, found.refused) == expected
    assert isinstance(found, Next)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([], False), (["no-cluster"], True), (["nothing-declared"], True), (["no-cluster", "unknown-key"], False), (["form"], False)],
)
def test_a_revision_that_declares_nothing_is_told_from_a_wrong_one(codes: list[str], expected: bool) -> None:
    assert emptied([Problem("f", 1, 1, code) for code in codes]) is expected


def test_pauses_grow_to_a_limit_are_spread_and_start_again() -> None:
    failing, pauses = Retry(), []
    for _ in range(60):
        failing = failing.failed()
        pauses.append(failing.pause(0.0))
    assert pauses[:4] == [5.0, 10.0, 20.0, 40.0]
    assert max(pauses) == pauses[-1] == LONGEST
    assert Retry().pause(0.5) == 0.0
    assert {round(failing.pause(c)) for c in (0.0, 0.5, 0.999)} == {300, 270, 240}
    assert retry.spread(600.0, 0.999) > 479.0


def test_the_time_moves_only_with_the_status_and_the_generation_only_with_what_git_wants() -> None:
    first = update(Subject(), "d1", [Said("Ready", FALSE, "NotCarriedOut")], 10.0)
    again = update(first, "d1", [Said("Ready", FALSE, "Held", {"x": 1})], 20.0)
    assert (again.conditions["Ready"].since, again.conditions["Ready"].reason) == (10.0, "Held")
    moved = update(again, "d2", [Said("Ready", TRUE)], 30.0)
    assert (moved.conditions["Ready"].since, moved.generation) == (30.0, 2)
    backwards = update(moved, None, [Said("Ready", TRUE)], 5.0)
    assert (backwards.conditions["Ready"].since, backwards.generation) == (30.0, 2)
    later = update(backwards, "d3", [Said("Stalled", FALSE)], 40.0)
    assert [later.conditions[t].observed_generation for t in ("Ready", "Stalled")] == [2, 3]
    assert from_data(as_data(later)) == later


@pytest.mark.parametrize("damage", [{}, {"generation": 1}, {"conditions": [{"type": "Good"}]}, {"conditions": [{}]}, []])
def test_a_file_that_is_not_ours_is_refused(damage: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_data({**as_data(Subject()), **damage} if damage and isinstance(damage, dict) and "conditions" in damage else damage)


TOGETHER: list[tuple[str, list[Status], Status]] = [
    ("Ready", [TRUE, TRUE], TRUE),
    ("Ready", [TRUE, UNKNOWN], UNKNOWN),
    ("Ready", [UNKNOWN, FALSE], FALSE),
    ("Ready", [], FALSE),
    ("Stalled", [FALSE, FALSE], FALSE),
    ("Stalled", [FALSE, UNKNOWN], UNKNOWN),
    ("Stalled", [UNKNOWN, TRUE], TRUE),
    ("Stalled", [], FALSE),
]


@pytest.mark.parametrize(("type_", "of", "expected"), TOGETHER)
def test_many_as_one(type_: str, of: list[Status], expected: Status) -> None:
    members = {str(i): update(Subject(), "d", [Said(type_, status)], 1.0) for i, status in enumerate(of)}
    assert together(members.values(), type_) is expected
    assert next(s for s in of_many(members) if s.type == type_).status is expected


def heal(at: float, node: str = "n", path: str = "content", commit: str = A, resource: str = "File//a") -> Mapping[str, Any]:
    return {"type": "healed", "time": at, "node": node, "commit": commit, "resources": {resource: [[path, "x", "y"]]}}


def resume(*scope: str) -> Mapping[str, Any]:
    return {"type": "resumed", "time": 0.0, "scope": list(scope)}


FLAPS: dict[str, tuple[list[Mapping[str, Any]], set[str]]] = {
    "twice": ([heal(1), heal(2)], set()),
    "three times": ([heal(1), heal(2), heal(3)], {"n"}),
    "three times in two hours": ([heal(1), heal(2000), heal(7000)], set()),
    "long ago, and nothing since": ([heal(1), heal(2), heal(3), {"type": "planned", "time": 90000}], {"n"}),
    "other fields": ([heal(1), heal(2, path="mode"), heal(3, path="owner")], set()),
    "other nodes": ([heal(1), heal(2, "m"), heal(3)], set()),
    "other resources": ([heal(1), heal(2), heal(3, resource="File//b")], set()),
    "an earlier revision": ([heal(1, commit=B), heal(2, commit=B), heal(3, commit=B)], set()),
    "a clock set back": ([heal(9000), heal(10), heal(20)], {"n"}),
    "resumed": ([heal(1), heal(2), heal(3), resume("n")], set()),
    "all resumed": ([heal(1), heal(2), heal(3), resume()], set()),
    "another resumed": ([heal(1), heal(2), heal(3), resume("m")], {"n"}),
    "resumed, then once more": ([heal(1), heal(2), resume("n"), heal(3)], set()),
}


@pytest.mark.parametrize(("records", "nodes"), FLAPS.values(), ids=FLAPS)
def test_what_flaps(records: list[Mapping[str, Any]], nodes: set[str]) -> None:
    found = flapping(records, A)
    assert set(found) == nodes
    assert all(held["File//a"].data["before"] == "x" and held["File//a"].data["after"] == "y" for held in found.values())


def suspend(until: float, *scope: str) -> Mapping[str, Any]:
    return {"type": "suspended", "scope": list(scope), "reason": "r", "until": until, "by": "ada"}


SUSPENDED: dict[str, tuple[list[Mapping[str, Any]], set[str]]] = {
    "one node": ([suspend(20, "n")], {"n"}),
    "over": ([suspend(9, "n")], set()),
    "all": ([suspend(20)], {"n", "m"}),
    "all, one resumed": ([suspend(20), resume("n")], {"n", "m"}),  # the cluster's still holds for it
    "one and all, all resumed": ([suspend(20, "n"), suspend(20), resume()], set()),
    "anew": ([suspend(5, "n"), suspend(20, "n")], {"n"}),
}


@pytest.mark.parametrize(("records", "nodes"), SUSPENDED.values(), ids=SUSPENDED)
def test_who_is_suspended(records: list[Mapping[str, Any]], nodes: set[str]) -> None:
    found = suspended(records, 10.0)
    assert {name for name in ("n", "m") if suspension_of(found, name)} == nodes


GOOD = 'repository = "/srv/site.git"\n'
SETTINGS: dict[str, tuple[str | None, dict[str, str | None], Settings | list[tuple[str, tuple[int, int], str]]]] = {
    "the least": (GOOD, {}, Settings("/srv/site.git")),
    "a branch's short name": (GOOD + 'ref = "prod"\n', {}, Settings("/srv/site.git", "refs/heads/prod")),
    "options go before": (GOOD, {"repository": "u", "interval": "2m"}, Settings("u", interval=120.0)),
    "nothing": (None, {}, [("missing-key", (0, 0), "repository")]),
    "no TOML": ("a = \n", {}, [("not-toml", (1, 5), "")]),
    "all at once": (
        'repositry = "x"\n\n  interval = 5\ndrift-interval = "0s"\n',
        {"ref": "a..b"},
        [
            ("not-a-ref", (0, 0), "ref"),
            ("missing-key", (0, 0), "repository"),
            ("unknown-key", (1, 1), "repositry"),
            ("not-text", (3, 3), "interval"),
            ("not-a-span", (4, 1), "drift-interval"),
        ],
    ),
    "an option of git": (None, {"repository": "--upload-pack=x"}, [("not-a-repository", (0, 0), "repository")]),
    "signed, and webhooks": (
        GOOD + 'signed = "head"\nallowed-signers = "/etc/signers"\nwebhook = "[::1]:87"\nwebhook-secret = "/etc/secret"\n',
        {},
        Settings("/srv/site.git", signed="head", allowed_signers="/etc/signers", webhook="[::1]:87", webhook_secret="/etc/secret"),
    ),
    "signed and heard by halves": (
        GOOD + 'signed = "strict"\nwebhook = "localhost:8787"\n',
        {},
        [("needs-key", (2, 1), "signed"), ("needs-key", (3, 1), "webhook")],
    ),
    "signed and heard wrongly": (
        GOOD + 'signed = "sometimes"\nwebhook = "8787"\nwebhook-secret = "secret"\n',
        {"gpg-keyring": "x"},
        [
            ("not-absolute", (0, 0), "gpg-keyring"),
            ("not-one-of", (2, 1), "signed"),
            ("not-an-address", (3, 1), "webhook"),
            ("not-absolute", (4, 1), "webhook-secret"),
        ],
    ),
    "a port that is none": (GOOD, {"webhook": "h:65536", "webhook-secret": "/s"}, [("not-an-address", (0, 0), "webhook")]),
    "a table": (GOOD + "[interval]\n", {}, [("not-text", (2, 2), "interval")]),
}


@pytest.mark.parametrize(("text", "options", "expected"), SETTINGS.values(), ids=SETTINGS)
def test_settings(text: str | None, options: dict[str, str | None], expected: Settings | list[Any]) -> None:
    found = parse(text, options)
    assert ([(w.code, w.place, w.key) for w in found] if isinstance(found, tuple) else found) == expected
    assert not isinstance(found, tuple) or all(isinstance(w, Wrong) for w in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90.0), ("1d12h", 129600.0), ("500ms", 0.5), ("2w", 1209600.0), ("5", None), ("", None), ("1y", None), ("-1s", None)],
)
def test_spans(text: str, expected: float | None) -> None:
    assert seconds(text) == expected


def test_where_webhooks_are_heard() -> None:
    assert Settings("x").listen is None
    assert Settings("x", webhook="127.0.0.1:8787").listen == ("127.0.0.1", 8787)
    assert Settings("x", webhook="[::1]:87").listen == ("::1", 87)
