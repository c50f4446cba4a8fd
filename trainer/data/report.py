"""What a check of training data found: values only. `words.py` and `page.py` make them readable."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.data.lengths import Summary

VERSION = 1

# What stops training: trained on, it would teach something wrong or measure nothing. In the order in which they are told.
STOPS = (
    "NoRows",
    "Malformed",
    "Empty",
    "RoleOrder",
    "MixedFormats",
    "NoChatTemplate",
    "TemplateRefuses",
    "Leakage",
    "NothingToValidate",
)
# What a person should know, and may want.
WARNINGS = ("NearLeakage", "Duplicates", "NearDuplicates", "OverLength", "TrainsOnEverything", "UnreadKeys")


@dataclass(frozen=True, slots=True)
class Example:
    """One place of a finding: FILE:LINE, what is there, and how the row begins where that helps."""

    where: str
    what: str
    text: str = ""
    other: str = ""  # how the row begins that it is like


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found: a code of STOPS or WARNINGS, how many rows, and the first of them (for OverLength the longest)."""

    code: str
    count: int
    examples: tuple[Example, ...] = ()

    @property
    def stops(self) -> bool:
        return self.code in STOPS


@dataclass(frozen=True, slots=True)
class Asked:
    """What the figures depend on. `share` of the source is validation where `validation` is empty."""

    source: str
    validation: str
    share: float
    seed: int
    tokenizer: str
    max_length: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything about one source, and its validation set where it has one."""

    asked: Asked
    digest: str  # sha256 over the contents of all training and validation rows in their order
    rows: int
    training: int
    validation: int
    formats: Mapping[str, int]
    languages: Mapping[str, int]
    characters: Summary | None
    tokens: Summary | None
    duplicates: int
    near_duplicates: int
    samples: tuple[Example, ...]
    findings: tuple[Finding, ...]

    @property
    def good(self) -> bool:
        return not any(finding.stops for finding in self.findings)

    def found(self, code: str) -> Finding | None:
        return next((finding for finding in self.findings if finding.code == code), None)

    def to_json(self) -> dict[str, Any]:
        """The report for programs; `version` rises when a field changes its meaning."""
        told = dataclasses.asdict(self)
        told["findings"] = [{"code": f.code, "stops": f.stops, **dataclasses.asdict(f)} for f in self.findings]
        return {"version": VERSION, "good": self.good, **told}
