"""What a daemon set needs on each node: a pod where there is none, none where it does not belong, a newer one where it is old."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from drayman.api.core import Node, Pod
from drayman.api.pods import is_finished, is_leaving
from drayman.api.workloads import DaemonSet, DaemonSetStatus
from drayman.workloads import shares
from drayman.workloads.daemon_sets.placement import DaemonFit, DaemonNodes, node_of
from drayman.workloads.pod_bodies import MOST_PER_ROUND
from drayman.workloads.pod_state import is_available, is_ready
from drayman.workloads.revisions import revision_of


@dataclass(frozen=True, slots=True)
class DaemonPlan:
    create: tuple[str, ...] = ()
    """Names of nodes."""
    delete: tuple[Pod, ...] = ()
    ended: tuple[Pod, ...] = ()
    """Those of the deleted that had ended by themselves."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The nodes, how the set fits each, and the pods on them."""

    fits: Mapping[str, DaemonFit]
    pods: Mapping[str, list[Pod]]
    """The oldest first. Pods for nodes that do not exist are here too."""

    @property
    def desired(self) -> int:
        return sum(fit.should_run for fit in self.fits.values())

    @property
    def lacking(self) -> list[str]:
        """The nodes that should get a pod. A pod that is being deleted still occupies its node, so the next waits until it is gone."""
        return [
            name for name, fit in self.fits.items() if fit.should_run and not self.pods.get(name)
        ]


@dataclass(slots=True)
class _Draft:
    create: list[str] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    ended: list[Pod] = field(default_factory=list)


def survey(daemon_set: DaemonSet, nodes: Iterable[Node], pods: Iterable[Pod]) -> Ground:
    placement = DaemonNodes(daemon_set.spec.template)
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod), []).append(pod)
    for found in by_node.values():
        found.sort(key=lambda p: (p.metadata.creation_timestamp or "", p.metadata.name))
    return Ground({node.metadata.name: placement.fit(node) for node in nodes}, by_node)


def plan(daemon_set: DaemonSet, ground: Ground, revision: str, now: float) -> DaemonPlan:
    """`revision` is that of the present template, as pods have it in their label."""
    if daemon_set.metadata.deletion_timestamp is not None:
        return DaemonPlan()
    draft = _Draft(create=ground.lacking)
    surge = _surge(daemon_set, ground)
    for name, fit in ground.fits.items():
        _attend(draft, fit, ground.pods.get(name, []), revision, surging=surge > 0)
    for name, pods in ground.pods.items():
        if name and name not in ground.fits:
            draft.delete += [pod for pod in pods if not is_leaving(pod)]
    if daemon_set.spec.update_strategy.type_ == "RollingUpdate":
        if surge:
            _update_with_surge(daemon_set, ground, draft, revision, surge, now)
        else:
            _update_in_place(daemon_set, ground, draft, revision, now)
    delete = {pod.metadata.uid: pod for pod in draft.delete}
    return DaemonPlan(
        tuple(dict.fromkeys(draft.create))[:MOST_PER_ROUND],
        tuple(delete.values())[:MOST_PER_ROUND],
        tuple(draft.ended),
    )


def _attend(
    draft: _Draft, fit: DaemonFit, pods: Sequence[Pod], revision: str, *, surging: bool
) -> None:
    """Deletes what is not to be on a node."""
    if not fit.may_stay:
        draft.delete += [pod for pod in pods if not is_leaving(pod)]
        return
    alive = [pod for pod in pods if not is_leaving(pod)]
    ended = [pod for pod in alive if is_finished(pod)]
    draft.ended += ended
    draft.delete += ended
    running = [pod for pod in alive if not is_finished(pod)]
    # While it surges, an old and a new one are side by side until the new one serves.
    kept = _sides(running, revision) if surging else running[:1]
    draft.delete += [pod for pod in running if pod not in kept]


def _update_in_place(
    daemon_set: DaemonSet, ground: Ground, draft: _Draft, revision: str, now: float
) -> None:
    """Deletes old pods as far as nodes may be without one; those that do not serve anyway first and freely."""
    most = max(1, _resolved(daemon_set, ground, "max_unavailable"))
    unavailable, candidates, idle = 0, [], []
    for name, fit in ground.fits.items():
        if not fit.should_run:
            continue
        new, old = _sides(ground.pods.get(name, []), revision)
        pod = new or old
        if pod is None:
            unavailable += 1
        elif pod is new:
            unavailable += not _serves(daemon_set, pod, now)
        elif is_leaving(pod):
            unavailable += 1
        elif not _serves(daemon_set, pod, now):
            idle.append(pod)
            unavailable += 1
        else:
            candidates.append(pod)
    draft.delete += [*idle, *candidates[: max(0, most - unavailable)]]


def _update_with_surge(
    daemon_set: DaemonSet, ground: Ground, draft: _Draft, revision: str, surge: int, now: float
) -> None:
    """Makes new pods beside old ones, and deletes an old one when the new one serves."""
    room = surge
    candidates = []
    for name, fit in ground.fits.items():
        new, old = _sides(ground.pods.get(name, []), revision)
        if old is None or is_leaving(old):
            continue
        if new is not None:
            room -= 1
            if _serves(daemon_set, new, now):
                draft.delete.append(old)
        elif fit.should_run and not _serves(daemon_set, old, now):
            draft.create.append(name)
        elif fit.should_run:
            candidates.append(name)
    draft.create += candidates[: max(0, room)]


def _sides(pods: Sequence[Pod], revision: str) -> tuple[Pod | None, Pod | None]:
    """The new and the old pod of a node."""
    alive = [pod for pod in pods if not is_finished(pod)]
    new = next((pod for pod in alive if revision_of(pod) == revision), None)
    old = next((pod for pod in alive if revision_of(pod) != revision), None)
    return new, old


def _surge(daemon_set: DaemonSet, ground: Ground) -> int:
    if daemon_set.spec.update_strategy.type_ != "RollingUpdate":
        return 0
    return _resolved(daemon_set, ground, "max_surge")


def _resolved(daemon_set: DaemonSet, ground: Ground, name: str) -> int:
    rolling = daemon_set.spec.update_strategy.rolling_update
    amount = None if rolling is None else getattr(rolling, name)
    return shares.resolve(amount, ground.desired, up=True)


def _serves(daemon_set: DaemonSet, pod: Pod, now: float) -> bool:
    return not is_leaving(pod) and is_available(pod, daemon_set.spec.min_ready_seconds, now)


def status_of(
    daemon_set: DaemonSet, ground: Ground, revision: str, collisions: int | None, now: float
) -> DaemonSetStatus:
    current = misplaced = ready = available = updated = 0
    for name, fit in ground.fits.items():
        pods = ground.pods.get(name, [])
        if not fit.should_run:
            misplaced += bool(pods)
            continue
        if not pods:
            continue
        current += 1
        ready += any(is_ready(pod) for pod in pods)
        available += any(_serves(daemon_set, pod, now) for pod in pods)
        updated += any(revision_of(pod) == revision for pod in pods)
    return msgspec.structs.replace(
        daemon_set.status,
        desired_number_scheduled=ground.desired,
        current_number_scheduled=current,
        number_misscheduled=misplaced,
        number_ready=ready,
        number_available=available,
        number_unavailable=ground.desired - available,
        updated_number_scheduled=updated,
        observed_generation=daemon_set.metadata.generation,
        collision_count=collisions,
    )
