"""What is said about pushes: problems of one, in the pusher's terminal, and reasons why a hook cannot do its work."""

from __future__ import annotations

PROBLEMS = {
    # the branch as a whole
    "push-deletes": "the branch that is reconciled is not deleted by a push. On purpose, in the repository on the Git host: "
    "git update-ref -d {ref}; the controller goes on with the last revision that it saw",
    "push-rewrites": "not a fast-forward: {old} would leave its history. To take a commit back, git revert it and push. To rewrite "
    "on purpose: push it as {branch}-new, then in the repository on the Git host: "
    "git update-ref {ref} refs/heads/{branch}-new; the controller asks for an approval of its own",
    "push-too-large": "the push brings {size} bytes, at most {limit} are taken: models, wheels and data live outside of Git",
    "git-too-many-files": "{files} files, at most {limit} are read",
    # signatures; the file is a commit
    "commit-not-signed": "is not signed ('{summary}'): git commit --amend -S",
    "commit-signature-wrong": "its signature does not fit its content ('{summary}')",
    "commit-signer-unknown": "is signed by a key that is not allowed, {key} ('{summary}')",
    "commit-signer-expired": "is signed by a key that is out of its time, {key} ('{summary}')",
    "commit-signer-revoked": "is signed by a key that was revoked, {key} ('{summary}')",
    "commit-signature-kind": "is signed in a way that is not accepted here, {found}; accepted: {allowed} ('{summary}')",
    "commits-too-many": "more than {limit} new commits, each of which would have to be checked: push them in parts",
}
REASONS = {
    "NoSignerKeys": "nobody could sign: say --allowed-signers FILE (SSH), --gpg-keyring DIR, or both",
    "SignersUnreadable": "{path} cannot be read: the commits' signatures could not be checked",
    "NoGit": "git cannot be run in {path}: {detail}",
    "GitTooSlow": "git {command} took longer than {age}",
    "GitSaysTooMuch": "git {command} answers more than {limit} bytes",
    "NotAHook": "this is for git to call, with lines of OLD NEW REF on its input; found: {line}",
    "NotBare": "{path} is not a bare repository: {detail}",
    "WrongRef": "{name} is not the full name of a branch: refs/heads/NAME",
    "WrongBelow": "{name} is not a folder inside the repository: no '/' first, no '..'",
    "ForeignHook": "{names} of {path} is not ours, and nothing was changed",
    "ControllerLate": "the controller has not finished after {age}, and does not let go",
    "EventGarbled": "what the controller says of '{name}' is not understood here; it may be another version",
    # webhooks
    "SecretUnreadable": "the webhook's secret {path} cannot be read: {detail}",
    "SecretOpen": "the webhook's secret {path} has mode {mode}: a file of its reader, or of root, with mode 0600 or 0400 is wanted",
    "SecretLength": "the webhook's secret {path} has {size} bytes; {low} to {high} are allowed",
    "CannotListen": "{address} cannot be listened on: {detail}",
    "PullRefused": "nothing was changed: {repository} has no good revision, and none was taken before",
    "PushTooMuchWork": "the manifests take more than {age} of work or {memory} MiB of memory to check",
}
