"""The 25 oddest outputs of the corpus, by the length of what their meta calls odd: what each comes to, and its verdict."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from typing import Any

from acceptance.claims import Claims, say
from tests.corpus.cases import Case, Judged, cases, judge

COUNT = 25
SHOWN = 1500  # characters of a value


def oddest() -> list[Case]:
    return sorted(cases(), key=lambda case: (-len(case.odd), case.name))[:COUNT]


def shortened(value: Any, items: int = 3) -> Any:
    """The first items of every list and of large mappings."""
    if isinstance(value, list):
        kept = [shortened(item) for item in value[:items]]
        return [*kept, f"... {len(value) - items} more"] if len(value) > items else kept
    if isinstance(value, dict):
        kept_keys = list(value)[:40]
        return {key: shortened(value[key]) for key in kept_keys}
    return value


def unknown_instead(case: Case, judged: list[Judged], value: Any) -> bool:
    """The whole answer is unknown although the meta expects a value of it, which nothing explains."""
    wanted = [each for each in judged if each.verdict == "exact" and case.expected[each.key] not in (None, [], {})]
    return isinstance(value, dict) and set(value) == {"unknown", "detail"} and not wanted


def main() -> int:
    claims = Claims("oddest cases", "")
    verdicts: Counter[str] = Counter()
    for number, case in enumerate(oddest(), start=1):
        value = case.parsed()
        judged = list(judge(case, value))
        worst = max((each.verdict for each in judged), key=["exact", "explained", "wrong"].index)
        verdicts[worst] += 1
        say(f"{number}. {case.name} ({case.origin})")
        print(textwrap.fill(f"odd: {' '.join(case.odd.split())}", 130, subsequent_indent="     "))
        told = json.dumps(shortened(value), ensure_ascii=False, separators=(",", ":"))
        print(textwrap.fill(told[:SHOWN] + ("..." if len(told) > SHOWN else ""), 130, break_on_hyphens=False))
        for each in judged:
            print(f"  {each.verdict}: {each.key} = {case.expected[each.key]!r}"[:200] + (f" ({each.told})" if each.told else ""))
        claims.check(f"{case.name}: {worst}", worst != "wrong" and not unknown_instead(case, judged, value))
    claims.check(f"there are {COUNT}", sum(verdicts.values()) == COUNT, dict(verdicts))
    return claims.end()


if __name__ == "__main__":
    raise SystemExit(main())
