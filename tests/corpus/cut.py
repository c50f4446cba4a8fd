"""A cut text says less, and nothing else: which values of a cut text differ from those of the whole one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.facts.formats import FORMATS, plain
from tests.corpus.cases import Case

# what a field says of the text as far as it goes, and so has to change with it
OF_THE_TEXT: dict[str, frozenset[str]] = {
    "collect-env": frozenset({"complete"}),
    "dcgm-metrics": frozenset({"gpu_count", "mig_instances"}),
    "ibstat": frozenset({"missing_ports"}),
    "ibv-devinfo": frozenset({"missing_ports"}),
    "ip-link": frozenset({"cut", "strange_lines"}),
    "kernel-log": frozenset({"lines", "xid_lines", "rate_limited", "hung_task", "crashed"}),
    "lspci": frozenset({"strange_lines"}),
    # the network that is chosen is told behind the cards that are found
    "nccl-log": frozenset({"inits_complete", "inits_started", "count", "transport"}),
    "nccl-tests": frozenset({"best_busbw_gb_s"}),
    "nvsmi-csv": frozenset({"truncated"}),
    "nvsmi-L": frozenset({"damaged"}),
    "nvsmi-nvlink": frozenset({"uneven"}),
    "nvsmi-q": frozenset({"complete"}),
    "nvsmi-table": frozenset({"complete"}),
    "nvsmi-xml": frozenset({"complete", "well_formed"}),
    "pip": frozenset({"count"}),
    "rdma-link": frozenset({"cut"}),
    "rpm-qa": frozenset({"complete"}),
    "slurm": frozenset({"states"}),  # of a log: states that were set one after the other
    "topo": frozenset({"missing_rows", "link_counts", "nearest_nics"}),  # NICs are named behind the matrix
}
# cut between two lines before the first wanted metric, a text is the one of a program that has none
OTHER_PROGRAM = {"vllm-metrics": {"absent": "NoVllmMetrics"}, "dcgm-metrics": {"absent": "NoDcgmMetrics"}}
# what quotes a line, which may be cut: the quotation is the beginning of the whole one
QUOTED = frozenset({"message", "said", "text"})


def _fact(value: Any) -> bool:
    return isinstance(value, dict) and set(value) in ({"absent"}, {"unknown", "detail"})


def wrong(cut: Any, whole: Any, of_the_text: frozenset[str], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Each value of a cut text that is another one in the whole text, or that is not there. Unknown says nothing wrong."""
    here = "/".join(path)
    if _fact(cut) and "unknown" in cut:
        return
    if _fact(whole) and "unknown" in whole:
        return
    if path and path[-1] in of_the_text:
        return
    if _fact(cut) or _fact(whole) or not _alike(cut, whole):
        if cut != whole:
            yield f"{here}: {cut!r} instead of {whole!r}"
    elif isinstance(cut, dict):
        for key, item in cut.items():
            yield from wrong(item, whole[key], of_the_text, (*path, key)) if key in whole else (f"{here}: {key!r} is not there",)
    elif isinstance(cut, list):
        yield from _items(cut, whole, of_the_text, path)
    elif cut != whole and not (path and path[-1] in QUOTED and whole.startswith(cut)):
        yield f"{here}: {cut!r} instead of {whole!r}"


def _alike(cut: Any, whole: Any) -> bool:
    return type(cut) is type(whole) or (isinstance(cut, int | float) and isinstance(whole, int | float))


def _items(cut: list[Any], whole: list[Any], of_the_text: frozenset[str], path: tuple[str, ...]) -> Iterator[str]:
    """Texts and numbers in any order, parts in theirs."""
    for place, item in enumerate(cut):
        if not isinstance(item, dict | list):
            if item not in whole:
                yield f"{'/'.join(path)}: {item!r} is not there"
        elif place < len(whole):
            yield from wrong(item, whole[place], of_the_text, (*path, str(place)))
        elif not _fact(item):
            yield f"{'/'.join(path)}: one more, {item!r}"


def wrong_when_cut(case: Case, whole: Any, at: int) -> list[str]:
    """The wrong values of a sample that is cut behind `at` bytes."""
    data = case.path.read_bytes()[:at]
    cut = plain(FORMATS[case.format](data.decode("utf-8", "replace")))
    if cut == OTHER_PROGRAM.get(case.format) and data.endswith(b"\n"):
        return []
    return list(wrong(cut, whole, OF_THE_TEXT.get(case.format, frozenset())))
