"""The controller as one process: its parts put together, run until it is told to end, and taken apart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.apply.history import History
from reconciler.apply.journal import Journal
from reconciler.apply.lease import TTL
from reconciler.apply.statedir import StateDir
from reconciler.controller.answers import Answers
from reconciler.controller.approvals import Approvals
from reconciler.controller.board import Board
from reconciler.controller.follower import Follower, Signed, signed_as
from reconciler.controller.hub import Hub, Message
from reconciler.controller.loop import Loop
from reconciler.controller.protocol import SOCKET
from reconciler.controller.repository import Repository
from reconciler.controller.server import Server
from reconciler.controller.settings import Settings
from reconciler.controller.turn import AsPlan, Turns
from reconciler.controller.watch import Watch
from reconciler.controller.webhook import Webhook, secret_of
from reconciler.events import Event
from reconciler.pool import Pool
from reconciler.source.signatures import Keys, Mode
from reconciler.transport.base import Transport


@dataclass(frozen=True, slots=True)
class Shown:
    """How values become JSON: made by whoever calls, since no word for people is made here."""

    event: Callable[[Event], dict[str, Any]]
    plan: AsPlan


@contextmanager
def controller(
    settings: Settings, place: StateDir, transport: Transport, shown: Shown, listen: Callable[[Message], None], ttl: float = TTL
) -> Iterator[Process]:
    """Everything but the run. `listen` hears each event besides. Raises LockHeld (of the state directory) and StateDamaged."""
    with ExitStack() as parts:
        parts.enter_context(place.locked())
        journal = Journal(place.journal)
        parts.callback(journal.close)
        pool = Pool(transport, {})
        parts.callback(pool.close)
        hub = Hub(shown.event, listen)
        history = History(place.history)
        loop = Loop(
            Turns(
                place, journal, place.holder(), pool, Approvals(place.approvals), shown.plan, settings.repository, ttl, time.time
            ),
            Follower(_repository(settings, place), settings.cluster, journal, _signed(settings)),
            Board(place.conditions, hub.publish),
            hub,
            settings.drift_interval,
            note=lambda commit, state: history.note(commit, json.dumps(state, sort_keys=True)),
        )
        server = Server(place.root / SOCKET, Answers(loop))
        parts.callback(server.close)
        if settings.listen and settings.webhook_secret:
            hook = Webhook(settings.listen, secret_of(Path(settings.webhook_secret)), loop.poke)
            parts.callback(hook.close)
        yield Process(loop, server, Watch(loop, settings.interval))


def _repository(settings: Settings, place: StateDir) -> Repository:
    return Repository(settings.repository, settings.ref, place.mirror, below=settings.below)


def _signed(settings: Settings) -> Signed:
    return signed_as(Mode(settings.signed), Keys.named(settings.allowed_signers, settings.gpg_keyring))


@dataclass(frozen=True, slots=True)
class Process:
    """Call it to run until `loop.end()`."""

    loop: Loop
    server: Server
    watch: Watch

    def __call__(self) -> None:
        """Raises what the watch or a turn could not go on after."""
        self.server.start()
        self.watch.start()
        self.loop.run()
        if self.watch.error:
            raise self.watch.error
