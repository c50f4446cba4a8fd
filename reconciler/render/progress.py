"""What goes on now, on stderr: a live picture on a terminal, one line an event where the output is kept."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

from reconciler.events import Event
from reconciler.render.style import style_for
from reconciler.render.text import fold, safe

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

QUIET = 1.0  # seconds that may pass without a word
TITLES = {
    "set-hostname": "setting the host name",
    "package-transaction": "package transaction",
    "version-lock": "locking versions",
    "enable-stream": "enabling the module stream of",
    "reboot": "restart of the node",
    "write-file": "writing",
    "write-environment-lock": "writing the lock of environment",
    "build-environment": "building environment",
    "switch-environment": "switching environment",
    "collect-environment": "removing old builds of environment",
    "write-hosts": "writing",
    "write-unit": "writing",
    "reload-units": "loading",
    "set-unit": "setting",
    "start-unit": "starting",
    "stop-unit": "stopping",
    "restart-unit": "restarting",
}


def title_of(event: Event) -> str:
    """A step's kind in words; one that we do not know, of an older version or a strange node, as it is."""
    return TITLES.get(event.data["title"]) or safe(event.data["title"])


def step_text(event: Event) -> str:
    """`writing /etc/motd`, `package transaction (tmux, numactl)`."""
    title = title_of(event)
    names = [r.partition("/")[2] for r in event.data.get("resources", ())]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f"{title} {safe(shown)}" if title.endswith("ing") else f"{title} ({safe(shown)})"


class Progress:
    """Takes events from any thread. Use as a context manager: it ends the live picture."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._style = style_for(self._stream)
        self._guard = threading.Lock()
        self._began = time.monotonic()
        self._waiting: list[str] = []
        self._active: dict[str, tuple[str, float]] = {}
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        if self._stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(file=self._stream), get_renderable=self._picture, refresh_per_second=8, transient=True
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        with self._guard:
            line = self._take(event)
            if line and not self._live:
                self._stream.write(f"{line}\n")
                self._stream.flush()
            elif line and self._live:
                self._live.console.print(line, markup=False, highlight=False)

    def _take(self, event: Event) -> str | None:
        """Remember what is going on; the line to keep for this event, if it is worth one."""
        node = safe(event.node)
        if event.kind == "observing":
            self._waiting = list(event.data["nodes"])
        elif event.kind == "observed" and event.node in self._waiting:
            self._waiting.remove(event.node)
            if self._waiting and time.monotonic() - self._began > QUIET and not self._live:
                self._began = time.monotonic()
                return f"waiting for {fold(self._waiting)}"
        elif event.kind == "wave-started":
            canary = " (canary)" if event.data["canary"] else ""
            return f"wave {event.data['wave']}: {fold(event.data['nodes'])}{canary}"
        elif event.kind == "adopting":
            self._active[event.node] = (f"taking over {title_of(event)}", time.monotonic())
            return f"{node}: a step of an earlier apply still runs ({title_of(event)}): waiting for it, not repeating it"
        elif event.kind == "adopted":
            return f"{node}: took over {title_of(event)}: {safe(event.data['state'])}"
        return self._take_step(event, node)

    def _take_step(self, event: Event, node: str) -> str | None:
        if event.kind == "step-started":
            self._active[event.node] = (step_text(event), time.monotonic())
        elif event.kind == "step-finished":
            self._active.pop(event.node, None)
            sign = self._style("ok", "green") if event.data["ok"] else self._style("failed", "red")
            said = "".join(f"\n  | {safe(line)}" for line in event.data["warnings"])
            return f"{node}: {step_text(event)} {sign} {event.data['seconds']:.1f} s{said}"
        elif event.kind == "node-finished":
            self._active.pop(event.node, None)
        return None

    def _picture(self) -> Text:
        """What a terminal shows now: who is still to answer, and what runs where since when."""
        from rich.text import Text

        with self._guard:
            now = time.monotonic()
            rows = [f"  {safe(n)}: {what} {now - since:.0f} s" for n, (what, since) in sorted(self._active.items())]
            if self._waiting:
                rows.insert(0, f"  observing {fold(self._waiting)}")
        return Text("\n".join(rows))
