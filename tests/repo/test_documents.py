"""What the documents say is there: commands, links, decisions, manifests; and nothing of the machine that wrote them."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import click
import pytest

from reconciler.cli import COMMANDS, cli
from reconciler.model.outcome import PRECEDENCE
from reconciler.source import validate_path
from tools.sources import ROOT, files

DOCUMENTS = [path for path in files() if path.suffix == ".md"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADRS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CALL = re.compile(r"(?:`|^)reconcile ((?:[a-z]+ ?)+)", re.MULTILINE)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def command(words: list[str]) -> click.Command | None:
    """The command that `words` begin with; a word that a group does not know is None."""
    context = click.Context(cli)
    found: click.Command | None = cli
    for word in words:
        if not isinstance(found, click.Group):
            return found
        found = found.get_command(context, word)
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_call_in_a_document_exists(path: Path) -> None:
    calls = [words.split() for words in CALL.findall(path.read_text(encoding="utf-8"))]
    assert [words for words in calls if command(words) is None] == []


def test_the_readme_has_every_command_and_every_exit_status() -> None:
    called = {words.split()[0] for words in CALL.findall(README)}
    assert set(COMMANDS) <= called
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)} == {*PRECEDENCE} - {7}  # nothing rolls back yet
    told = re.search(r"the first of ([\d, ]+) is told", README)
    assert told is not None
    assert [int(n) for n in told[1].split(",")] == [code for code in PRECEDENCE if code not in (0, 7)]
    assert len(README.splitlines()) < 150


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_link_leads_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    local = [link for link in LINK.findall(text) if "://" not in link]
    missing = [link for link in local if not (path.parent / link.partition("#")[0]).exists()]
    assert missing == []
    here = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines() if line[:1] == "#"
    }
    assert [link for link in local if link.startswith("#") and link[1:] not in here] == []


def test_every_decision_is_listed_once_under_its_own_title() -> None:
    numbers = [path.name[:4] for path in ADRS]
    assert len(numbers) == len(set(numbers))
    listed = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    titles = {path.name: path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for path in ADRS}
    assert all(title.startswith(f"{name[:4]}: ") for name, title in titles.items())
    assert [name for name, title in titles.items() if f"- [{title}]({name})" not in listed.splitlines()] == []


def test_every_document_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        path = todo.pop()
        if path in seen or path.suffix != ".md" or not path.is_file():
            continue
        seen.add(path)
        todo += [(path.parent / link.partition("#")[0]).resolve() for link in LINK.findall(path.read_text(encoding="utf-8"))]
    assert [named(path) for path in DOCUMENTS if path not in seen] == []


def test_every_resource_kind_has_its_page() -> None:
    from reconciler.kinds import KINDS

    for name in KINDS:
        page = (ROOT / "docs" / "kinds" / f"{name.lower()}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {name}\n")
        assert "**Where it was proven.**" in page
        assert all(word in page for word in ("| fields |", "| observed |", "| done |", "held", "lab:", "not proven:"))


def test_the_manifest_of_the_readme_is_valid(tmp_path: Path) -> None:
    text = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert text is not None
    (tmp_path / "site.yaml").write_text(text[1])
    (tmp_path / "known_hosts").write_text("")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "motd").write_text("welcome\n")
    loaded = validate_path(tmp_path)
    assert loaded.problems == ()
    assert loaded.nodes == 8


def test_no_file_names_this_machine() -> None:
    """The folder that this checkout lies in, and the machine's name where it is one that nothing else would have."""
    secrets = [f"{ROOT.parent}/"] if len(ROOT.parent.parts) > 1 and ROOT.parent != Path("/tmp") else []
    host = socket.gethostname()
    secrets += [host] if len(host) > 7 and host not in ("localhost", "localhost.localdomain") else []
    texts = {named(path): path.read_text(encoding="utf-8") for path in files()}
    assert [(name, secret) for name, text in texts.items() for secret in secrets if secret in text] == []
