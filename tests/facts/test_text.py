"""The pre-pass: a launcher's tag goes from every line or from none, and what only looks like a tag stays."""

from __future__ import annotations

import pytest

from reconciler.facts import text
from reconciler.facts.formats import FORMATS, plain

LINKS = (
    "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000\\    link/loopback\n"
    "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\\    link/ether\n"
)
GPU = "GPU 0: NVIDIA H200 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n\t Link 0: 26.562 GB/s\n\n\t Link 1: <inactive>\n"
TAGS = (
    "0: ",
    " 3: ",
    "12345: ",
    "[1,3]<stdout>:",
    "[prterun-n1-77@1,0]<stderr>: ",
    "(pid=99, ip=10.0.0.7) ",
    "(Worker_TP0 pid=123) ",
)


def tagged(said: str, tag: str) -> str:
    return "".join(f"{tag}{line}\n" for line in said.splitlines())


@pytest.mark.parametrize("tag", TAGS)
def test_tags_go_and_indents_stay(tag: str) -> None:
    assert text.clean(tagged(GPU, tag)) == GPU


@pytest.mark.parametrize("tag", TAGS)
def test_a_line_without_a_tag_keeps_all(tag: str) -> None:
    said = tagged(GPU, tag) + "Link 2: <inactive>\n"
    assert text.clean(said) == said


def test_the_launchers_own_words_have_no_tag() -> None:
    assert text.clean(f"srun: job 7 queued\n{tagged(GPU, '0: ')}") == f"srun: job 7 queued\n{GPU}"


def test_an_empty_line_may_have_lost_the_blank_of_its_tag() -> None:
    assert text.clean("0: a\n0:\n0:  b\n") == "a\n\n b\n"


def test_tags_of_two_launchers_are_none() -> None:
    said = "0: a\n[1,0]<stdout>: b\n"
    assert text.clean(said) == said


@pytest.mark.parametrize("tag", ["", "7: ", "[1,3]<stdout>:", "(pid=99, ip=10.0.0.7) "])
def test_the_index_of_an_interface_is_no_tag(tag: str) -> None:
    found = plain(FORMATS["ip-link"](tagged(LINKS, tag)))
    assert found["names"] == ["lo", "eth0"]
    assert [found["interfaces"][name]["index"] for name in found["names"]] == [1, 2]


def test_what_terminals_add_goes() -> None:
    assert text.clean("\ufeff\x1b[4mGPU0\x1b[0m\r\nold\rnew\r\r\n") == "GPU0\nnew\n"


@pytest.mark.parametrize("said", [GPU, LINKS[:0], "\n\n", " ", "a", GPU * 3])
def test_what_needs_nothing_is_left_as_it_is(said: str) -> None:
    assert text.clean(said) == said
