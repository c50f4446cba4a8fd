"""`reconcile controller`: keep the cluster as the newest revision declares it, until told to end."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import click

from reconciler import config
from reconciler.apply.statedir import StateDir
from reconciler.commands import common
from reconciler.commands.lines import Lines
from reconciler.controller import settings as controller_settings
from reconciler.controller.loop import Loop
from reconciler.controller.settings import Settings
from reconciler.errors import ReconcileError, Usage
from reconciler.events import Event
from reconciler.model.plan import Plan
from reconciler.render import controller as render
from reconciler.render import data
from reconciler.transport.ssh import SshTransport


class WrongSettings(ReconcileError):
    """What is wrong was already said."""


@click.command()
@click.option("--repository", metavar="PATH|URL", help="The manifests: a (bare) repository here, or one that is fetched.")
@click.option("--ref", metavar="REF", help="What is followed; default refs/heads/main.")
@click.option("--below", metavar="FOLDER", help="Manifests are below this folder of the repository.")
@common.cluster
@click.option("--interval", metavar="SPAN", help="Between two looks at the repository; default 1m.")
@click.option("--drift-interval", metavar="SPAN", help="Between two looks at the nodes; default 10m.")
@click.option("--signed", metavar="none|head|strict", help="Which new commits have to be signed; default none.")
@click.option("--allowed-signers", metavar="FILE", help="Who may sign with SSH: ssh-keygen's allowed signers file.")
@click.option("--gpg-keyring", metavar="DIR", help="Who may sign with OpenPGP: all keys of this GnuPG home.")
@click.option("--webhook", metavar="HOST:PORT", help="Listen there for webhooks, which only wake; default: nowhere.")
@click.option("--webhook-secret", metavar="FILE", help="What a webhook has to know; mode 0600.")
@click.option("--config", "file", metavar="FILE", help="These settings as TOML; options go before it.")
@common.state_dir
@common.as_json
def controller(file: str | None, as_json: bool, **options: str | None) -> int:
    """Keep the nodes as the newest revision declares them: one process, until SIGTERM.

    It looks at the repository and at the nodes again and again, and writes where policy, suspensions and approvals let it.
    """
    from reconciler.controller.process import Shown
    from reconciler.controller.process import controller as made

    settings = _settings(file, options)
    own = config.load(settings.state_dir)
    shown = Shown(as_data, data.plan)
    place = StateDir(own.state_dir)
    with closing(Lines()) as lines:
        listen = _listener(lines, as_json)
        with made(settings, place, SshTransport(), shown, listen, own.lease_ttl) as process, _ending(process.loop):
            process()
    return 0


def _settings(file: str | None, options: Mapping[str, str | None]) -> Settings:
    """Raises WrongSettings after all that is wrong was said."""
    try:
        text = Path(file).read_text(encoding="utf-8") if file else None
    except (OSError, UnicodeDecodeError) as e:
        raise Usage("Unreadable", path=file, detail=getattr(e, "strerror", None) or str(e)) from None
    found = controller_settings.parse(text, {name.replace("_", "-"): value for name, value in options.items()})
    if isinstance(found, Settings):
        return found
    for line in render.wrong(found, file or ""):
        click.echo(line, err=True)
    raise WrongSettings("WrongSettings", count=len(found))


def as_data(event: Event) -> dict[str, Any]:
    """An event as `apply --json` prints it; a plan in it as a whole."""
    plan = event.data.get("plan")
    return data.event(Event(event.kind, event.node, data.plan(plan, ""), event.time) if isinstance(plan, Plan) else event)


def _listener(lines: Lines, as_json: bool) -> Any:
    """One line an event on stdout, for the journal of systemd or for a person who watches."""

    def listen(message: Mapping[str, Any]) -> None:
        line = json.dumps(message, default=str) if as_json else render.line(message)
        if line:
            lines(line)

    return listen


@contextlib.contextmanager
def _ending(loop: Loop) -> Iterator[None]:
    """SIGTERM and Ctrl-C: no further step, what runs goes on by itself; a second one ends at once."""

    def handle(number: int, frame: FrameType | None) -> None:
        if loop.ended:
            raise KeyboardInterrupt
        loop.end()

    former = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
