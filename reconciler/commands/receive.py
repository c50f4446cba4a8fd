"""`reconcile hook pre-receive` and `post-receive`: what git calls when somebody pushes. Words go to the pusher's terminal."""

from __future__ import annotations

import getpass
import os
import signal
import sys
from pathlib import Path
from types import FrameType

import click

from reconciler import config
from reconciler.commands import base
from reconciler.errors import ControllerError, Usage
from reconciler.model.words import is_inside
from reconciler.render.reasons import error

DETACH = 60.0  # seconds that a pusher is kept; the apply goes on
_LATE = 15.0  # seconds more until a controller that does not detach is left

signed = base.options(
    click.option(
        "--signed", type=click.Choice(("none", "head", "strict")), default="none", help="Which new commits have to be signed."
    ),
    click.option("--allowed-signers", metavar="FILE", help="Who may sign with SSH: ssh-keygen's allowed signers file."),
    click.option("--gpg-keyring", metavar="DIR", help="Who may sign with OpenPGP: all keys of this GnuPG home."),
)
ref = click.option("--ref", required=True, metavar="REF", help="The branch that is reconciled.")


def checked_ref(name: str) -> str:
    """Itself. Raises Usage (WrongRef)."""
    if not name.startswith("refs/heads/") or len(name.split()) != 1 or len(name) == len("refs/heads/"):
        raise Usage("WrongRef", name=name)
    return name


def checked_below(name: str) -> str:
    """Itself. Raises Usage (WrongBelow)."""
    if name and not is_inside(name):
        raise Usage("WrongBelow", name=name)
    return name


@click.command(name="pre-receive")
@ref
@click.option("--below", default="", metavar="FOLDER", help="Manifests are below this folder.")
@signed
@click.option("--max-push", type=int, required=True, metavar="MIB", help="How much a push may bring.")
@base.as_json
def pre_receive(
    ref: str, below: str, signed: str, allowed_signers: str | None, gpg_keyring: str | None, max_push: int, as_json: bool
) -> int:
    """Judge a push while git keeps its objects apart: exit 1 refuses it. For git to call."""
    from reconciler.commands.bounds import bounded
    from reconciler.render import push
    from reconciler.render.style import style_for
    from reconciler.source import incoming
    from reconciler.source.signatures import Keys, Mode

    mode, keys = Mode(signed), Keys.named(allowed_signers, gpg_keyring)
    keys = keys.checked() if mode is not Mode.NONE else keys
    guarded = incoming.Guarded(_here(), checked_ref(ref), checked_below(below), mode, keys, max_push << 20)
    with bounded():
        update = incoming.watched(guarded, incoming.updates(sys.stdin))
        if update is None:
            return 0
        judged = incoming.judge(guarded, update)
    branch = ref.removeprefix("refs/heads/")
    if as_json:
        from reconciler.commands import common

        base.print_json({"accepted": not judged.problems, "problems": common.told(judged)})
    else:
        style = style_for(sys.stdout)
        click.echo("\n".join(push.refused(judged, branch, style) if judged.problems else push.accepted(judged, style)))
    return 1 if judged.problems else 0


def _here() -> Path:
    """The repository that git runs the hook in."""
    return Path(os.environ.get("GIT_DIR", ".")).resolve()


@click.command(name="post-receive")
@ref
@base.state_dir
@base.as_json
def post_receive(ref: str, state_dir: str | None, as_json: bool) -> int:
    """Tell the controller of a push that was taken, and show what it does about it. For git to call.

    Ends after a minute, or with the pusher; what the controller began goes on. Exit 0 in any case: the push is taken.
    """
    from reconciler.commands import remote

    moved = [line.split(maxsplit=2) for line in sys.stdin]
    mine = [(words[0], words[1]) for words in moved if len(words) == 3 and words[2].strip() == ref]
    for old, new in mine:
        request = {"op": "push", "repository": str(_here()), "ref": ref, "old": old, "new": new}
        request |= {"pusher": _pusher(), "detach_s": DETACH}
        signal.signal(signal.SIGALRM, _late)
        signal.alarm(int(DETACH + _LATE))
        try:
            remote.show(config.load(state_dir).state_dir, request, as_json)
        except ControllerError as e:
            remote.unseen(error(e), as_json)
    return 0


def _late(number: int, frame: FrameType | None) -> None:
    raise ControllerError("ControllerLate", age=DETACH + _LATE)


def _pusher() -> str:
    """Who pushed, as far as this machine knows: a name that the Git server gives, else the account."""
    for name in ("REMOTE_USER", "GL_USER", "GIT_PUSHER", "SUDO_USER"):
        if os.environ.get(name):
            return os.environ[name][:100]
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return str(os.getuid())
