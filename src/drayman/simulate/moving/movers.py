"""Which pods of a cluster could be moved, what that costs, and why the others stay.

To move a pod is to evict it: its controller makes another one, which is placed anew. So only pods with a controller that does so are
moved, and those that share no claim with others: a claim keeps its devices until the last of its users is gone. Members of a gang that
goes as one are moved together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.jobs import PodConditionPattern
from drayman.api.labels import Labels
from drayman.api.meta import controller_of
from drayman.api.pods import is_finished, is_leaving
from drayman.api.resource import ResourceClaim
from drayman.api.times import seconds_of
from drayman.api.workloads import PodDisruptionBudget
from drayman.placement.claims import pods_holding
from drayman.placement.gangs.gang import Gang, GangKey
from drayman.placement.gangs.membership import job_of
from drayman.placement.gangs.quorum import shortfall
from drayman.placement.min_runtime import is_protected
from drayman.placement.schedulers import scheduler_of
from drayman.placement.trial import Trial
from drayman.placement.world import World
from drayman.workloads.disruption import coverage

RECREATING: Final = frozenset(
    {"Job", "ReplicaSet", "StatefulSet", "ReplicationController", "LeaderWorkerSet", "RayCluster"}
)
"""The kinds of controllers that are known to make another pod in place of one that was evicted."""
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
ENDING_S: Final = 30.0
"""How long most pods may take to end. Others come in their place only then."""
_LEAST_S: Final = 1.0
"""What a pod counts for at least that has just begun, or not yet: of several of them, those with the fewest devices are moved."""
_LOWEST: Final = -(2**31)


class Bar(Enum):
    """Why a pod stays where it is."""

    NO_CONTROLLER = "nothing would create another one"
    DAEMON = "belongs to its node"
    LEAVING = "is being deleted"
    YOUNG = "has not run for its drayman.dev/min-runtime"
    ANNOTATED = "is annotated as not safe to evict"
    NON_PREEMPTIBLE = "is in a group that is not preemptible"
    NEEDED = "is in a gang that would be ended before another one is there"
    BUDGET = "is protected by a disruption budget"
    SHARED_CLAIM = "shares a claim with other pods"
    OTHER_SCHEDULER = "is placed by another scheduler"
    LAST_TRY = "is of a Job that would fail with it"


class Cost(NamedTuple):
    """What moves cost. Less is better, the first difference decides."""

    pods: int = 0
    """How many pods are moved."""
    importance: int = 0
    """The sum of their priorities, counted from the lowest that there is."""
    gangs: int = 0
    """How many gangs are disturbed."""
    lost_s: float = 0.0
    """How long the pods have run, and other members of their gangs, times their devices: they begin anew."""

    def plus(self, other: Cost) -> Cost:
        return Cost(
            self.pods + other.pods,
            self.importance + other.importance,
            self.gangs + other.gangs,
            self.lost_s + other.lost_s,
        )

    @property
    def reverse(self) -> Cost:
        """Orders the other way round."""
        return Cost(-self.pods, -self.importance, -self.gangs, -self.lost_s)


class Mover(Struct, frozen=True, eq=False):
    """Pods that are moved together: a pod, or all of a gang that goes as one."""

    pods: tuple[Pod, ...]
    claims: tuple[ResourceClaim, ...]
    """Those that give back their devices."""
    cost: Cost
    priority: int
    """Of the most important of them."""
    gang: GangKey | None = None

    @property
    def key(self) -> str:
        """Of its first pod, the uid."""
        return self.pods[0].metadata.uid

    @property
    def devices(self) -> int:
        """How many devices they hold, entirely or in part."""
        return sum(len(claim.status.results) for claim in self.claims)

    def leave(self, trial: Trial) -> None:
        for pod in self.pods:
            trial.evict(pod.metadata.uid, ())
        for claim in self.claims:
            trial.free(claim)

    def come_back(self, trial: Trial) -> None:
        for pod in self.pods:
            trial.restore(pod.metadata.uid)
        for claim in self.claims:
            trial.hold(claim)


def cost_of(movers: Sequence[Mover]) -> Cost:
    """What it costs to move all of these. A gang is disturbed once, however many of its members are moved."""
    total = Cost()
    gangs: dict[GangKey, Cost] = {}
    for mover in movers:
        if mover.gang is None:
            total = total.plus(mover.cost)
            continue
        pods, importance, _, lost = mover.cost
        total = total.plus(Cost(pods, importance))
        gangs[mover.gang] = max(gangs.get(mover.gang, Cost()), Cost(0, 0, 1, lost))
    for disturbed in gangs.values():
        total = total.plus(disturbed)
    return total


class Movers:
    """The pods of a cluster that could be moved, by node."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._state = world.state
        self._now = world.now
        self._budgets = _Budgets(world.objects.disruption_budgets)
        self._jobs = {job.metadata.uid: job for job in world.objects.jobs}
        self._by_node: dict[str, list[Mover]] = {}
        self.staying: Counter[Bar] = Counter()
        """How many pods that hold devices stay, by the reason."""
        self._gather()

    def on(self, node: str) -> Sequence[Mover]:
        return self._by_node.get(node, ())

    def find(self, uid: str) -> Mover | None:
        """The mover that a pod is in; None if it stays."""
        return self._by_pod.get(uid)

    def may_go_together(self, movers: Sequence[Mover]) -> bool:
        """Whether disruption budgets allow all of these at the same time."""
        return self._budgets.allow([pod for mover in movers for pod in mover.pods])

    def _gather(self) -> None:
        self._by_pod: dict[str, Mover] = {}
        pods = [p for p in self._world.objects.pods if p.spec.node_name and not is_finished(p)]
        for mover in self._all(sorted(pods, key=_name)):
            for pod in mover.pods:
                self._by_pod[pod.metadata.uid] = mover
            for node in dict.fromkeys(pod.spec.node_name for pod in mover.pods):
                self._by_node.setdefault(node, []).append(mover)

    def _all(self, pods: Sequence[Pod]) -> Iterator[Mover]:
        gathered: set[GangKey] = set()
        for pod in pods:
            if self._state.node_of(pod.metadata.uid) is None:
                continue
            gang = self._gang_of(pod)
            if gang is not None and gang.goes_as_one:
                if gang.key not in gathered:
                    gathered.add(gang.key)
                    members = self._state.gangs.placed(gang.key).values()
                    yield from self._mover(sorted((m.pod for m in members), key=_name), gang)
            else:
                yield from self._mover([pod], gang)

    def _mover(self, pods: Sequence[Pod], gang: Gang | None) -> Iterator[Mover]:
        claims = {
            claim.metadata.uid: claim
            for pod in pods
            for claim in self._state.claims_used_by(pod)
            if claim.status.allocation is not None
        }
        bar = self._bar(pods, tuple(claims.values()), gang)
        if bar is None:
            key = None if gang is None else gang.key
            priority = max(map(self._state.gangs.priority_of, pods))
            cost = self._cost(pods, gang)
            yield Mover(tuple(pods), tuple(claims.values()), cost, priority, key)
        elif claims:
            self.staying[bar] += len(pods)

    def _bar(
        self, pods: Sequence[Pod], claims: Sequence[ResourceClaim], gang: Gang | None
    ) -> Bar | None:
        if gang is not None and gang.is_preemptible is False:
            return Bar.NON_PREEMPTIBLE
        if gang is not None and self._is_needed_by(gang, pods):
            return Bar.NEEDED
        own = {pod.metadata.uid for pod in pods}
        for claim in claims:
            users = pods_holding(claim)
            if users is None or any(user.uid not in own for user in users):
                return Bar.SHARED_CLAIM
        for pod in pods:
            bar = _bar_of(pod, self._now, self._state.gangs.stated_for(pod))
            if bar is not None:
                return bar
            if self._is_last_try(pod):
                return Bar.LAST_TRY
        return None if self._budgets.allow(pods) else Bar.BUDGET

    def _is_needed_by(self, gang: Gang, pods: Sequence[Pod]) -> bool:
        """Whether the scheduler would end what is left of a gang without these, as it says itself, before others can be there."""
        if gang.goes_as_one or gang.grace_s is None or gang.grace_s > ENDING_S:
            return False
        has = self._state.gangs.running(gang)
        for pod in pods:
            member = self._state.gangs.member(pod.metadata.uid)
            if member is not None and member.is_staying:
                has[member.membership.subgroup] -= 1
        return shortfall(gang, has) is not None

    def _is_last_try(self, pod: Pod) -> bool:
        """Whether the Job of a pod has no retries left, and counts a pod that was evicted as one that failed."""
        owner = job_of(pod)
        job = None if owner is None else self._jobs.get(owner.uid)
        if job is None or job.status.failed < job.spec.backoff_limit:
            return False
        policy = job.spec.pod_failure_policy
        rules = () if policy is None else policy.rules
        return not any(
            rule.action == "Ignore" and any(_is_disruption(p) for p in rule.on_pod_conditions)
            for rule in rules
        )

    def _cost(self, pods: Sequence[Pod], gang: Gang | None) -> Cost:
        importance = sum(self._state.gangs.priority_of(pod) - _LOWEST for pod in pods)
        disturbed: Sequence[Pod] = pods
        if gang is not None:
            disturbed = [member.pod for member in self._state.gangs.placed(gang.key).values()]
        lost = sum(max(_LEAST_S, has_run(pod, self._now)) * self._weight(pod) for pod in disturbed)
        return Cost(len(pods), importance, int(gang is not None), lost)

    def _weight(self, pod: Pod) -> int:
        """The devices that a pod holds; 1 for one without any."""
        return sum(len(c.status.results) for c in self._state.claims_used_by(pod)) or 1

    def _gang_of(self, pod: Pod) -> Gang | None:
        key = self._state.gangs.key_of(pod)
        gang = None if key is None else self._state.gangs.gang(key)
        return gang if isinstance(gang, Gang) else None


class _Budgets:
    """Disruption budgets: which pods may be evicted one after the other, each once the one before it is replaced."""

    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        self._of: dict[str, list[tuple[PodDisruptionBudget, Callable[[Labels], bool]]]] = {}
        for budget in budgets:
            covers = coverage(budget.spec.selector)
            self._of.setdefault(budget.metadata.namespace, []).append((budget, covers))
        self._found: dict[
            tuple[str, frozenset[tuple[str, str]]], tuple[PodDisruptionBudget, ...]
        ] = {}

    def allow(self, pods: Sequence[Pod]) -> bool:
        """Whether the pods may be evicted at the same time. A pod in two budgets may not at all: the API refuses that."""
        wanted: Counter[str] = Counter()
        allowed: dict[str, int] = {}
        for pod in pods:
            covering = self._covering(pod.metadata.namespace, pod.metadata.labels)
            if len(covering) > 1:
                return False
            for budget in covering:
                uid = budget.metadata.uid or budget.metadata.name
                wanted[uid] += 1
                allowed[uid] = budget.status.disruptions_allowed
        return all(number <= allowed[uid] for uid, number in wanted.items())

    def _covering(
        self, namespace: str, labels: Mapping[str, str]
    ) -> tuple[PodDisruptionBudget, ...]:
        if namespace not in self._of:
            return ()
        key = (namespace, frozenset(labels.items()))
        if key not in self._found:
            self._found[key] = tuple(b for b, covers in self._of[namespace] if covers(labels))
        return self._found[key]


def _bar_of(pod: Pod, now: float, of_job: Mapping[str, str]) -> Bar | None:
    """What a pod says by itself."""
    owner = controller_of(pod.metadata)
    if owner is not None and owner.kind in ("DaemonSet", "Node"):
        return Bar.DAEMON
    if owner is None or owner.kind not in RECREATING:
        return Bar.NO_CONTROLLER
    if is_leaving(pod):
        return Bar.LEAVING
    if pod.metadata.annotations.get(SAFE_TO_EVICT) == "false":
        return Bar.ANNOTATED
    return Bar.YOUNG if is_protected(pod, now, of_job) else None


def is_moved_by(mover: Mover, beneficiary: Pod, priority: int) -> bool:
    """Whether pods may be moved for another of this priority: they are not more important, and the same scheduler places them again."""
    if mover.priority > priority:
        return False
    return all(scheduler_of(pod) == scheduler_of(beneficiary) for pod in mover.pods)


def has_run(pod: Pod, now: float) -> float:
    """For how long, in seconds."""
    since = seconds_of(pod.status.start_time)
    return 0.0 if since is None else max(0.0, now - since)


def _is_disruption(pattern: PodConditionPattern) -> bool:
    """Whether it is about pods that were evicted."""
    return pattern.type_ == "DisruptionTarget" and pattern.status in ("", "True")


def _name(pod: Pod) -> tuple[str, str, str]:
    return pod.metadata.namespace, pod.metadata.name, pod.metadata.uid
