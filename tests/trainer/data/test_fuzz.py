"""Whatever bytes a file has, reading it ends in rows and in places that are none, one for each line that holds something."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.data import digest, roles
from trainer.data.language import LANGUAGES, language
from trainer.data.read import Malformed, Row, rows

TEXTS = st.text(max_size=12)
TURNS = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS}), max_size=4
)
LIKELY = st.one_of(
    st.fixed_dictionaries({"instruction": TEXTS, "output": TEXTS}, optional={"input": TEXTS, "id": st.integers()}),
    st.fixed_dictionaries({"messages": TURNS}),
    st.fixed_dictionaries({"prompt": TURNS, "chosen": TURNS, "rejected": TURNS}),
    st.fixed_dictionaries({"prompt": TEXTS, "chosen": TEXTS, "rejected": TEXTS}),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["messages", "role", "content", "input", "x"]), inner)
    ),
    max_leaves=8,
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A likely row, or any JSON, with some bytes of it overwritten, cut or doubled."""
    found = draw(LIKELY | ANYTHING)
    raw = bytearray(json.dumps(found, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(raw)))
        raw[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(raw)


def read(name: str, content: bytes) -> list[Row | Malformed]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return list(rows(path))


@settings(deadline=None)
@given(st.lists(lines(), max_size=6), st.sampled_from([b"\n", b"\r\n"]))
def test_every_line_that_holds_something_is_a_row_or_malformed(given_lines: list[bytes], end: bytes) -> None:
    content = end.join(given_lines)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        content = b" " + content  # read as UTF-16 otherwise, which ends it
    found = read("a.jsonl", content)
    filled = [
        at for at, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1) if line.strip(b" \t\r\n\x0b\x0c")
    ]
    assert [place.line for place in found] == filled
    for place in found:
        if isinstance(place, Malformed):
            assert place.why
        else:
            digest.content(place)
            assert isinstance(roles.order(place) + roles.empty(place), str)
            assert language(digest.said(place).encode()) in LANGUAGES


@settings(deadline=None)
@given(st.lists(lines(), max_size=6), st.sampled_from([b",", b",\n ", b"\n"]))
def test_an_array_of_anything_ends(given_lines: list[bytes], between: bytes) -> None:
    found = read("a.json", b"[" + between.join(given_lines) + b"]")
    assert len([place for place in found if isinstance(place, Row)]) <= content_rows(given_lines)
    assert all(place.line for place in found)


def content_rows(given_lines: list[bytes]) -> int:
    """No more rows than there are braces that could begin one."""
    return sum(line.count(b"{") for line in given_lines)
