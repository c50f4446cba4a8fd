"""What a vLLM server says about its load: its Prometheus text, of V0 and of V1."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.facts import text
from reconciler.facts.prometheus_text import Sample, same, samples, without
from reconciler.model.fact import Absent, Fact, Unknown, Value

# V1's name first, then V0's: vLLM renamed them
_NAMES = {
    "running": ("vllm:num_requests_running",),
    "waiting": ("vllm:num_requests_waiting",),
    "kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "prompt_tokens": ("vllm:prompt_tokens_total",),
    "generation_tokens": ("vllm:generation_tokens_total",),
    "preemptions": ("vllm:num_preemptions_total",),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
}
_FIELD = {name: key for key, names in _NAMES.items() for name in names}
_FINISHED, _WAITING, _SLEEP = "vllm:request_success_total", "vllm:num_requests_waiting_by_reason", "vllm:engine_sleep_state"


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine of one served model. Requests and tokens are counts, `kv_usage_ratio` is 1.0 where the cache is full.

    Unknown(NotExported): the server has no such metric, which is not 0. `engine` Absent(NoLabel): V0. `awake` False: it sleeps.
    """

    engine: Fact[str]
    model: Fact[str]
    running: Fact[float]
    waiting: Fact[float]
    waiting_by_reason: dict[str, Fact[float]]
    kv_usage_ratio: Fact[float]
    prompt_tokens: Fact[float]
    generation_tokens: Fact[float]
    preemptions: Fact[float]
    prefix_queries_tokens: Fact[float]
    prefix_hits_tokens: Fact[float]
    finished_by_reason: dict[str, Fact[float]]
    awake: Fact[bool]


@dataclass(frozen=True, slots=True)
class VllmMetrics:
    """`engines` in the text's order; `unread`: lines of vLLM that are no samples."""

    engines: tuple[Engine, ...]
    unread: tuple[Unknown, ...]


@dataclass(slots=True)
class _Series:
    values: dict[str, Fact[float]] = field(default_factory=dict)
    waiting: dict[str, Fact[float]] = field(default_factory=dict)
    finished: dict[str, Fact[float]] = field(default_factory=dict)


def _take(series: _Series, sample: Sample) -> None:
    """By the whole name: num_requests_waiting_by_reason begins like another metric, *_created are times."""
    if key := _FIELD.get(sample.name):
        series.values[key] = same(series.values.get(key), sample.value)
    elif sample.name == _FINISHED:
        reason = sample.labels.get("finished_reason", "")
        series.finished[reason] = same(series.finished.get(reason), sample.value)
    elif sample.name == _WAITING:
        reason = sample.labels.get("reason", "")
        series.waiting[reason] = same(series.waiting.get(reason), sample.value)
    elif sample.name == _SLEEP and sample.labels.get("sleep_state") == "awake":
        series.values["awake"] = same(series.values.get("awake"), sample.value)


def _engine(labels: tuple[str | None, str | None], series: _Series) -> Engine:
    unsaid = Unknown("NotExported")
    values = series.values
    awake = values.get("awake", unsaid)
    return Engine(
        engine=Value(labels[0]) if labels[0] is not None else Absent("NoLabel"),
        model=Value(labels[1]) if labels[1] is not None else Unknown("Missing", "model_name"),
        running=values.get("running", unsaid),
        waiting=values.get("waiting", unsaid),
        waiting_by_reason=series.waiting,
        kv_usage_ratio=values.get("kv_usage", unsaid),
        prompt_tokens=values.get("prompt_tokens", unsaid),
        generation_tokens=values.get("generation_tokens", unsaid),
        preemptions=values.get("preemptions", unsaid),
        prefix_queries_tokens=values.get("prefix_queries", unsaid),
        prefix_hits_tokens=values.get("prefix_hits", unsaid),
        finished_by_reason=series.finished,
        awake=Value(awake.value == 1.0) if isinstance(awake, Value) else awake,
    )


def parse(said: str) -> Fact[VllmMetrics]:
    """/metrics of a vLLM server; Absent(NoVllmMetrics) where another program answers, Unknown where no line can be read."""
    found: dict[tuple[str | None, str | None], _Series] = {}
    unread: list[Unknown] = []
    clean = text.clean(said)
    for sample in samples(clean, "vllm:"):
        if isinstance(sample, Unknown):
            unread.append(sample)
        elif sample.name in _FIELD or sample.name in (_FINISHED, _WAITING, _SLEEP):
            labels = (sample.labels.get("engine"), sample.labels.get("model_name"))
            _take(found.setdefault(labels, _Series()), sample)
    if found:
        return Value(VllmMetrics(tuple(_engine(labels, series) for labels, series in found.items()), tuple(unread)))
    return unread[0] if unread else without(clean, "NoVllmMetrics")
