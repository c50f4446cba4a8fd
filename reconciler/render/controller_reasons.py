"""Sentences of the controller's reason codes: its socket, its conditions, what a person has to see to."""

from __future__ import annotations

SENTENCES = {
    # why a difference is left as it is
    "PolicyObserve": "its policy is observe: differences are recorded, and nothing is written",
    "WaitingForApproval": "plan {plan} has changes of {kinds}, which wait for `reconcile approve {plan}`",
    "NodeSuspended": "suspended by {by} until {until}: {reason}",
    "Flapping": "somebody else sets {path} back: {times} times within {window} from {after} to {before}; "
    "not changed again before `reconcile resume` or a new revision",
    # conditions
    "AsDeclared": "as declared: {resources} resources",
    "NotObserved": "not known, since it could not be observed",
    "NotCarriedOut": "not carried out yet",
    "Retrying": "trying again: {inner}",
    "Applying": "being changed now",
    "NodeMoved": "{resource} is no longer as it was left ({fields}), and {others} more",
    "RebootOwed": "{resource} needs a restart of the node",
    "NoNodes": "no node is declared, or none was looked at yet",
    "SomeNodes": "{count}: {nodes}",
    # revisions
    "NewerRevision": "a newer revision took its place",
    "Preempted": "a newer revision took its place; what is left is done with it",
    "ManifestsWrong": "revision {commit} has {count} problems in its manifests; the one before stays in force",
    "EmptiedState": "revision {commit} declares no cluster or no node any more: `reconcile approve {commit}` if that is meant",
    "NotSigned": "revision {commit} is not signed as asked ({count} of its commits); the one before stays in force",
    "NonFastForward": "revision {commit} does not go on from {accepted}: history was rewritten; "
    "`reconcile approve {commit}` if that is meant",
    "RefGone": "{repository} has no {ref} any more",
    "NothingPushed": "{repository} has no commit yet",
    "RepositoryUnread": "{repository} cannot be read: {detail}",
    # what a person says, and what is answered
    "Detached": "it goes on by itself: `reconcile status --follow {id}` shows it",
    "OtherRef": "the controller follows {followed}, not {ref}",
    "OtherRepository": "the controller follows {followed}, not {repository}",
    "NoSuchTurn": "the controller knows no turn '{name}' (any more)",
    "NoSuchCondition": "'{name}' is no condition ({conditions}), optionally with =True, =False or =Unknown",
    "WaitTimedOut": "{condition} did not come in time: {nodes}",
    "Waiting": "plan {plan} waits for approval: `reconcile approve {plan}` lets exactly it be carried out",
    "WaitingApproved": "plan {plan} is approved by {by}, and not carried out yet",
    "NothingWaits": "no plan waits for approval",
    "Approved": "plan {plan} is approved: it is carried out now",
    "ApprovedLater": "plan {plan} is approved: no controller runs, the next one carries it out",
    "OneOf": "say one of {options}",
    "WrongSettings": "the settings have {count} mistakes",
    "RevisionApproved": "revision {commit} is approved: it is in force now",
    "NothingToApprove": "nothing with the name '{name}' waits for approval ({waiting})",
    "ApprovalUnreadable": "{path} is not a plan that waits for approval: remove it, and it is made anew ({detail})",
    "ConditionsUnreadable": "{path} is not what a controller wrote: remove it, and it is made anew ({detail})",
    "NotSuspended": "a suspension needs declared nodes (unknown: {nodes}), a reason and a time to come",
    "NowSuspended": "suspended until {until}",
    "Resumed": "no longer suspended",
    "TooManyClients": "the controller has {limit} clients already",
    "Internal": "internal error: {detail}",
    # the socket
    "NoController": "no controller listens at {path}: start `reconcile controller`, or name its --state-dir",
    "ControllerDenied": "you may not speak to the controller at {path}: be its user, or in its group",
    "ControllerLost": "the controller at {path} went away before it had finished; what it began goes on when it is back",
    "ControllerGarbled": "what listens at {path} does not speak as the controller does",
    "LineTooLong": "a message of {size} bytes is longer than {limit}",
    "UnknownVersion": "the controller speaks version {supported} of its protocol, not {version}",
    "UnknownOp": "the controller has no operation '{name}' ({ops})",
    "WrongField": "operation {op} does not take {fields} like this; its fields are {allowed}",
}
