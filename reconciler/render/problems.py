"""The sentence of each problem: `file:line:column: spec.x.y: what is wrong, what is allowed, the nearest name`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.model.problem import Datum, Path, Problem
from reconciler.render.push_words import PROBLEMS as PUSH_PROBLEMS

_SHOWN = 60  # characters of a value that is quoted in a message

# form of a value -> what it is, for "'x' is not ..."
_FORMS = {
    "name": "a name: lower-case letters, digits, '-' and '.'",
    "description": "one line of printable text",
    "package": "a package name: letters, digits and . _ + -",
    "version": "a version: exact (2.0.19 or 2.0.19-3.el9), a prefix (2.0.* or 5.14.0-*), or present, or absent",
    "path": "an absolute path: letters, digits and @ _ + . - between '/', without '.' or '..' parts",
    "repository-path": "a path inside the repository: letters, digits and @ _ + . - between '/', no '/' first, no '..'",
    "identity": "the path of a private key on the controller: absolute, or ~/...",
    "account": "a user or group name: lower-case letters, digits, '_' and '-', at most 32",
    "mode": "a file mode such as 0644",
    "mirror": "a mirror's URL: http://HOST[:PORT][/PATH], https too",
    "jump": "a jump host: [user@]host[:port]",
    "count-or-share": "a count (1) or a share (10%)",
    "node": "a node's name: lower-case letters, digits, '-' and '.', at most 63",
    "address": "a host name or an IP address",
    "port": "a port: 1 to 65535",
    "host-name": "a host name: letters, digits, '-' and '.'",
    "ip": "an IP address",
    "switch": "true or false",
    "unit": "a unit's full name: NAME.service, .socket, .timer, .path, .mount, .automount, .swap, .target or .slice",
    "driver": "a driver's version: 580.95.05 (exact), or 580.* for any of branch 580",
    "gpu-model": "a GPU's model as nvidia-smi -L prints it: A100 80GB PCIe",
    "gpu-count": "a number of GPUs: 1 to 99",
    # Python environments
    "python-package": "the name of a Python package, perhaps with extras: NAME or NAME[EXTRA]",
    "python-pin": "a version: 2.13.0 (exact), 2.13.* (prefix), 2.10.0+cu128 (a build) or '>=2.1,<3' (pip's form)",
    "python-series": "a series of Python: write MAJOR.MINOR, such as 3.12",
    "wheelhouse": "a wheelhouse: an absolute path on the nodes, or http://HOST[:PORT][/PATH], https too",
    "keep": "a number of builds: 1 to 99",
}
# Codes whose sentence is about the value at a path: the path is said first.
_OF_VALUES = {
    "form": "'{found}' is not {form_words}{near_too}",
    "too-long": "'{found}' is too long to be {form_words_short} (at most {limit} characters)",
    "one-of": "'{found}' is not one of {allowed}{near_too}",
    "distribution": "'{found}' is not a distribution that is known; {did_you_mean}",
    "version-prefix": "'{found}' is no prefix of a version: that ends with .* or -*, as 2.0.* or 5.14.0-*{near_too}",
    "version-word": "'{found}' is not a version: write the exact one, present or absent; did you mean '{near}'?",
    "versions-by-tier": "a name for each tier is not supported by this version: write one name for all nodes",
    "host-list": "'{piece}' is not a host list: gpu01, gpu[01-08] or gpu[01-04,07]",
    "host-range": "'{piece}' in '{found}' is not a range that counts up",
    "host-count": "'{found}' is more than {limit} hosts",
    "is-empty": "is empty",
    "empty-block": "is empty: at least one is wanted",
    "not-text": "has to be text, not a {block}",
    "not-a-block": "has to be a mapping (key: value lines){found_too}",
    "python-pin": "'{found}' is not {form_words}{near_too}",
    "driver-stream": (
        "'{found}' is a dnf module stream or package suffix, not a version: write the exact version (580.95.05), or {near}"
    ),
    "driver-branch": "'{found}' is a branch, not a version: write the exact version (580.95.05), or {near} for any of the branch",
    "driver-package": "{found} follows from the stack's driver: say its version there, and not here",
    "package-conflict": "'{found}' here, '{other}' in Versions '{stack}' for {distribution} ({place}): keep one",
    "file-no-source": "no source: say which file of the repository it is (source: files/NAME)",
    "file-below-file": "{other} is a file as well: nothing can be below it",
    "source-no-such-file": "the repository has no file '{found}'; {did_you_mean}",
    "source-not-regular": "'{found}' is not a regular file (a link, a folder or a device)",
    "source-file-too-large": "'{found}' is {size} bytes, a managed file may have {limit}",
    "source-denied": "'{found}' cannot be read: {detail}",
    "source-io": "'{found}' cannot be read: {detail}",
    "not-a-list": "has to be a list ([a, b]), not '{found}'",
    "hosts-and-file": "/etc/hosts is declared under files as well: keep one",
    "unit-and-file": "{found} is declared under files as well: keep one",
    "unit-of-ours": "'{found}' is named as the units are that carry out steps: take another name",
    "unit-says-nothing": "says nothing: write source, enabled or state",
    "unit-template": "{found} is a template, which is no unit itself: name an instance of it (NAME@x)",
    "null-removes-nothing": "is empty, which removes what is said outside: nothing is; write a value, or drop the line",
}
_OTHERS = {
    # a document, by itself
    "not-yaml": "not YAML: {said}{hint_words}",
    "not-utf8": "not UTF-8 (byte {byte} of the file): save it as UTF-8",
    "hidden-character": "the character {character} is not allowed: it does not show, or not where it is",
    "file-too-large": "the file is {size} bytes, a manifest may have {limit}: split it",
    "too-deep": "nested deeper than {limit} levels",
    "yaml-anchor": "YAML anchors (&name, *name) are not allowed: put what is shared into spec or a profile",
    "yaml-merge": "'<<' (merge) is not allowed: put what is shared into spec or a profile",
    "yaml-tag": "YAML tag '{found}' is not allowed",
    "key-not-text": "a key has to be plain text",
    "key-twice": "'{found}' is given twice (first on line {line})",
    "not-a-manifest": "a manifest is a mapping with apiVersion, kind, metadata and spec",
    "unknown-kind": "kind '{found}' is not one of {allowed}{near_too}",
    "kind-not-yet": "kind '{found}' is not supported by this version; {there_are}",
    "unknown-key": "unknown key '{found}'; {did_you_mean}",
    "key-not-yet": "unknown key '{found}': it is not supported by this version; {there_are}",
    "missing-key": "'{found}' is required",
    "manifest-no-such-file": "there is no such file",
    "manifest-not-regular": "not a regular file (a link, a folder or a device): manifests are plain files",
    "manifest-file-too-large": "the file is {size} bytes, a manifest may have {limit}: split it",
    "manifest-denied": "cannot be read: {detail}",
    "manifest-io": "cannot be read: {detail}",
    # documents together
    "nothing-declared": "no manifest here: refused, an empty repository would ask to remove everything",
    "no-cluster": "no Cluster is declared here: there is nothing to reconcile",
    "several-clusters": "there are several clusters, say which: --cluster {or_list}",
    "unknown-cluster": "no Cluster is named '{found}'; {did_you_mean}",
    "document-twice": "{kind} '{found}' is declared twice (first in {file}:{line})",
    "unknown-versions": "no Versions is named '{found}'; {did_you_mean}",
    "unknown-profile": "no profile is named '{found}'; {did_you_mean}",
    "unknown-node": "no node is named '{found}'{and_more}; {did_you_mean}",
    "extends-circle": "extends goes round in a circle: {circle}",
    "node-twice": ("node '{found}'{and_more} is declared twice (also by {other}); exceptions to a range go under overrides"),
    "node-elsewhere": "{found} belongs to cluster '{other}' already{and_more}: a node is in one cluster",
    "address-count": "{hosts} is {nodes} nodes, {found} is {addresses} addresses",
    "address-twice": "{node} has the address {found} of {other}{and_more}",
    "too-many-nodes": "more than {limit} nodes in one cluster",
    # Python environments, and locks
    "unknown-environment": "the stack has no environment '{found}'; {did_you_mean}",
    "environment-name": "environment '{found}': a name may not end with .d, where the builds of another would be",
    "environment-lock": "environment '{found}': its lock would be one of OS packages: give it another name, or another lock",
    "environment-no-packages": "environment '{found}' has no packages: nothing to build",
    "environment-no-python": "environment '{found}' says no python, and its stack says none: write python: 3.12",
    "builder-not-shared": "a builder is for environments that are shared: write {{type: shared, builder: NODE}}",
    "builder-lacks": "{builder} builds environment '{found}' for all, and does not have it: add it to that node's environments",
    "shared-two-locks": "environment '{found}' is shared and has one link, but {node} wants {lock} and {other} wants {another}",
    "lock-missing": "environment '{found}' has no lock {lock}: run `reconcile pin` and commit it",
    "lock-unreadable": "the lock {lock} cannot be read ({reason})",
    "lock-differs": "{lock} has {name} {version}, declared is {found}: run `reconcile pin` and commit it",
    "lock-lacks": "{lock} does not have {name}, declared is {found}: run `reconcile pin` and commit it",
    "lock-python": "{lock} was made for Python {version}, declared is {found}: run `reconcile pin` and commit it",
    "lock-hash": "'{found}' is not a hash (--hash=sha256: and 64 hexadecimal digits): run `reconcile pin` again",
    "lock-line": "'{found}' is no line of a lock: run `reconcile pin` again",
    "lock-cut": "'{found}' has no whole list of hashes: run `reconcile pin` again",
    "lock-twice": "'{found}' is locked twice (first on line {line}): run `reconcile pin` again",
    "lock-extra": "{found} is locked, and nothing of stack {stack} says its version on {distribution}: run `reconcile pin`",
    "lock-not-for": "a lock of stack {stack} for '{found}', which it is not for; {did_you_mean}",
    "lock-other": "the lock says that it is for {version}, its name says {found}: run `reconcile pin` again",
    "not-pinned": "{names}{and_more} not pinned, there is no {lock}: the newest release of an exact version is taken, and a prefix"
    " that is not met is held; run `reconcile pin`",
    "prefix-not-pinned": "{name} {found} is a prefix that no lock has: held on nodes that do not meet it; `reconcile pin` locks"
    " those of a stack",
    "lock-header": "the lock does not say its {found}: run `reconcile pin` again",
    # host keys
    "no-known-hosts": "there is no file '{found}': every node will be refused, its host key is unknown",
    "known-hosts-unreadable": "'{found}' cannot be read ({reason}): every node will be refused, its key is unknown",
    "no-host-keys": "'{found}' holds no host key: every node will be refused",
    "no-host-key": "'{found}' has no host key for {host}{and_more}: refused when it is connected to",
    "bad-host-key": "not a host key line of known_hosts (hosts, type, key): passed over",
    "host-key-marker": "'{found}' lines are not supported: passed over",
    # folders and Git
    "folder-no-such-file": "there is no such file or folder",
    "folder-not-regular": "neither a file nor a folder",
    "folder-denied": "cannot be listed: {detail}",
    "folder-io": "cannot be listed: {detail}",
    "git-not-a-repository": "not in a Git repository: without one there is no commit '{found}'",
    "git-no-commit-yet": "the Git repository has no commit yet: commit the manifests first",
    "git-no-such-commit": "the Git repository has no commit '{found}'{near_too}",
    "git-no-such-path": "commit {commit} has no '{found}': commit it, or read the files as they are (--worktree)",
    "git-unreadable": "the Git repository cannot be read: {detail}",
    "git-bare": "a bare Git repository has no work tree: name a commit instead",
    **PUSH_PROBLEMS,
}
_HINTS = {
    "": "",
    "host-list": '; inside { } a host list has to be quoted: "10.20.0.[11-50]"',
    "tab": "; indent with spaces, not tabs",
    "colon": "; quote a text that holds ': '",
}
CODES = frozenset(_OF_VALUES) | frozenset(_OTHERS)


def problem_text(problem: Problem) -> str:
    """One line for a terminal: no control character of the manifest, of a file's name or of Git reaches it."""
    place = printable(problem.file)
    if problem.line:
        place += f":{problem.line}:{problem.column}"
    return f"{place}: {problem_words(problem)}"


def problem_words(problem: Problem) -> str:
    """The sentence, without file, line and column."""
    fields = _Fields(problem.data)
    if problem.code in _OF_VALUES:
        return _trail(problem.path) + _OF_VALUES[problem.code].format_map(fields)
    return _OTHERS[problem.code].format_map(fields)


def shown(value: str) -> str:
    """`value` in printable ASCII, escaped as in Python and shortened to 60 characters."""
    cut = value[: _SHOWN + 1]
    text = "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode() for c in _no_surrogates(cut))
    return text if len(value) <= _SHOWN and len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def printable(name: str) -> str:
    """A file's name with what does not print escaped; other scripts stay readable."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in name)


def _no_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _trail(path: Path) -> str:
    return ".".join(shown(str(step)) for step in path) + ": " if path else ""


class _Fields(dict[str, str]):
    """Data for a template, made when it is asked for: the values themselves, escaped, and phrases made of them."""

    def __init__(self, data: Mapping[str, Datum]) -> None:
        super().__init__()
        self._data = data

    def __missing__(self, key: str) -> str:
        phrase = _PHRASES.get(key)
        if phrase is not None:
            return phrase(self._data)
        value = self._data.get(key)
        return ", ".join(map(shown, value)) if isinstance(value, tuple) else shown(str(value))


def _did_you_mean(data: Mapping[str, Datum]) -> str:
    near = data.get("near")
    return f"did you mean '{shown(near)}'?" if isinstance(near, str) else _there_are(data)


def _near_too(data: Mapping[str, Datum]) -> str:
    near = data.get("near")
    return f"; did you mean '{shown(near)}'?" if isinstance(near, str) else ""


def _names(data: Mapping[str, Datum]) -> tuple[str, ...]:
    allowed = data.get("allowed")
    return tuple(map(shown, allowed)) if isinstance(allowed, tuple) else ()


def _there_are(data: Mapping[str, Datum]) -> str:
    names, more = _names(data), data.get("more")
    if not names:
        return "there is none"
    return f"there are: {', '.join(names)}" + (f" and {more} more" if more else "")


def _and_more(data: Mapping[str, Datum]) -> str:
    others = data.get("others")
    return f" (and {others} more)" if others else ""


def _found_too(data: Mapping[str, Datum]) -> str:
    found = data.get("found")
    return f", not '{shown(found)}'" if isinstance(found, str) else ""


_PHRASES: dict[str, Callable[[Mapping[str, Datum]], str]] = {
    "did_you_mean": _did_you_mean,
    "near_too": _near_too,
    "there_are": _there_are,
    "and_more": _and_more,
    "found_too": _found_too,
    "or_list": lambda data: " or ".join(_names(data)),
    "form_words": lambda data: _FORMS[str(data.get("form", "python-pin"))],
    "form_words_short": lambda data: _FORMS[str(data.get("form"))].split(":", 1)[0],
    "hint_words": lambda data: _HINTS[str(data.get("hint"))],
}
