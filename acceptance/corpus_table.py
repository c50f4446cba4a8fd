"""Parsers understand outputs of real machines: format x origin, every expected key exact, explained or wrong."""

from __future__ import annotations

from collections import Counter

from acceptance.claims import Claims, say
from tests.corpus.cases import ORIGINS, Case, Judged, cases, judge

VERDICTS = ("exact", "explained", "wrong")


def _worst(judged: list[Judged]) -> str:
    """What a sample comes to."""
    return next((verdict for verdict in reversed(VERDICTS) if any(each.verdict == verdict for each in judged)), "wrong")


def _row(name: str, samples: list[tuple[Case, list[Judged]]]) -> str:
    cells = []
    for origin in ORIGINS:
        worst = Counter(_worst(judged) for case, judged in samples if case.origin == origin)
        cells.append(" / ".join(str(worst[verdict]) for verdict in VERDICTS) if worst else "")
    keys = Counter(each.verdict for _, judged in samples for each in judged)
    cells.append(" / ".join(str(keys[verdict]) for verdict in VERDICTS))
    return f"| {name} | {' | '.join(cells)} |"


def main() -> int:
    claims = Claims("corpus", "")
    found = [(case, list(judge(case, case.parsed()))) for case in cases()]
    say("samples: exact / explained / wrong, by origin, and their keys")
    print(f"| format | {' | '.join(ORIGINS)} | keys |")
    print(f"|{'---|' * (len(ORIGINS) + 2)}")
    for name in dict.fromkeys(case.format for case, _ in found):
        print(_row(name, [(case, judged) for case, judged in found if case.format == name]))
    print(_row("all", found))
    say("explained: the sample itself shows that the expectation is wrong")
    keys = [(case, each) for case, judged in found for each in judged]
    for case, each in keys:
        if each.verdict != "exact":
            print(f"{each.verdict} {case.name} {each.key}: {each.told}")
    origins = Counter(case.origin for case, _ in found)
    claims.check("every sample is counted", origins == ORIGINS, f"{len(found)}: {dict(origins)}")
    claims.check("of every sample something is expected", all(judged for _, judged in found))
    wrong = [f"{case.name} {each.key}" for case, each in keys if each.verdict == "wrong"]
    counted = Counter(each.verdict for _, each in keys)
    claims.check("every expected key is mapped and none is wrong", not wrong, "; ".join(wrong) or dict(counted))
    return claims.end()


if __name__ == "__main__":
    raise SystemExit(main())
