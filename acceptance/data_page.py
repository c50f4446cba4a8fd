"""A set with planted faults is checked: all of them are found on their lines, none is invented, and the page shows them.

The page was looked at: docs/pictures/training-data.png is a picture of it, marked with the page's digest, and this script holds the
mark against the page that it gets. `--picture BROWSER` makes a new one with a Chromium of yours.
"""

from __future__ import annotations

import argparse
import binascii
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from acceptance import planted_data
from acceptance.claims import ROOT, Claims, say
from tools import train_env

SEEDS = (1, 2, 3)
SHOWN = 1  # the seed of the picture
PICTURE = ROOT / "docs" / "pictures" / "training-data.png"
MARK, SIZE = b"page-sha256", (1000, 4560)
# a template that takes no tools, as many do not
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'tool' %}{{ raise_exception('this model knows no tools') }}{% endif %}"
    "<|{{ m['role'] }}|>\\n{{ m['content'] }}\\n{% endfor %}"
)
_TOKENIZER = """
import json, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
words, folder, template = json.load(sys.stdin), sys.argv[1], sys.argv[2]
made = Tokenizer(models.BPE())
made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
learn = trainers.BpeTrainer(vocab_size=1500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
made.train_from_iterator(words, learn)
fast = PreTrainedTokenizerFast(tokenizer_object=made)
fast.chat_template = template
fast.save_pretrained(folder)
"""
# sets with one fault each, of the whole set: what is written, how it is called, the codes that are found
SMALL: dict[str, tuple[str, tuple[str, ...], set[str]]] = {
    "no row": ("\n\n", (), {"NoRows"}),
    "one row cannot be split": ('{"instruction": "a", "output": "b"}\n', (), {"NothingToValidate"}),
    "equal rows cannot be split": ('{"instruction": "a", "output": "b"}\n' * 3, (), {"NothingToValidate", "Duplicates"}),
    "two formats": (
        '{"instruction": "a", "output": "b"}\n{"prompt": "c", "chosen": "d", "rejected": "e"}\n',
        (),
        {"MixedFormats"},
    ),
    "everything is trained on": (
        '{"instruction": "a", "output": "b"}\n{"instruction": "c", "output": "d"}\n',
        ("--split", "0"),
        {"TrainsOnEverything"},
    ),
    "nothing wrong": ('{"instruction": "a", "output": "b"}\n{"instruction": "c", "output": "d"}\n', (), set()),
}
GOOD, STOP = 0, 2


def check(python: Path, folder: Path, *argv: str) -> tuple[int, dict[str, Any]]:
    """Exit status and report of one call, from inside the folder, so that no place in it names this machine."""
    call = (str(python), "-m", "trainer.data", "check", *argv, "--json")
    done = subprocess.run(
        call, cwd=folder, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False, stdout=subprocess.PIPE
    )
    return done.returncode, json.loads(done.stdout)


def tokenizer(python: Path, folder: Path) -> None:
    """One that is made of the planted words."""
    words = [*planted_data.ENGLISH, *planted_data.CHINESE] * 3
    argv = (str(python), "-c", _TOKENIZER, str(folder / "tokenizer"), TEMPLATE)
    subprocess.run(argv, input=json.dumps(words).encode(), check=True, stdout=subprocess.DEVNULL)


def judge(claims: Claims, seed: int, planted: planted_data.Planted, report: Mapping[str, Any]) -> None:
    """What was found is what was planted, code by code and line by line."""
    found = {finding["code"]: finding for finding in report["findings"]}
    wanted = {code: {Path(place).name for place in places} for code, places in planted.faults.items()}
    for code in sorted(found.keys() | wanted.keys()):
        places = {example["where"] for example in found.get(code, {}).get("examples", ())}
        count = found.get(code, {}).get("count", 0)
        if code == "UnreadKeys":  # told by their names
            held = count == len(wanted.get(code, ())) and places == {"id", "source"}
        else:
            held = places == wanted.get(code, set()) and count == len(places)
        off = sorted(places ^ wanted.get(code, set())) if code != "UnreadKeys" else sorted(places)
        claims.check(
            f"seed {seed}: {code}: all found, none invented", held, f"{count}" if held else f"{count}, differing: {off[:6]}"
        )


def page(claims: Claims, text: str) -> None:
    """The page needs nothing but itself, and holds the rows as text."""
    foreign = [word for word in ("http://", "https://", "src=", "<script", "<link", "@import", "url(") if word in text]
    claims.check("the page needs no network and runs nothing", not foreign, foreign or f"{len(text):,} characters")
    claims.check("Chinese rows are marked as Chinese and written as they are", 'lang="zh">' in text and "。" in text)
    body = text[text.index("<body>") :].removesuffix("</html>\n")
    plots = [element for element in ElementTree.fromstring(body).iter() if element.tag == "svg"]
    claims.check("it is well-formed, with plots", len(plots) >= 5, f"{len(plots)} plots")


def marked(picture: bytes) -> str:
    """The page's digest that a picture is marked with."""
    at = 8
    while at < len(picture):
        (size,) = struct.unpack(">I", picture[at : at + 4])
        kind, data = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + size]
        if kind == b"tEXt" and data.startswith(MARK + b"\0"):
            return data.partition(b"\0")[2].decode()
        at += 12 + size
    return ""


def take(browser: str, path: Path) -> None:
    """A picture of a page, marked with the page's digest."""
    width, height = SIZE
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        argv = (browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}")
        subprocess.run((*argv, f"--user-data-dir={folder}/profile", f"--screenshot={shot}", f"file://{path}"), check=True)
        picture = shot.read_bytes()
    data = b"tEXt" + MARK + b"\0" + hashlib.sha256(path.read_bytes()).hexdigest().encode()
    chunk = struct.pack(">I", len(data) - 4) + data + struct.pack(">I", binascii.crc32(data))
    end = 8 + 25  # signature and header
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(picture[:end] + chunk + picture[end:])


def small(claims: Claims, python: Path, folder: Path) -> None:
    for name, (text, argv, wanted) in SMALL.items():
        (folder / "small.jsonl").write_text(text)
        code, report = check(python, folder, "small.jsonl", *argv)
        found = {finding["code"] for finding in report["findings"]}
        stops = any(finding["stops"] for finding in report["findings"])
        claims.check(name, found == wanted and code == (STOP if stops else GOOD), f"exit {code}, {sorted(found) or 'no finding'}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", metavar="BROWSER", help="make the picture anew with this Chromium, then look at it")
    asked = parser.parse_args()
    claims = Claims("training data page", "Rows are made of words in no sensible order")
    python = train_env.python(train_env.ensure())
    with tempfile.TemporaryDirectory(prefix="reconcile-data-") as name:
        folder = Path(name)
        tokenizer(python, folder)
        argv = (planted_data.TRAINING, "--validation", planted_data.VALIDATION, "--tokenizer", "tokenizer")
        more = ("--max-length", str(planted_data.MAX_LENGTH), "--show", "100")
        for seed in SEEDS:
            say(f"planted with seed {seed}")
            planted = planted_data.plant(folder, seed)
            code, report = check(python, folder, *argv, *more)
            claims.check(
                f"seed {seed}: exit 2, for findings that stop training", code == STOP, f"exit {code}, {report['rows']:,} rows"
            )
            judge(claims, seed, planted, report)
        say("one fault each")
        small(claims, python, folder)
        say("the page")
        planted_data.plant(folder, SHOWN)
        check(python, folder, *argv, *more[:2], "--show", "4", "--html", "page.html")
        path = folder / "page.html"
        page(claims, path.read_text(encoding="utf-8"))
        if asked.picture:
            take(asked.picture, path)
        mark = marked(PICTURE.read_bytes()) if PICTURE.exists() else ""
        claims.check(
            "the picture is of this page", mark == hashlib.sha256(path.read_bytes()).hexdigest(), mark[:16] or "no picture"
        )
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
