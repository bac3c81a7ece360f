"""What would become of workloads that are not submitted yet: where each pod would go, with which devices, or why it would wait.

Pods are asked about one after the other, each on top of those before it, as the scheduler does: the most important first, and among equals
those that wait already. Pods of a gang have their turn together, when it is that of the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import msgspec

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.pods import is_active, statuses_with
from drayman.api.resource import ResourceClaim
from drayman.api.storage import PersistentVolumeClaim
from drayman.api.volume_binding import default_class, with_class
from drayman.placement.decision.deciding import Decider
from drayman.placement.prices import MILLION, amount_of, label_faults
from drayman.placement.world import Objects, World
from drayman.reasons.planned import Planned
from drayman.reasons.reason import Reason
from drayman.reasons.refused_configs import refused_configs
from drayman.reasons.shared_network import unmovable_interfaces
from drayman.simulate.aftermath import afterwards
from drayman.simulate.copying import Wanted, objects_of
from drayman.simulate.expanding import MOST_PODS, ExpandedPod, Expansion, Workload
from drayman.simulate.group_claims import GroupClaims
from drayman.simulate.plan_report import PlannedCost, PlannedPod, PlannedWorkload, PlanReport
from drayman.simulate.plan_steps import STEPS, PlanContext, Step, planned_pods
from drayman.simulate.plan_turn import Turn
from drayman.workloads.volumes.ephemeral import claims_for


class TooManyPodsError(Exception):
    """The workloads have more pods than a plan is made for."""

    def __init__(self) -> None:
        super().__init__(f"this amounts to more than {MOST_PODS:,} pods, which is too many to plan")


def plan(
    world: World,
    wanted: Wanted,
    *,
    times: int = 1,
    pending_first: bool = True,
    steps: Sequence[Step] = STEPS,
) -> PlanReport:
    """Where the pods would go. The world is left unchanged; the plan is tried on a copy.

    With `pending_first`, pods that wait in the cluster already take their turns too.
    """
    return Planning(world, wanted, times).carried_out(steps, pending_first=pending_first)


class Planning:
    """A plan that is carried out once, and can then answer further questions."""

    def __init__(
        self,
        world: World,
        wanted: Wanted,
        times: int = 1,
        copies: Sequence[Wanted] | None = None,
    ) -> None:
        """`copies` are those to plan, if they are not what `wanted` says."""
        self._copies = list(wanted.copies(times)) if copies is None else list(copies)
        self._groups = GroupClaims(world.objects.joined(objects_of(self._copies)))
        self._world = world.with_objects(self._groups.objects)
        self._expansion = Expansion(self._world)
        self._decided: list[Turn] = []
        self._volume_claims: list[PersistentVolumeClaim] = []
        self._waiting: dict[tuple[str, str, Reason], Pod] = {}

    def carried_out(
        self, steps: Sequence[Step] = STEPS, *, pending_first: bool = True
    ) -> PlanReport:
        """Decide on all pods, once. Raises TooManyPodsError."""
        turns = list(islice(self._turns(), MOST_PODS + 1))
        if len(turns) > MOST_PODS:
            raise TooManyPodsError
        context = PlanContext(self._world, Decider(self._world.state).round(self._world.now))
        earlier = list(_pending(self._world)) if pending_first else []
        results: dict[int, PlannedPod] = {}
        in_order = sorted((*earlier, *turns), key=lambda turn: turn.rank)
        for turn in in_order:
            self._make_volume_claims(turn.pod)
        context.gangs.expect(in_order)
        for turn in in_order:
            result = results[id(turn)] = _decide(context, turn, steps)
            self._decided.append(turn)
            if result.waits is not None:
                context.waiting.add((result.namespace, result.name))
                self._note(turn, result.waits.reason)
        pods = tuple(self._with_refusals(results[id(turn)], turn) for turn in turns)
        return self._report(pods)

    def afterwards(self) -> tuple[World, Planned, list[Pod]]:
        """The cluster with the pods in their places, and one waiting pod for each workload (however many copies) and reason."""
        made = Objects(volume_claims=tuple(self._volume_claims))
        before = self._world.with_objects(self._world.objects.joined(made))
        world = afterwards(before, self._decided)
        planned = planned_pods(world.state, self._world.objects.claims)
        chosen = {pod.metadata.uid for pod in self._waiting.values()}
        return world, planned, [pod for pod in world.objects.pods if pod.metadata.uid in chosen]

    def _turns(self) -> Iterator[Turn]:
        for number, copy in enumerate(self._copies, 1):
            for workload in copy.workloads:
                for expanded in self._expansion.of(workload):
                    pod = self._groups.shared_with(expanded.pod)
                    yield Turn(replace(expanded, pod=pod), number)

    def _with_refusals(self, planned: PlannedPod, turn: Turn) -> PlannedPod:
        placement, pod = turn.placement, turn.pod
        made: tuple[ResourceClaim, ...] = ()
        if placement is not None:
            made = placement.all_claims
            known = {status.name: status.resource_claim_name for status in placement.generated}
            statuses = statuses_with(pod, known)
            status = msgspec.structs.replace(pod.status, resource_claim_statuses=statuses)
            pod = msgspec.structs.replace(pod, status=status)
        return msgspec.structs.replace(
            planned,
            refused_configs=refused_configs(self._world, pod, made),
            refused_devices=()
            if placement is None
            else unmovable_interfaces(self._world, placement.node, placement.all_devices),
        )

    def _make_volume_claims(self, pod: Pod) -> None:
        """Volume claims that belong to the pod alone are made as soon as the pod exists."""
        volumes = self._world.state.volumes
        for body in claims_for(pod):
            claim = codec.convert(PersistentVolumeClaim, body)
            if volumes.claim(claim.metadata.namespace, claim.metadata.name) is None:
                usual = default_class(self._world.objects.storage_classes)
                volumes.set_claim(claim if usual is None else with_class(claim, usual))
                self._volume_claims.append(claim)

    def _note(self, turn: Turn, reason: Reason) -> None:
        workload = turn.expanded.workload
        if turn.copy:
            key = (turn.pod.metadata.namespace, workload.original, reason)
            self._waiting.setdefault(key, turn.pod)

    def _report(self, pods: tuple[PlannedPod, ...]) -> PlanReport:
        incomplete = {pod.copy for pod in pods if pod.waits is not None}
        return PlanReport(
            fits=not incomplete,
            pods=pods,
            workloads=tuple(self._workloads(pods)),
            copies=len(self._copies),
            copies_fitting=len(self._copies) - len(incomplete),
            cost=_cost(pods, self._world.prices.currency),
            price_faults=tuple(map(str, label_faults(self._world.objects.nodes))),
            nodes=len(self._world.objects.nodes),
            unseen=self._world.unseen,
            evidence=dict(self._world.versions),
        )

    def _workloads(self, pods: Iterable[PlannedPod]) -> Iterator[PlannedWorkload]:
        made: dict[tuple[int, str, str], list[PlannedPod]] = {}
        for pod in pods:
            made.setdefault((pod.copy, pod.namespace, pod.workload), []).append(pod)
        for number, copy in enumerate(self._copies, 1):
            for workload in copy.workloads:
                namespace = workload.metadata.namespace
                own = made.get((number, namespace, workload.original), [])
                yield PlannedWorkload(
                    name=workload.original,
                    namespace=namespace,
                    pods=len(own),
                    fitting=sum(pod.waits is None for pod in own),
                    existing=len(self._expansion.existing(workload)),
                    cost_per_hour=_total(own),
                    note="" if own else self._expansion.why_none(workload),
                    copy=number,
                )


def _total(pods: Iterable[PlannedPod]) -> float | None:
    """What these pods cost by the hour, as far as that is known. Added up in millionths, so that it is exact."""
    known = [round(p.cost_per_hour * MILLION) for p in pods if p.cost_per_hour is not None]
    return amount_of(sum(known)) if known else None


def _cost(pods: Sequence[PlannedPod], currency: str) -> PlannedCost | None:
    total = _total(pods)
    if total is None:
        return None
    unpriced = sum(bool(pod.devices) and pod.cost_per_hour is None for pod in pods)
    return PlannedCost(per_hour=total, currency=currency, unpriced_pods=unpriced)


def _decide(context: PlanContext, turn: Turn, steps: Sequence[Step]) -> PlannedPod:
    for step in steps:
        result = step(context, turn)
        if result is not None:
            return result
    raise ValueError("no step decides about a pod; the last one must")


def _pending(world: World) -> Iterator[Turn]:
    """The pods that wait in the cluster, the oldest first. They are part of no copy."""
    pods = (pod for pod in world.objects.pods if not pod.spec.node_name and is_active(pod))
    for pod in sorted(pods, key=lambda p: (p.metadata.creation_timestamp or "", p.metadata.name)):
        yield Turn(ExpandedPod(pod, Workload(pod)), copy=0)
