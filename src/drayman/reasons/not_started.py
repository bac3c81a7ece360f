"""What keeps the containers of a pod from running that has a node, and how a pod has failed, in the words of the node.

The node says in the status of each container what it waits for. Often that is only that the container is being created. Some nodes add
what keeps it from that, such as a driver that cannot prepare a device; of others it is in the events of the pod, which no answer reads: the
command that shows them is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from drayman.api.core import ContainerStateTerminated, ContainerStatus, Pod
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import and_list, named

_PENDING: Final = "Pending"
_CRASHING: Final = "CrashLoopBackOff"
_AFTER_INIT: Final = "PodInitializing"
_UNDER_WAY: Final = ("", "ContainerCreating")
"""What says nothing about why it takes long, unless there is a message."""
_MOST: Final = 300
"""Characters of a message: programs may end with several thousand."""


def not_started(pod: Pod) -> Headline | None:
    """Why a pod that has a node does not run there; None if it does."""
    waiting = list(_waiting(pod))
    if not waiting and pod.status.phase != _PENDING:
        return None
    telling = [text for tells_why, text in waiting if tells_why]
    verb = "has not started yet" if pod.status.phase == _PENDING else "does not run as a whole"
    said = telling or [text for _, text in waiting if text]
    text = f"The pod is on node {pod.spec.node_name}, and {verb}"
    text = f"{text}: {'; '.join(said)}." if said else f"{text}."
    return Headline.of(Reason.NOT_STARTED, text if telling else f"{text} {_events_of(pod)}")


def failed(pod: Pod) -> Headline:
    """How a pod has ended that has not succeeded."""
    status = pod.status
    where = f" on node {pod.spec.node_name}" if pod.spec.node_name else ""
    reason = f" ({status.reason})" if status.reason else ""
    said = [_short(status.message)] if status.message else []
    said += [
        f"{noun} {each.name} ended with {_ending(each.state.terminated)}"
        for noun, each in _containers(pod)
        if each.state.terminated is not None and not _ended_well(each.state.terminated)
    ]
    why = f": {'; '.join(said)}." if said else "."
    if not said and not reason:
        why = f". Its status does not say why; its events may: {_describing(pod)}."
    return Headline.of(Reason.FAILED, f"The pod has failed{where}{reason}{why}")


def overdue(pod: Pod, absent: Mapping[str, str]) -> str:
    """What there is to say about a pod that has had its time to end, and is still there.

    `absent`: drivers that are not on its node any more, each with the name of a claim that it would have to take back.
    """
    kept = f" Finalizers: {and_list(pod.metadata.finalizers)}." if pod.metadata.finalizers else ""
    why = " ".join(
        f"Driver {driver}, which has to take back the devices of claim {claim}, publishes nothing on the node any more:"
        f" start the driver {driver} on {pod.spec.node_name}."
        for driver, claim in absent.items()
    )
    return f"It has had its time to end.{kept} {why or _events_of(pod)}"


def _events_of(pod: Pod) -> str:
    """Where to look for a cause that is not in the status of the pod."""
    return f"Its events say why if it stays like this: {_describing(pod)}."


def _describing(pod: Pod) -> str:
    return f"kubectl describe pod {pod.metadata.name} -n {pod.metadata.namespace}"


def _containers(pod: Pod) -> Iterator[tuple[str, ContainerStatus]]:
    """The status of each container, with what it is called."""
    yield from (("init container", each) for each in pod.status.init_container_statuses)
    yield from (("container", each) for each in pod.status.container_statuses)


def _waiting(pod: Pod) -> Iterator[tuple[bool, str]]:
    """The containers that wait: whether it is said why, and a clause. Those that wait for init containers are told of together."""
    status = pod.status
    for noun, each in _containers(pod):
        waiting = each.state.waiting
        if waiting is not None and waiting.reason != _AFTER_INIT:
            tells_why = waiting.reason not in _UNDER_WAY or bool(waiting.message)
            yield tells_why, f"{noun} {each.name} {_clause(each)}"
    if any(_awaits_init(each) for each in status.container_statuses):
        names = [each.name for each in status.init_container_statuses if _is_open(each)]
        whom = named("init container", names) if names else "init containers"
        yield False, f"its containers wait for {whom} to end"


def _awaits_init(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and status.state.waiting.reason == _AFTER_INIT


def _is_open(status: ContainerStatus) -> bool:
    return status.state.terminated is None and status.state.waiting is None


def _clause(status: ContainerStatus) -> str:
    """What is to be said about a container that waits."""
    waiting, last = status.state.waiting, status.last_state.terminated
    assert waiting is not None
    if waiting.reason == _CRASHING and last is not None:
        return f"ends again and again ({_CRASHING}), last with {_ending(last)}"
    reason = f" ({waiting.reason})" if waiting.reason else ""
    message = f": {_short(waiting.message)}" if waiting.message else ""
    return f"waits{reason}{message}"


def _ended_well(end: ContainerStateTerminated) -> bool:
    return not end.exit_code and not end.signal


def _ending(last: ContainerStateTerminated) -> str:
    how = f"exit code {last.exit_code}" if not last.signal else f"signal {last.signal}"
    reason = f" ({last.reason})" if last.reason else ""
    message = f": {_short(last.message)}" if last.message else ""
    return f"{how}{reason}{message}"


def _short(message: str) -> str:
    text = " ".join(message.split()).rstrip(".")
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."
