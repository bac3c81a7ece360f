"""The pods on the nodes, as preemption sees them: how important, with which claims, who goes with whom, and whether being deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import is_finished, is_leaving, priority_of
from drayman.api.resource import ResourceClaim
from drayman.api.times import seconds_of
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS
from drayman.placement.claims import pods_holding
from drayman.placement.gangs.book import ranked
from drayman.placement.gangs.gang import Gang, GangKey
from drayman.placement.gangs.membership import job_of
from drayman.placement.min_runtime import MIN_RUNTIME, protected_until
from drayman.placement.nominations import Nomination
from drayman.placement.parties import Occupant, Party, goes_together, parties_of
from drayman.placement.state import ClusterState

_BY_NODE: Final = "node"
_BY_USER: Final = "user"
_DELETED: Final = "DELETED"
_LOWEST: Final = -(2**31)
_GRACE_S: Final = 30.0
"""The grace period of most pods."""
_OVERDUE_S: Final = 60.0
"""A pod goes within moments after its grace period. One that is still there much later is neither waited for nor evicted again."""


class Occupants:
    """The pods that have nodes."""

    def __init__(
        self, handlers: Handlers, state: ClusterState, is_asked: Callable[[str], bool]
    ) -> None:
        """`is_asked` says whether a pod, by uid, has been asked to go, even if the server does not show it yet."""
        self._state = state
        self._is_asked = is_asked
        self._priorities: Counter[int] = Counter()
        """How many pods on nodes have which priority."""
        self._priority_of: dict[str, int] = {}  # by uid
        self._with_run_time: dict[str, Pod] = {}  # those that may be left alone for a while, by uid
        self._of_gangs: dict[GangKey, tuple[int, float, list[Occupant]]] = {}
        self._unused: dict[str, ResourceClaim] = {}
        """Claims that had no users left when they or one of their users changed, by uid: nearly always few, of very many."""
        informers = handlers.informers
        self._pods = informers.informer(PODS, indexers={_BY_NODE: _node_of}).cache
        self._claims = informers.informer(RESOURCE_CLAIMS, indexers={_BY_USER: _users_of}).cache
        handlers.add(PODS, self._pod_changed)
        handlers.add(RESOURCE_CLAIMS, self._claim_changed)

    def are_all_as_important(self, priority: int) -> bool:
        """Whether no pod on any node has a lower priority."""
        return all(each >= priority for each in self._priorities)

    def on(self, node: str, now: float) -> Sequence[Party]:
        """The pods on a node that leave anyway, or could be evicted, with those elsewhere that would go with them."""
        return self.among((node,), lambda each: each.node == node, now)

    def among(
        self, nodes: Iterable[str], is_in_the_way: Callable[[Occupant], bool], now: float
    ) -> list[Party]:
        """The same for several nodes. `is_in_the_way` says of which members of a gang it is better that they go."""
        found: list[Party] = []
        gangs: dict[GangKey, Gang] = {}
        for node in nodes:
            for pod in self._pods.by_index(_BY_NODE, node):
                if not self._counts(pod, node, now):
                    continue
                gang = self._state.gangs.gang_of(pod)
                if self._is_leaving(pod):
                    found.append(Party.alone(self._occupant(pod, node, now), is_leaving=True))
                elif isinstance(gang, Gang) and goes_together(gang):
                    gangs[gang.key] = gang
                elif isinstance(gang, Gang):
                    found += parties_of(gang, [self._occupant(pod, node, now)], {}, is_in_the_way)
                else:
                    occupant = self._occupant(pod, node, now)
                    if not occupant.is_safe:
                        found.append(Party.alone(occupant))
        for gang in gangs.values():
            found += self._parties(gang, is_in_the_way, now)
        return found

    def _parties(
        self, gang: Gang, is_in_the_way: Callable[[Occupant], bool], now: float
    ) -> list[Party]:
        succeeded = self._state.gangs.succeeded(gang.key).values()
        done = Counter(each.membership.subgroup for each in succeeded)
        return parties_of(gang, self._members(gang.key, now), done, is_in_the_way)

    def _members(self, gang: GangKey, now: float) -> list[Occupant]:
        """The members of a gang that have nodes, and are not about to go. Kept for the next node of the same search."""
        placed = self._state.gangs.placed(gang)
        number, at, members = self._of_gangs.get(gang, (0, 0.0, []))
        if number != len(placed) or at != now:
            members = [
                self._occupant(member.pod, member.node, now, member.membership.subgroup)
                for member in ranked(placed)
                if not self._is_leaving(member.pod)
            ]
            self._of_gangs[gang] = (len(placed), now, members)
        return members

    def _occupant(self, pod: Pod, node: str, now: float, part: str = "") -> Occupant:
        # One that is about to be bound cannot be evicted yet.
        is_safe = not pod.spec.node_name or self.left_alone_until(pod, now) is not None
        return Occupant(pod, self._state.claims_used_by(pod), node, part, is_safe)

    def left_alone_until(self, pod: Pod, now: float) -> float | None:
        """Until when a pod may not be evicted because it has just begun; None if it may."""
        until = protected_until(pod, self._state.gangs.stated_for(pod))
        return until if until is not None and now < until else None

    def next_in_reach(self, priority: int, now: float) -> float | None:
        """When the next of the less important pods that are left alone for a while has had its time."""
        ends = [
            until
            for pod in self._with_run_time.values()
            if self._state.gangs.priority_of(pod) < priority and not self._is_leaving(pod)
            if (until := self.left_alone_until(pod, now)) is not None
        ]
        return min(ends, default=None)

    def has_evictable(self, node: str, priority: int, now: float) -> bool:
        """Whether a pod on a node is less important than this, or leaves it anyway."""
        return any(True for _ in self._evictable(node, priority, now))

    def evictable_devices(self, node: str, priority: int, now: float) -> int:
        """How many devices, and shares of devices, are held by pods on a node that are less important than this, or leave it anyway."""
        claims = {
            claim.metadata.uid: len(claim.status.results)
            for pod in self._evictable(node, priority, now)
            for claim in self._state.claims_used_by(pod)
        }
        return sum(claims.values())

    def _evictable(self, node: str, priority: int, now: float) -> Iterator[Pod]:
        """Those of the pods `on` a node that a pod of this priority may count on to go."""
        importance = self._state.gangs.priority_of
        for pod in self._pods.by_index(_BY_NODE, node):
            may_go = importance(pod) < priority or self._is_leaving(pod)
            if may_go and self._counts(pod, node, now):
                yield pod

    def _counts(self, pod: Pod, node: str, now: float) -> bool:
        return self._state.node_of(pod.metadata.uid) == node and not _is_overdue(pod, now)

    def unused_claims(self) -> list[ResourceClaim]:
        """Claims with devices whose users are gone: they are about to give them back."""
        found = []
        for uid, noted in tuple(self._unused.items()):
            claim = self._state.known_claim(noted)
            if claim is None or claim.status.allocation is None or not self._has_no_users(claim):
                del self._unused[uid]
            elif not self._state.is_under_way(claim):
                found.append(claim)
        return found

    def are_awaited(self, nomination: Nomination, now: float) -> bool:
        """Whether a pod still has to go, or a claim to give back its devices, before a pod gets its room.

        Not if one of them does not go: then neither its room nor its devices will become free.
        """
        here = self._still_here(nomination)
        if any(_is_overdue(pod, now) for pod in here):
            return False
        departing = {pod.metadata.uid for pod in nomination.departing}
        return bool(here) or any(self.is_held(claim, departing) for claim in nomination.freed)

    def overdue_at(self, nomination: Nomination, now: float) -> float | None:
        """When to stop waiting for the next of the pods that still have to go; None if there are none."""
        deadlines = [_overdue_at(pod, now) for pod in self._still_here(nomination)]
        return min((at for at in deadlines if at >= now), default=None)

    def _still_here(self, nomination: Nomination) -> list[Pod]:
        found = (
            self._find(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
            for pod in nomination.departing
        )
        return [pod for pod in found if pod is not None]

    def is_here(self, pod: Pod) -> bool:
        """Whether a pod exists and has not ended."""
        return self._find(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid) is not None

    def is_held(self, claim: ResourceClaim, departing: set[str]) -> bool:
        """Whether a claim still has its devices and is used only by departing pods."""
        known = self._state.known_claim(claim)
        if known is None or known.status.allocation is None:
            return False
        users = pods_holding(known)
        return users is not None and all(user.uid in departing for user in users)

    def _is_leaving(self, pod: Pod) -> bool:
        return is_leaving(pod) or self._is_asked(pod.metadata.uid)

    def _has_no_users(self, claim: ResourceClaim) -> bool:
        """Whether a claim was for pods, and all of them are gone or have ended."""
        users = pods_holding(claim)
        namespace = claim.metadata.namespace
        return bool(users) and all(
            self._find(namespace, user.name, user.uid) is None for user in users or ()
        )

    def _find(self, namespace: str, name: str, uid: str) -> Pod | None:
        """A pod that exists and has not ended."""
        found = self._pods.get(name, namespace)
        if found is None or found.metadata.uid != uid or is_finished(found):
            return None
        return found

    def _claim_changed(self, notice: Notice[ResourceClaim]) -> None:
        claim = notice.object
        is_there = notice.type != _DELETED and claim.status.allocation is not None
        if is_there and self._has_no_users(claim):
            self._unused[claim.metadata.uid] = claim
        else:
            self._unused.pop(claim.metadata.uid, None)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        if notice.type == _DELETED or is_finished(pod):
            for claim in self._claims.by_index(_BY_USER, pod.metadata.uid):
                self._unused[claim.metadata.uid] = claim
        self._of_gangs.clear()
        before = self._priority_of.pop(pod.metadata.uid, None)
        if before is not None:
            self._priorities[before] -= 1
            if not self._priorities[before]:
                del self._priorities[before]
        self._with_run_time.pop(pod.metadata.uid, None)
        if notice.type != _DELETED and pod.spec.node_name:
            # A group may say that its pods are less important than they say themselves.
            in_group = pod.spec.scheduling_group is not None
            now = self._priority_of[pod.metadata.uid] = _LOWEST if in_group else priority_of(pod)
            self._priorities[now] += 1
            if MIN_RUNTIME in pod.metadata.annotations or job_of(pod) is not None:
                self._with_run_time[pod.metadata.uid] = pod


def _is_overdue(pod: Pod, now: float) -> bool:
    """Whether a pod should have been gone long ago."""
    return _overdue_at(pod, now) < now


def _overdue_at(pod: Pod, now: float) -> float:
    """A pod's deletion timestamp is when its grace period ends. It is not known yet for a pod that is only now being evicted."""
    deadline = seconds_of(pod.metadata.deletion_timestamp)
    return (now + _GRACE_S if deadline is None else deadline) + _OVERDUE_S


def _users_of(claim: ResourceClaim) -> Iterator[str]:
    return (user.uid for user in pods_holding(claim) or ())


def _node_of(pod: Pod) -> tuple[str, ...]:
    if not pod.spec.node_name or is_finished(pod):
        return ()
    return (pod.spec.node_name,)
