"""Host lists."""

from __future__ import annotations

import pytest

from reconciler.model import hostlist as hosts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu01", ["gpu01"]),
        ("gpu[001-003,007]", ["gpu001", "gpu002", "gpu003", "gpu007"]),
        ("gpu[9-11]", ["gpu9", "gpu10", "gpu11"]),
        ("a[1-2]x,b3", ["a1x", "a2x", "b3"]),
        ("10.20.0.[11-13]", ["10.20.0.11", "10.20.0.12", "10.20.0.13"]),
        ("mlx5_[0-1], mlx5_4", ["mlx5_0", "mlx5_1", "mlx5_4"]),
    ],
)
def test_expands_as_slurm_does(text: str, names: list[str]) -> None:
    assert list(hosts.expand(text)) == names
    assert hosts.count(text) == len(names)
    assert set(hosts.ends(text)) <= set(names)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "host-list"),
        ("a,,b", "host-list"),
        ("a[1-2", "host-list"),
        ("a[1]b[2]", "host-list"),
        ("a b", "host-list"),
        ("x" * 1025, "host-list"),
        ("a[2-1]", "host-range"),
        ("a[1-]", "host-range"),
        ("a[1-9999999]", "host-range"),
        ("a[1-20000]", "host-count"),
    ],
)
def test_what_is_no_host_list_says_why(text: str, code: str) -> None:
    with pytest.raises(hosts.HostListError) as caught:
        hosts.expand(text)
    assert caught.value.code == code


@pytest.mark.parametrize("host", ["10.0.0.1", "fe80::1", "gpu01", "GPU01.example.net", "1a"])
def test_addresses(host: str) -> None:
    assert hosts.is_address(host)


@pytest.mark.parametrize("host", ["10.0.0.256", "10.0.0", "fe80::1%eth0", "-a", "a..b", "a_b", "a" * 254, ":", ""])
def test_not_addresses(host: str) -> None:
    assert not hosts.is_address(host)


def test_node_names_are_host_names() -> None:
    assert hosts.is_node_name("gpu01.rack-2")
    assert not any(map(hosts.is_node_name, ("Gpu01", "gpu_1", "-gpu", "gpu.", "g" * 64, "")))
