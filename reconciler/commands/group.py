"""Groups of commands that answer an unknown name with the nearest one."""

from __future__ import annotations

import click


class Group(click.Group):
    """As click's; a wrong name is a usage error that says which one was most likely meant."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], names, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else f" There are: {', '.join(names)}."
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)
