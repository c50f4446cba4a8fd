"""What can go wrong in the lab, as types: the command line turns them into words and exit codes."""

from collections.abc import Iterable


class LabError(Exception):
    """Something a person has to know; its text is complete."""

    exit_code = 1


class UsageError(LabError):
    """The request itself makes no sense (unknown node, bad option)."""

    exit_code = 2


class NotUpError(LabError):
    """The lab, or the node that was asked for, is not running."""

    exit_code = 3


class CommandError(LabError):
    """A command that had to succeed did not; carries its argv, status and output."""

    def __init__(self, argv: tuple[str, ...], returncode: int, output: str) -> None:
        self.argv, self.returncode, self.output = argv, returncode, output
        super().__init__(f"`{' '.join(argv)[:300]}` exited {returncode}: {output.strip()[-2000:]}")


def nearest(value: str, allowed: Iterable[str]) -> str:
    """The end of an error message: what is allowed, the nearest first."""
    import difflib

    names = list(allowed)
    close = difflib.get_close_matches(value, names, n=1, cutoff=0.4)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}allowed: {', '.join(names) or 'none'}"
