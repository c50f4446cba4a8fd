"""`python -m trainer.data check PATH`: may this be trained on? Verdict, table, JSON and a page with plots.

Exit status: 0 it may be; 1 the call is wrong, or something cannot be read or written; 2 something has to be mended before training;
130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from trainer.data.read import ALLOWED, SourceError
from trainer.data.report import Asked

GOOD, WRONG, STOP, INTERRUPTED = 0, 1, 2, 130
SHARE, SEED = 0.05, 42  # of the reference site's 95/5; Transformers' own seed


class CallError(Exception):
    """The call is wrong: every reason."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class _Parser(argparse.ArgumentParser):
    """argparse that ends with our exit status, and says the nearest name of an option."""

    known: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        wrong = [word for word in message.split() if word.startswith("--")] if "unrecognized" in message else []
        close = [f"{word}: did you mean {near[0]}?" for word in wrong if (near := difflib.get_close_matches(word, self.known, 1))]
        raise CallError("; ".join((message, *close)))


def _parser() -> _Parser:
    parser = _Parser(prog="python -m trainer.data", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="check")
    check = commands.add_parser("check", help="look at all of the data once", description=__doc__, allow_abbrev=False)
    check.formatter_class = argparse.RawDescriptionHelpFormatter
    check.add_argument("source", metavar="PATH", help=ALLOWED)
    check.add_argument("--tokenizer", metavar="DIR", type=Path, help="count tokens with the tokenizer in this folder")
    check.add_argument("--max-length", metavar="N", type=int, default=0, help="tokens a row may have in training")
    check.add_argument("--validation", metavar="PATH", default="", help="a validation set of its own")
    check.add_argument("--split", metavar="SHARE", type=float, help=f"share that is validation, default {SHARE}; 0: train on all")
    check.add_argument("--seed", metavar="S", type=int, default=SEED, help=f"of the split, default {SEED}")
    check.add_argument("--show", metavar="N", type=int, default=10, help="places that are told of each finding, default 10")
    check.add_argument("--cores", metavar="N", type=int, default=0, help="for the tokenizer, default all")
    check.add_argument("--scratch", metavar="DIR", type=Path, help="for notes on rows, 272 bytes each; default TMPDIR")
    check.add_argument("--json", action="store_true", help="the report as JSON on stdout")
    check.add_argument("--html", metavar="FILE", type=Path, help="write one page with plots, which needs nothing else")
    parser.known = [name for action in check._actions for name in action.option_strings]
    return parser


def main(argv: Sequence[str]) -> int:
    """The exit status. Data goes to stdout, what is wrong and progress to stderr; with --json what is wrong is on stdout too."""
    from trainer.data.tokens import TokenizerError

    as_json = "--json" in argv
    try:
        asked = _parser().parse_args(argv)
        return _check(asked)
    except (CallError, SourceError) as e:
        return _failed(e.problems, as_json)
    except TokenizerError as e:
        return _failed((str(e),), as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone (| head): nobody is left to be told
        return WRONG
    except OSError as e:
        return _failed((f"{e.filename or 'this machine'}: {e.strerror or e}",), as_json)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _failed(problems: Sequence[str], as_json: bool) -> int:
    if as_json:
        print(json.dumps({"error": {"problems": list(problems)}}, ensure_ascii=False))
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return WRONG


def _check(call: argparse.Namespace) -> int:
    from trainer.data import check, page, tokens, words

    asked = _asked(call)
    tokenizer: Any = tokens.load(call.tokenizer, call.cores) if call.tokenizer else None
    report = check.check(asked, tokenizer, check.Options(call.show, call.scratch, _progress()))
    if call.html:
        _write(call.html, page.html(report))
    _print(json.dumps(report.to_json(), ensure_ascii=False) if call.json else "\n".join(words.lines(report)))
    return GOOD if report.good else STOP


def _asked(call: argparse.Namespace) -> Asked:
    """What was asked for. Raises CallError with everything that is wrong with it."""
    wrong = []
    if call.split is not None and not 0 <= call.split < 1:
        wrong.append(f"--split {call.split}: allowed is 0 (train on everything) up to, but not including, 1; 0.05 is usual")
    if call.split and call.validation:
        wrong.append("--split and --validation: validation is either a share of the data or a set of its own")
    if call.max_length < 0 or (call.max_length and not call.tokenizer):
        wrong.append(f"--max-length {call.max_length}: a number of tokens from 1 on, together with --tokenizer DIR")
    for name, least in (("seed", 0), ("show", 0), ("cores", 0)):
        if getattr(call, name) < least:
            wrong.append(f"--{name} {getattr(call, name)}: allowed is {least} and more")
    if call.scratch and not call.scratch.is_dir():
        wrong.append(f"--scratch {call.scratch}: no such folder")
    if call.html and not call.html.absolute().parent.is_dir():
        wrong.append(f"--html {call.html}: no such folder {call.html.absolute().parent}")
    if wrong:
        raise CallError(*wrong)
    share = 0.0 if call.validation else SHARE if call.split is None else call.split
    return Asked(call.source, call.validation, share, call.seed, str(call.tokenizer or ""), call.max_length)


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a page that is cut off would look like one without findings."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _print(text: str) -> None:
    sys.stdout.buffer.write(text.encode() + b"\n")  # data is UTF-8, whatever the terminal's language says
    sys.stdout.flush()


def _progress() -> Callable[[int], None]:
    """Tells a person at a terminal how many rows were read, every second."""
    if not sys.stderr.isatty():
        return lambda rows: None
    told = time.monotonic()

    def tell(rows: int) -> None:
        nonlocal told
        if time.monotonic() - told > 1:
            told = time.monotonic()
            print(f"\r{rows:,} rows ...\r", end="", file=sys.stderr, flush=True)

    return tell
