"""Parts of the program that come with the probe or step that needs them: a node that is only asked for packages gets none."""

import base64
import sys
import types
import zlib
from typing import Any, Dict


def take(sources: Dict[str, str]) -> None:
    """Load those that this program does not have yet: {name: compressed source, base64}."""
    for name, packed in sources.items():
        full = __name__ + "." + name
        if full in sys.modules:
            continue
        module = types.ModuleType(full)
        module.__file__ = full
        source = zlib.decompress(base64.b64decode(packed)).decode()
        exec(compile(source, full, "exec"), module.__dict__)  # noqa: S102  (from the controller, as this program itself)
        sys.modules[full] = module  # only once it is whole


def look(name: str, arguments: Dict[str, Any]) -> Any:
    """The fragment's answer, a JSON value. Raises KeyError for one that was not taken, and whatever the fragment raises."""
    return sys.modules[__name__ + "." + name].look(arguments)


def run(name: str, arguments: Dict[str, Any]) -> int:
    """Let the fragment act, as a command of a step: its exit status."""
    return int(sys.modules[__name__ + "." + name].run(arguments))
