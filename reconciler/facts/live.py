"""What a fact of a running node is: the probe that asks for it, the parser, and the part of it that is state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.fact import Fact, Part, Probe, Raw, Unknown


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a node before it is asked.

    `names`: the names that it has to resolve, each with the address that is declared for it. `environments`: patterns of paths of
    Python environments. `library_path`: the LD_LIBRARY_PATH of jobs that run in them. `cursors`: where the last reading of a log
    ended, by fact.
    """

    node: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    environments: tuple[str, ...] = ("/opt/ai/env/*",)
    library_path: str = ""
    cursors: Mapping[str, str] = field(default_factory=dict)


def everything(value: Any) -> Any:
    """The stable selection of a fact that has nothing else in it."""
    return value


@dataclass(frozen=True, slots=True)
class LiveFact:
    """One fact of the catalogue.

    `parse` takes the raw answers to `parts`, in their order. `stable` selects from the value, as plain JSON, what is digested and
    compared: no temperature, no counter, no time. `slow`: costs a node so much that it is not asked often; `gpu`: asks the GPU
    driver, which a training job feels. `merge`: for a fact that is read on from a cursor, of what was known of the same boot and
    what is new since then, both as plain JSON; the key `cursor` of its value is where the next look begins.
    """

    name: str
    parts: Callable[[About], tuple[Part, ...]]
    parse: Callable[[tuple[Raw, ...]], Fact[Any]]
    stable: Callable[[Any], Any] = everything
    slow: bool = False
    gpu: bool = False
    merge: Callable[[Any, Any], Any] | None = None

    def probe(self, about: About) -> Probe:
        return Probe(self.name, self.parts(about))

    def read(self, raws: tuple[Raw, ...] | None) -> Fact[Any]:
        """Unknown(NotAsked) where there is no answer at all."""
        return self.parse(raws) if raws else Unknown("NotAsked")


def selected(fact: LiveFact, plain: Any) -> Any:
    """The stable selection of a fact's plain value; what is absent or unknown is itself the state."""
    if isinstance(plain, Mapping) and (set(plain) == {"absent"} or set(plain) == {"unknown", "detail"}):
        return dict(plain)
    return fact.stable(plain)
