"""`reconcile hook`: a group whose commands are imported one by one, for a push waits for them."""

from __future__ import annotations

import click

from reconciler.commands.group import Lazy

COMMANDS = {
    "install": ("reconciler.commands.hook_install:install", "Install pre-receive and post-receive into a bare repository."),
    "uninstall": ("reconciler.commands.hook_install:uninstall", "Remove the hooks that are ours."),
    "status": ("reconciler.commands.hook_install:status", "Show whose the hooks are. Exit 2 when not both are ours."),
    "pre-receive": ("reconciler.commands.receive:pre_receive", "Judge a push. For git to call."),
    "post-receive": ("reconciler.commands.receive:post_receive", "Tell the controller of a push. For git to call."),
}


@click.group(cls=Lazy, table=COMMANDS)
def hook() -> None:
    """Let a bare repository check each push before it is taken, and tell the controller of it.

    Git then refuses what `validate` would, a rewritten or deleted branch, and where it is asked for unsigned commits.
    """
