"""The packages as values: names, versions, relations, and the files they are built from. Pure."""

from collections import Counter
from pathlib import Path

from lab.images.digest import digest, sources
from lab.ntpd import reply, stamp
from lab.packages import debs, el9_nvidia, el9_os
from lab.packages.debbuild import release
from lab.packages.debspec import Deb, tree
from lab.packages.rpmspec import Rpm, render
from lab.supervisor import nspawn_argv

DRIVER_NAMES = {  # facts of compatibility, el9.packages.driver
    "nvidia-open", "nvidia-driver", "nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-driver-libs",
    "libnvidia-ml", "nvidia-kmod-common", "kmod-nvidia-open-dkms", "nvidia-persistenced", "nvidia-modprobe",
}  # fmt: skip


def test_spec_file() -> None:
    rpm = Rpm(
        "demo", "1.0", "2.el9", "noarch", epoch=3, requires=("other = 3:1.0",), files={"/etc/demo.conf": "a=1\n"},
        config=("/etc/demo.conf",), links={"/etc/link": "demo.conf"}, scriptlets={"post": "exit 0"},
    )  # fmt: skip
    text = render(rpm)
    assert rpm.nevra == "demo-3:1.0-2.el9.noarch"
    assert rpm.filename == "demo-1.0-2.el9.noarch.rpm"
    for line in ("Epoch: 3", "Requires: other = 3:1.0", "%config(noreplace) /etc/demo.conf", "a=1", "%post\nexit 0"):
        assert f"\n{line}\n" in text
    assert text.index("%install") < text.index("%post") < text.index("%files")


def test_epoch_zero_is_not_written() -> None:
    assert "Epoch" not in render(Rpm("demo", "1.0", "1"))


def test_driver_packages_come_in_sets_of_one_version() -> None:
    rpms = [rpm for rpm in el9_nvidia.rpms() if rpm.version in el9_nvidia.DRIVERS]
    for version in el9_nvidia.DRIVERS:
        members = [rpm for rpm in rpms if rpm.version == version]
        assert {rpm.name for rpm in members} == DRIVER_NAMES
        assert {rpm.epoch for rpm in members} == {3}
        assert {need.split(" = ")[1] for rpm in members for need in rpm.requires} == {f"3:{version}"}


def test_every_package_is_there_once() -> None:
    for rpms in (el9_nvidia.rpms(), el9_os.rpms("10.88.0.1", "/nowhere")):
        assert max(Counter(rpm.filename for rpm in rpms).values()) == 1
    for packages in (debs.nvidia(), debs.debs("10.88.0.1", "/nowhere")):
        assert max(Counter(deb.filename for deb in packages).values()) == 1


def test_relations_within_the_repositories_resolve_but_for_one() -> None:
    rpms = [*el9_nvidia.rpms(), *el9_os.rpms("10.88.0.1", "/nowhere")]
    names = {rpm.name for rpm in rpms} | {p.split()[0] for rpm in rpms for p in rpm.provides}
    missing = {need for rpm in rpms for need in rpm.requires if need.split()[0] not in names}
    assert missing == {"libnothere.so.9"}


def test_files_of_a_deb() -> None:
    deb = Deb("demo", "1:1.0-2", depends="other (= 1.0)", files={"/etc/x": "y\n"}, conffiles=("/etc/x",),
              scripts={"postinst": "exit 1"})  # fmt: skip
    files = tree(deb)
    assert deb.filename == "demo_1.0-2_amd64.deb"
    assert "Version: 1:1.0-2\nArchitecture: amd64\n" in files["DEBIAN/control"][0]
    assert "Provides" not in files["DEBIAN/control"][0]
    assert files["DEBIAN/postinst"] == ("#!/bin/sh\nexit 1\n", 0o755)
    assert files["DEBIAN/conffiles"] == ("/etc/x\n", 0o644)
    assert files["etc/x"] == ("y\n", 0o644)


def test_release_file_carries_the_sums() -> None:
    text = release("debs", {"Packages": b"x"})
    assert text.endswith(
        "SHA256:\n 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 1 Packages\n",
    )


def test_digest_names_content_and_boundaries() -> None:
    assert digest({"a": "x", "b": "y"}) == digest({"b": b"y", "a": b"x"})
    different = [{"a": "x", "b": "y"}, {"a": "xy", "b": ""}, {"ab": "xy"}, {"a": "y", "b": "x"}]
    assert len({digest(parts) for parts in different}) == len(different)


def test_sources_see_content_and_mode(tmp_path: Path) -> None:
    file = tmp_path / "tree" / "bin" / "x"
    file.parent.mkdir(parents=True)
    file.write_text("1")
    before = digest(sources([tmp_path / "tree"]))
    file.chmod(0o755)
    assert digest(sources([tmp_path / "tree"])) != before


def test_time_server_answers_clients_only() -> None:
    request = bytes([0x23, 0, 6, 0xEC]) + bytes(36) + b"SENTSENT"
    answer = reply(request, 1.0, 2.0)
    assert answer is not None
    assert (len(answer), answer[0], answer[1], answer[24:32]) == (48, 0x24, 2, b"SENTSENT")
    assert stamp(0.5) == (2_208_988_800 << 32) + (1 << 31)
    assert reply(answer, 1.0, 2.0) is None
    assert reply(b"", 1.0, 2.0) is None


def test_a_node_gets_its_network_by_namespace() -> None:
    argv = nspawn_argv("lab-gpu01", "gpu01", Path("/x/root"), "lab-gpu01", ("--bind=/a:/b",))
    assert "--network-namespace-path=/run/netns/lab-gpu01" in argv
    assert argv[-1] == "--bind=/a:/b"
