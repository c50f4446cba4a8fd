"""Every parser: what a node said in, a value, Absent or Unknown out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.facts import available, file, hostname, order, os_release, packages
from reconciler.facts import raw as raw_text
from reconciler.model.fact import Absent, Fact, Facts, Raw, Value
from reconciler.model.version import Version
from tests.cases import facts, load, plain, raw, told, values

Case = Mapping[str, Any]


def expected(case: Case) -> dict[str, Any]:
    return {key: plain(case[key]) for key in ("value", "absent", "unknown") if key in case}


@pytest.mark.parametrize("case", load("facts/os_release.yaml"))
def test_distribution_and_its_package_manager(case: Case) -> None:
    found = os_release.distribution(facts(os_release=raw(case)))
    assert told(found) == expected(case)
    assert told(os_release.manager(found)) == case["manager"]


@pytest.mark.parametrize("case", load("facts/hostname.yaml"))
def test_host_name_on_disk_and_in_the_kernel(case: Case) -> None:
    good = Raw(b"other\n", status=None)
    both = facts(hostname=(raw(case), good))
    assert (told(hostname.static(both)), told(hostname.running(both))) == (expected(case), {"value": "other"})
    turned = facts(hostname=(good, raw(case)))
    assert told(hostname.running(turned)) == expected(case)


def _packages(found: Fact[dict[str, tuple[packages.Installed, ...]]]) -> dict[str, Any]:
    if not isinstance(found, Value):
        return told(found)

    def words(package: packages.Installed) -> str:
        return f"{package.version} {package.arch}" + " held" * package.held + " not-whole" * (not package.whole)

    return {"value": {name: [words(p) for p in several] for name, several in found.value.items()}}


@pytest.mark.parametrize("case", load("facts/rpm.yaml"))
def test_rpm(case: Case) -> None:
    assert _packages(packages.installed(facts(packages_rpm=raw(case)), "dnf")) == expected(case)


@pytest.mark.parametrize("case", load("facts/dpkg.yaml"))
def test_dpkg(case: Case) -> None:
    assert _packages(packages.installed(facts(packages_deb=raw(case)), "apt")) == expected(case)


@pytest.mark.parametrize("case", load("facts/versionlock.yaml"))
def test_version_locks(case: Case) -> None:
    found = facts(versionlock=(raw(case), Raw(b"[main]\nenabled=1\n")))
    assert told(packages.locks(found)) == expected(case)
    lines = packages.lock_lines(found)
    assert [packages.lock_name(line) for line in lines if line.strip() or len(lines) == len(case["names"])] == case["names"]


@pytest.mark.parametrize("case", load("facts/versionlock_conf.yaml"))
def test_whether_dnf_honours_our_locks(case: Case) -> None:
    assert told(packages.parse_plugin(raw_text.file_text(raw(case)))) == expected(case)
    found = packages.locks(facts(versionlock=(Raw(b"tmux-0:3.2a-4.el9.*\n"), raw(case))))
    assert isinstance(found, Value) == ("value" in case)


@pytest.mark.parametrize("data", [b"", b"a\n", b"# \xff\xfe\nb\n", b"a\r\nb\r\n", "# A\u2028B\n".encode(), b"\n\n#\x0c\n"])
def test_the_lock_file_of_others_is_written_back_byte_for_byte(data: bytes) -> None:
    assert packages.lock_file(packages.lock_lines(facts(versionlock=(Raw(data), Raw())))) == data


@pytest.mark.parametrize("case", load("facts/repoquery.yaml"))
def test_what_dnf_offers(case: Case) -> None:
    assert told(available.offered(facts(available=raw(case)), "dnf")) == expected(case)


@pytest.mark.parametrize("case", load("facts/madison.yaml"))
def test_what_apt_offers(case: Case) -> None:
    assert told(available.offered(facts(available=raw(case)), "apt")) == expected(case)


@pytest.mark.parametrize("case", load("facts/stat.yaml"))
def test_one_path(case: Case) -> None:
    found = file.place(facts(**{"file:/x": raw(case)}), "/x")
    if isinstance(found, Value):
        place, entry = found.value, found.value.entry
        shown = [entry.type, entry.mode, entry.owner, entry.group, entry.size, entry.sha256] if entry else None
        parts = {"entry": shown, "owner": place.owner_exists, "group": place.group_exists, "parent": place.parent_is_directory}
        assert {"value": parts} == expected(case)
    else:
        assert told(found) == expected(case)


@pytest.mark.parametrize("case", [pytest.param(pair, id=f"{pair[0]} {pair[1]}") for pair in values("facts/rpm_order.yaml")])
def test_order_of_rpm_versions(case: tuple[str, str, int]) -> None:
    one, two, expected_sign = case
    assert (order.compare(one, two), order.compare(two, one)) == (expected_sign, -expected_sign)


MEETS = [
    ("3:570.86.15-1.el9", ["570.86.15", "570.86.15-1.el9", "3:570.86.15", "3:570.86.15-1.el9", "570.*", "570.86.15-*", "3:570.*"]),
    ("3.2a-4.el9", ["3.2a", "3.2a-4.el9", "0:3.2a", "0:3.2a-4.el9", "3.2a-*", "3.2a-4.*", "0:3.2a-*"]),
    ("3.134", ["3.134", "0:3.134", "3.*"]),
]


@pytest.mark.parametrize(("version", "wanted"), MEETS)
def test_a_version_is_met_with_or_without_epoch_and_release(version: str, wanted: list[str]) -> None:
    found = Version.parse(version)
    assert str(found) == version
    assert all(found.meets(text) for text in wanted)
    others = [
        "",
        "*",
        "-*",
        "3.1*",
        "57.*",
        "3.2.*",
        "570.86-*",
        "9:3.*",
        version[:-1],
        f"{version}.1",
        f"9:{version}",
        "3",
        "570.86",
        f" {version}",
    ]
    assert not any(found.meets(text) for text in others)


def test_what_was_not_asked_is_unknown() -> None:
    nothing = Facts()
    answers: list[Fact[Any]] = [
        os_release.distribution(nothing),
        hostname.static(nothing),
        hostname.running(nothing),
        packages.installed(nothing, "dnf"),
        packages.installed(nothing, "apt"),
        packages.locks(nothing),
        available.offered(nothing, "dnf"),
        file.place(nothing, "/x"),
    ]
    assert [told(answer) for answer in answers] == [{"unknown": "NotAsked"}] * len(answers)
    assert packages.lock_lines(nothing) == ()
    assert told(Absent("x")) == {"absent": "x"}
