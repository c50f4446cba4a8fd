"""Whatever stands in a saved output, its parser answers a value, Absent or Unknown, soon; and a cut text says nothing else.

`python -m acceptance.parsers_never_raise [EXAMPLES]`: for each format mutations of the corpus by Hypothesis (500 by default), the
samples of all others and lines of a megabyte; of each sample the beginnings that end with a line. Two to three minutes in all.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.claims import Claims, say
from reconciler.facts.formats import FORMATS, plain
from tests.corpus import damage
from tests.corpus.cases import cases, texts
from tests.corpus.cut import wrong_when_cut

EXAMPLES = 500
SOON = 2.0  # seconds of CPU, and as much for each megabyte
BEGINNINGS = 60  # of one sample


@dataclass
class Tally:
    """What came of a format's cases."""

    answers: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    of_bytes: int = 0
    faults: list[str] = field(default_factory=list)

    def run(self, name: str, what: str, text: str) -> None:
        """One case: any error is a fault, and so is an answer that is late or no JSON."""
        began = time.process_time()
        try:
            found = FORMATS[name](text)
            json.dumps(plain(found), allow_nan=False)
        except Exception as error:  # noqa: BLE001 (that there is none is the claim)
            self.faults.append(f"{what}: {type(error).__name__}: {error}"[:300])
            return
        took = time.process_time() - began
        self.answers[type(found).__name__] += 1
        if took > self.slowest:
            self.slowest, self.of_bytes = took, len(text)
        if took > SOON * (1 + len(text) / damage.MIB):
            self.faults.append(f"{what}: {took:.1f} s for {len(text)} characters")


def mutations(name: str, examples: int, tally: Tally) -> None:
    @settings(max_examples=examples, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(seed=st.integers(0, 2**64))
    def run(seed: int) -> None:
        chance = random.Random(seed)
        tally.run(name, f"seed {seed}", damage.damaged(chance.choice(texts(name)), chance))

    run()


def others(name: str) -> Iterator[tuple[str, str]]:
    for case in cases():
        if case.format != name:
            yield case.name, case.text()
    for piece in range(damage.PIECES):
        yield f"huge line {piece}", damage.huge(texts(name)[piece % len(texts(name))], piece)
        yield f"lone huge line {piece}", damage.huge("", piece)


def beginnings(name: str) -> Iterator[str]:
    """Wrong values of a sample's beginnings."""
    for case in cases():
        if case.format == name:
            whole, data = case.parsed(), case.path.read_bytes()
            ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
            for at in ends[:: len(ends) // BEGINNINGS + 1]:
                yield from (f"{case.name} cut at {at}: {each}" for each in wrong_when_cut(case, whole, at))


def main() -> int:
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES
    claims = Claims("parsers never raise", "")
    say(f"{examples} mutations a format, then other outputs and huge lines")
    print("| format | cases | Value | Absent | Unknown | slowest s | of MB | faults |\n|---|---|---|---|---|---|---|---|")
    faults: list[str] = []
    cut: list[str] = []
    total = 0
    for name in FORMATS:
        tally = Tally()
        mutations(name, examples, tally)
        for what, text in others(name):
            tally.run(name, what, text)
        found = [f"{tally.answers[kind]}" for kind in ("Value", "Absent", "Unknown")]
        ran = sum(tally.answers.values()) + len(tally.faults)
        cells = [name, f"{ran}", *found, f"{tally.slowest:.2f}", f"{tally.of_bytes / 1e6:.2f}", f"{len(tally.faults)}"]
        print(f"| {' | '.join(cells)} |", flush=True)
        total += ran
        faults += [f"{name}: {each}" for each in tally.faults]
        cut += list(beginnings(name))
    print("\n".join([*faults[:20], *cut[:20]]))
    claims.check("no error, and every answer in time", not faults, f"{total} cases, {len(faults)} faults")
    claims.check("a cut text says nothing else than the whole one", not cut, f"{len(cut)} wrong values")
    return claims.end()


if __name__ == "__main__":
    raise SystemExit(main())
