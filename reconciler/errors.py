"""The error tree: data only. The class says whether trying again can help; words are made in `render/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ReconcileError(Exception):
    """`reason` is a code in CamelCase; `data` holds what the sentence needs. `transient`: the same call may succeed later."""

    transient = False
    exit_code = 1

    def __init__(self, reason: str, /, **data: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.data: Mapping[str, Any] = data


class Usage(ReconcileError):
    """The call cannot be meant as it was typed: unknown node, unknown target, no such commit."""


class Unreachable(ReconcileError):
    """No way to the node, or it was lost: NameNotResolved, ConnectionRefused, ConnectTimedOut, NoRoute, HostKeyUnknown,
    HostKeyChanged, AuthenticationRefused, IdentityUnreadable, JumpFailed, BecomeRefused, ConnectionLost, DeadlinePassed."""

    transient = True
    exit_code = 4


class Garbled(ReconcileError):
    """The node answers, but not as the node program does: NotTheProgram, AnswerTooLong, NotJson, WrongShape, NoPython,
    ProgramEnded."""

    exit_code = 3


class NodeRefused(ReconcileError):
    """The node program refused a request: StaleToken, LeaseExpired, LeaseHeld, StepActive, NoSystemd, Failed ..."""

    exit_code = 3


class StalePlan(ReconcileError):
    """A saved plan that does not fit any more: NodeChanged, ManifestChanged, AlreadyUsed, OtherVersion, Damaged."""

    exit_code = 5


class LockHeld(ReconcileError):
    """Somebody else acts: StateDirLocked, OtherController."""

    transient = True
    exit_code = 6


class StateDamaged(ReconcileError):
    """The controller's own records cannot be trusted, or not be written: JournalDamaged, NewerState, ..."""


class SourceError(ReconcileError):
    """Git or the folder cannot be read: NotARepository, NoSuchCommit, EmptyRepository, NoSuchPath, Unreadable."""


class ControllerError(ReconcileError):
    """The controller's socket: NoController, ControllerDenied, ControllerLost, ControllerGarbled, LineTooLong."""

    transient = True
