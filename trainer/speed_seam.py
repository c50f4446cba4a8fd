"""Where what makes training fast is put in: `trainer.speed`, where it is there; else the model as it is, and that is said."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from trainer.engines import Engine


def there() -> bool:
    """Whether this installation has it."""
    return find_spec("trainer.speed") is not None


def prepare(model: Any, engine: Engine) -> Any:
    """The model, made fast for its device, before an engine wraps it."""
    if not there():
        return model
    speed = import_module("trainer.speed")
    return speed.prepare(
        model, method=engine.run.method.type, device=engine.device.kind, compile_layers=engine.device.kind == "cuda"
    )
