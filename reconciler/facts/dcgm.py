"""What dcgm-exporter says now, asked at its port on the node."""

from __future__ import annotations

import json
from typing import Any

from reconciler.facts import answered, dcgm_metrics, raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

# the exporter's default port; it answers within a collection interval of its own
ADDRESS = {"host": "127.0.0.1", "port": 9400, "path": "/metrics", "deadline": 5.0, "limit": 4 << 20}


def parse(raws: tuple[Raw, ...]) -> Fact[dcgm_metrics.DcgmMetrics]:
    """Absent(NothingListens) where the port refuses; Absent(NoDcgmMetrics) where another program answers."""
    found = raw.fragment(raws[0])
    if not isinstance(found, Value):
        return found
    fields = answered.mapping(found.value)
    error, said = fields.get("error"), raw.clean(str(fields.get("said", "")), 120)
    if error == "refused":
        return Absent("NothingListens")
    if error == "not-http":
        return Unknown("NotHttp", said)
    if error is not None:
        return answered.failure(error, "NothingListens", said)
    status, text = fields.get("status"), fields.get("text")
    if not isinstance(text, str):
        return Unknown("UnexpectedAnswer")
    return dcgm_metrics.parse(text) if status == 200 else Unknown("HttpStatus", raw.clean(str(status), 20))


def stable(value: Any) -> Any:
    """Which GPUs and metrics there are; no measurement."""
    gpus = [{key: gpu[key] for key in ("uuid", "index", "model", "pci_bus_id", "driver")} for gpu in value["gpus"]]
    return {"gpus": gpus, "metrics": value["metrics"]}


FACT = LiveFact("dcgm", lambda about: (Ask("web", json.dumps(ADDRESS), 8.0),), parse, stable)
