"""`reconcile hook install`, `uninstall`, `status`: the hooks of a bare repository."""

from __future__ import annotations

import sys
from typing import Any

import click

from reconciler import config
from reconciler.commands import base, receive
from reconciler.errors import Usage
from reconciler.render import push
from reconciler.source import gitcall, hooks
from reconciler.source.incoming import MOST_BYTES
from reconciler.source.signatures import Keys, Mode

repository = click.argument("repository", metavar="REPOSITORY")


@click.command()
@repository
@click.option("--ref", metavar="REF", help="The branch that is reconciled: refs/heads/NAME. Default: what HEAD names.")
@click.option("--below", metavar="FOLDER", default="", help="Manifests are below this folder of the repository.")
@base.state_dir
@receive.signed
@click.option(
    "--max-push", type=click.IntRange(1, 1 << 20), default=MOST_BYTES >> 20, show_default=True, help="MiB a push may bring."
)
@base.as_json
def install(repository: str, ref: str | None, below: str, state_dir: str | None, as_json: bool, **guard: Any) -> int:
    """Install pre-receive and post-receive. A hook that is somebody else's is left, and so is then the other one."""
    folder = hooks.bare_repository(repository)
    branch = ref or gitcall.ask(folder, "symbolic-ref", "HEAD")
    receive.checked_ref(branch)
    receive.checked_below(below)
    both = ("--ref", branch)
    arguments = {
        "pre-receive": (*both, *_below(below), *_guard(**guard)),
        "post-receive": (*both, "--state-dir", str(config.load(state_dir).state_dir)),
    }
    texts = {name: hooks.script(name, words) for name, words in arguments.items()}
    found = hooks.install(folder, texts)
    foreign = [one for one in found if one.state == "foreign"]
    if foreign:
        click.echo("\n".join(push.chain(foreign, {name: text.splitlines()[-1] for name, text in texts.items()})), err=True)
        raise Usage("ForeignHook", path=str(folder), names=[one.name for one in foreign])
    _tell(found, push.installed(found, branch), as_json)
    return 0


def _below(below: str) -> tuple[str, ...]:
    return ("--below", below) if below else ()


def _guard(signed: str, allowed_signers: str | None, gpg_keyring: str | None, max_push: int) -> tuple[str, ...]:
    """The options of pre-receive; keys that nobody could use are refused now, and not at the first push."""
    words: tuple[str, ...] = ("--max-push", str(max_push))
    if Mode(signed) is Mode.NONE:
        return words
    keys = Keys.named(allowed_signers, gpg_keyring).checked()
    words += ("--signed", signed)
    words += ("--allowed-signers", str(keys.signers)) if keys.signers else ()
    return words + (("--gpg-keyring", str(keys.keyring)) if keys.keyring else ())


@click.command()
@repository
@base.as_json
def uninstall(repository: str, as_json: bool) -> int:
    """Remove the hooks that are ours. Pushes are taken unchecked from then on; the controller still checks what it reads."""
    found = hooks.uninstall(hooks.bare_repository(repository))
    _tell(found, push.uninstalled(found), as_json)
    return 0


@click.command()
@repository
@base.as_json
def status(repository: str, as_json: bool) -> int:
    """Show whose the hooks are. Exit 2 when not both are ours."""
    found = hooks.look(hooks.bare_repository(repository))
    _tell(found, push.hooks(found), as_json)
    return 0 if all(one.state == "current" for one in found) else 2


def _tell(found: tuple[hooks.Hook, ...], lines: list[str], as_json: bool) -> None:
    if as_json:
        base.print_json({"hooks": {one.name: {"state": one.state, "path": str(one.path)} for one in found}})
    else:
        click.echo("\n".join(lines), file=sys.stdout)
