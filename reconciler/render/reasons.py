"""One sentence for every reason code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.errors import ReconcileError
from reconciler.render import controller_reasons, push_words
from reconciler.render.fact_reasons import SENTENCES
from reconciler.render.text import duration, safe

_SENTENCES = {
    # a node that cannot be reached
    "NameNotResolved": "its address {host} cannot be resolved",
    "ConnectionRefused": "nothing listens on {host} port {port}",
    "ConnectTimedOut": "no answer from {host} port {port}",
    "NoRoute": "no route to {host}",
    "HostKeyUnknown": "its host key {fingerprint} is not in the known hosts of the manifest: compare it on the node, then add it",
    "HostKeyChanged": "it shows another host key than the manifest has: a new machine, or somebody in between ({fingerprint})",
    "AuthenticationRefused": "it refuses the key of user {user}",
    "IdentityUnreadable": "the key file {path} cannot be used: {detail}",
    "JumpFailed": "the jump host {jump} cannot be used: {inner}",
    "BecomeRefused": "its user may not become root with sudo -n: {detail}",
    "ConnectionLost": "the connection broke",
    "DeadlinePassed": "it did not answer in time",
    # a node that talks nonsense
    "NotTheProgram": "something else than our program answers: {detail}",
    "AnswerTooLong": "its answer is longer than we accept",
    "NotJson": "its answer cannot be read",
    "WrongShape": "its answer has not the agreed form: {detail}",
    "NoPython": "it has no python3: {detail}",
    "ProgramEnded": "our program ended there: {detail}",
    # what the node program refuses
    "LeaseHeld": "another controller ({holder}) works on it",
    "StepActive": "an earlier step still runs there",
    "StaleToken": "another controller took over: this one's write was refused",
    "LeaseExpired": "this controller's lease ran out",
    "NoSystemd": "its systemd does not answer: {detail}",
    "UnitRefused": "systemd refused the step: {detail}",
    "DamagedRecord": "its record {path} is damaged",
    "NewerRecord": "its records are a newer version's: use that version",
    "Failed": "{detail}",
    "StepExists": "step {step} of lease {token} was begun there already",
    "NoSuchStep": "it has no record of step {step} of lease {token}",
    "IsDirectory": "a directory stands at {path}",
    "LabelFailed": "the SELinux label of {path} could not be set: {detail}",
    "ReadOnly": "it is a recording, and nothing can be changed there",
    "RequestTooLong": "the request is longer than it takes: {size} bytes, at most {limit}",
    "ForwardingRefused": "it opens no connections for others",
    # holds
    "StepRunning": "a step is running on the node: {steps}",
    "DistributionUnknown": "the node's distribution could not be read: {inner}",
    "NoId": "os-release names none: {detail}",
    "NoVersionId": "os-release has no version of {detail}",
    "NoSuchFile": "there is no such file",
    "OtherDistribution": "the stack {stack} is not for {found}; it is for {declared}",
    "NoPackageManager": "no package manager that we know answers there",
    "SeveralVersions": "installed in several versions at once: {detail}",
    "HalfInstalled": "installed half way: {detail}",
    "EmptyDatabase": "the package database is empty, which cannot be",
    "DatabaseDamaged": "rpm leaves out what it cannot read: {detail}",
    "VersionlockDisabled": "dnf's versionlock plugin is switched off there: nothing would keep the version",
    "VersionlockElsewhere": "dnf's versionlock plugin keeps its locks in {detail}, which is not ours to write",
    "NoVersionlockPlugin": "dnf's versionlock plugin is not installed there: nothing would keep the version",
    "VersionNotOffered": "no repository of the node has {name} {wanted}; there are {offered}",
    "PackageNotOffered": "no repository of the node has {name}",
    "NotPinned": "it does not meet {wanted}, and no lock says which version of {name} that shall be: run `reconcile pin`",
    "RepositoriesUnreadable": "the node's repositories cannot be read: {detail}",
    "StillNeeded": "other packages need it: {detail}",
    "NotAFile": "a {type} stands there",
    "ParentNotDirectory": "a parent of the path is not a directory",
    "NoSuchUser": "the node has no user {user}",
    "NoSuchGroup": "the node has no group {group}",
    "PermissionDenied": "it may not be read",
    "OutputTooLarge": "the answer was too large",
    "CommandFailed": "looking failed: {detail}",
    # the GPU driver
    "GpusUnknown": "how many GPUs the PCI bus shows is not known: {inner}",
    "GpuCountDiffers": "the PCI bus shows {found} GPUs, declared are {declared}: look at the machine first",
    "NextKernelUnknown": "which kernel boots next is not known ({inner}): a reboot might end without a driver",
    "NoModuleForNextKernel": "kernel {kernel}, which boots next, has no module {version} ({found}): build it (dkms autoinstall)",
    "NoKernelHeaders": "kernel {kernel} boots next, and no module can be built for it: install its kernel-devel or linux-headers",
    "DriverDidNotLoad": "a reboot did not load {version} (loaded: {loaded}; on disk: {on_disk}); it is not tried again: see "
    "`journalctl -k -b -g 'NVRM|nvidia'`, mend it, then load it or reboot by hand",
    "GpuInUse": "{users}",
    "GpuUsersUnknown": "who uses the GPUs is not known: {inner}",
    "TooManyDown": "as many nodes as maxUnavailable allows are out of service: this one would be one more",
    "DidNotGoDown": "it was told to restart and did not go down",
    "DidNotReturn": "it did not answer within {age} of its restart: {inner}",
    "NotFitToRestart": "it was not restarted, since that would not help or would harm",
    "RestartNotBegun": "the link broke before it was told to restart: nothing was begun there",
    "RebootWaitEnded": "interrupted while it restarted: the next apply takes over",
    "SameBoot": "it answers, and has not restarted",
    # /etc/hosts and units
    "BlockDamaged": "the marks of our block in /etc/hosts are not one BEGIN and one END after it ({detail}): mend them by hand",
    "HostsNotAFile": "a {detail} stands at /etc/hosts",
    "HostsContradicted": "other lines of /etc/hosts contradict what is declared ({lines}; declared: {declared}): take them out",
    "FileMoved": "{path} was written by somebody else since it was read",
    "NoSuchUnit": "the node has no unit {unit}: declare its source, or apply again once the package that brings it is installed",
    "UnitUnfit": "systemd cannot use {unit} as it is ({load})",
    "ForeignDropIn": "{paths} changes what is declared of {unit}: declare it under files, or remove it",
    "OtherFragment": "systemd reads {unit} from {path}, which goes before {ours}: remove it",
    "NotEnableable": "{unit} is {found}: it cannot be enabled or disabled, leave that out",
    "UnitInTransition": "{unit} is {state} right now: look again",
    "CrashLooping": "{unit} dies and is started again by systemd ({restarts} times; {result}, exit status {status})",
    "ConditionsNotMet": "systemd started {unit} and passed it over: its conditions are not met on the node",
    "NotRemembered": "{unit} runs once, and systemd forgets that it ran: enable it, or give it RemainAfterExit=yes",
    "UnitNotSaid": "systemd says nothing of unit {detail}",
    "NotesUnreadable": "the notes on what units were started with cannot be read: {detail}",
    "NotReadable": "it cannot be read: {detail}",
    "UnreadableLine": "a line of the answer cannot be understood: {detail}",
    "NotOneName": "there is not exactly one name in it: {detail}",
    "NotRecorded": "the recording does not have it",
    "NotAsked": "it was not asked for",
    # Python environments
    "RolledBack": "{by} rolled back from lock {lock}: held until the lock changes (`reconcile env rollback --to` takes it back)",
    "BuilderFirst": "{builder} builds it for all; this node has not seen that build yet",
    "BuilderFailed": "{builder} builds it for all, and could not be asked ({inner}): nobody else does",
    "BuilderHeld": "{builder} builds it for all, and is held there: {inner}",
    "NoSharedMount": "environments are shared, and nothing is mounted at {detail} on this node: nothing is built there",
    "NotTheBuilder": "{environment} is shared: {builder} builds it for all and moves its link; say --on {builder}",
    "SharerUnknown": "{node} sees the builds of {environment} too, and cannot say which it uses ({inner}): nothing is removed",
    "NoPythonSeries": "the node has no python{python}",
    "NoInstaller": "the node has neither uv nor the pip that comes with python{python} (ensurepip): nothing can install there",
    "NoWheelhouse": "the manifests do not say where this node finds the wheelhouse: mirrors.wheels",
    "WheelhouseUnreadable": "the wheelhouse {wheelhouse} cannot be read there ({detail})",
    "WheelsMissing": "the wheelhouse {wheelhouse} lacks {names}: run `reconcile fetch`",
    "NoEarlierBuild": "{node} has no whole build of {environment} that it could go back to",
    "NoSuchBuild": "{node} has no whole build {build} of {environment} ({builds})",
    "EnvironmentNotDeclared": "no selected node has an environment {name} ({environments})",
    "EnvironmentUnknown": "what {node} has of {environment} could not be read: {inner}",
    "NotALink": "something that is not a link to a build of ours stands at {path}",
    # how a node's apply ended
    "StepFailed": "{step} failed",
    "StillDiffers": "after {step} it is still not as declared",
    "StillRunning": "{step} still runs; the next apply takes it over",
    "Interrupted": "interrupted; what runs goes on, and the next apply takes it over",
    "CanaryFailed": "the canary {canary} did not converge",
    # locks and wheels
    "NoUv": "uv is not installed on this machine: pip install uv (or this tool with its extra `pin`)",
    "NoPip": "pip is not installed on this machine, neither for this Python nor on PATH",
    "PipConfigUnreadable": "pip's own configuration cannot be read: {detail}",
    "NoSuchEnvironment": "no stack here has {name} ({environments})",
    "NoSuchStack": "no Versions here is named '{name}' ({stacks})",
    "NoNodeToAsk": "the OS packages of {stacks} cannot be pinned: there is no node to ask (`--only python` pins the rest)",
    "NothingMeets": "{lock}: no repository of {node} has a {name} that is {wanted}; there are {offered}",
    "NothingOffers": "{lock}: no repository of {node} has {name}",
    "PackagesUnreadable": "what is installed there cannot be read: {inner}",
    "SeveralIndexes": "the clusters name several Python indexes ({indexes}), and a lock has one: keep one in mirrors.pypi",
    "PinFailed": "{environment} cannot be resolved: {detail}",
    "LocksDiffer": "the locks in {path} have {problems}",
    "FetchFailed": "{environment}: {names} cannot be fetched: {detail}",
    "BuildFailed": "{environment}: {name} cannot be built from its source: {detail}",
    "HashDiffers": "{file} has another hash than the lock of {environment} says: {found}",
    "BuiltElsewhere": "{environment}: the wheel {file} was built once, elsewhere, and a second build has another hash:"
    " copy it into {path}, or take its hash and its comment out of the lock",
    "NoInterpreter": "{environment}: there is no python{python} on this machine to build {name} with",
    # the call as a whole
    "NoSuchNode": "no node of cluster {cluster} is named '{name}'",
    "NoSuchTarget": "'{name}' is neither a resource kind ({kinds}) nor a declared resource",
    "ManifestProblems": "nothing was looked at on any node: the manifests in {path} have {problems}",
    "AlreadyUsed": "plan {plan} was carried out already: a saved plan is for one use; make a new one",
    "Moved": "plan {plan} is stale",
    "NotAPlanText": "{path} is not a saved plan: {detail}",
    "NotAPlanFormat": "{path} is not a saved plan: it names no format",
    "NotAPlanFields": "{path} is not a whole plan: {fields} missing or of the wrong type",
    "NotAPlanNode": "{path} is not a whole plan: node {name} has no digest, no observation, or no changes",
    "OtherVersion": "{path} was written by another version ({version})",
    "StateDirLocked": "another reconcile (pid {pid}) works on {path}",
    "OtherController": "another controller ({holder}) holds {node} since {age}: this one does nothing on the whole cluster",
    "StateDirUnusable": "the state directory {path} cannot be used: {detail}",
    "JournalDamaged": "the journal {path} is damaged at line {line}: move it away and run `reconcile state rebuild`",
    "JournalUnreadable": "the journal {path} cannot be read: {detail}",
    "JournalUnwritable": "the journal {path} cannot be written: {detail}",
    "NewerState": "{path} was written by a newer version ({version}; this one knows {supported})",
    "NoRecordings": "there is no recording in {path}",
    "NoRecording": "there is no recording of {name} in {path}",
    "OptionsApart": "{option} and {other} cannot be said together",
    "OptionNeeds": "{option} means something only together with {other}",
    "NotAbsolute": "{option} {value}: not an absolute path",
    "NotANodeName": "'{name}' is no name of a node (lower-case letters, digits, '-' and '.'): say another with --as NAME",
    "CannotRecord": "{path} cannot take a recording: {detail}",
    "WrongSetting": "{name} is {value}; allowed: {allowed}",
    "NeedsCommit": "{path} is not in Git: apply carries out commits only",
    "ObservationUnreadable": "{path} is not what was kept of a node's facts: remove it, and look again ({detail})",
    "NoSuchFact": "'{name}' is not a fact that is known ({facts})",
    "NoSuchFormat": "'{name}' is not a format that is known ({formats})",
    "NoSuchPlan": "no apply in the history has the id '{name}'",
    "NoSuchSnapshot": "there is no snapshot '{name}'",
    "NoSnapshots": "nothing was recorded yet",
    "JournalExists": "{path} has a journal: rebuild is for a lost one; move it away first",
    "NotARepository": "{path} is not in a Git repository",
    "NoSuchCommit": "there is no commit '{name}'",
    "EmptyRepository": "{path} has no commit yet",
    "NoSuchPath": "{path} does not exist",
    "Unreadable": "{path} cannot be read: {detail}",
    **SENTENCES,
    **controller_reasons.SENTENCES,
    **push_words.REASONS,
}


class _Data(dict[str, Any]):
    """Fields of a sentence; one that is not there shows as a question mark instead of ending the sentence."""

    def __missing__(self, key: str) -> str:
        return "?"


def _value(name: str, value: Any) -> str:
    if name == "age" and isinstance(value, int | float):
        return duration(value)
    if name == "users" and isinstance(value, list | tuple):
        return "; ".join(_user(user) for user in value)
    if value is None and name in ("loaded", "on_disk", "found"):
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(safe(v) for v in value) or "none"
    return safe(value)


def _user(user: Any) -> str:
    """`pid 4711 (unit train.service) uses GPU 3`; of a process without a unit its command."""
    about = user if isinstance(user, Mapping) else {}
    who = f"unit {safe(about['unit'])}" if about.get("unit") else safe(about.get("command") or "unknown command")
    gpus = ", ".join(safe(gpu) for gpu in about.get("gpus", ())) or "of unknown number"
    return f"pid {safe(about.get('pid') or '?')} ({who}) uses GPU {gpus}"


def sentence(reason: str, data: Mapping[str, Any]) -> str:
    """What a code means, with its data filled in and made safe; an unknown code is shown as it is."""
    shown = _Data({name: _value(name, value) for name, value in data.items()})
    if "inner" in data:  # what went wrong one step before
        shown["inner"] = sentence(str(data["inner"]), {k: v for k, v in data.items() if k != "inner"})
    # a code that we do not know may come from a node: it is shown, and never taken for a sentence with places to fill
    text = _SENTENCES[reason].format_map(shown) if reason in _SENTENCES else safe(reason)
    near = data.get("nearest")
    return f"{text}; did you mean '{safe(near)}'?" if near else text


def error(caught: ReconcileError) -> str:
    """The sentence of an error."""
    return sentence(caught.reason, caught.data)
