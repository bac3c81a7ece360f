"""Reasons to wait that come before any node is looked at.

Some are in the pod itself: it is gated, or left to another scheduler. Others are in what it needs first: claims that do not exist yet, or
allocated devices that their driver has yet to make ready.
"""

from __future__ import annotations

from drayman.api.core import Pod
from drayman.api.pods import FAILED, is_finished, is_leaving
from drayman.api.resource import ResourceClaim
from drayman.api.times import seconds_of
from drayman.placement.claims import (
    BINDING_TIMEOUT_S,
    ClaimLack,
    ClaimsNotReadyError,
    claims_of,
    is_late,
    is_reserved_for,
    readiness,
)
from drayman.placement.decision.deciding import Round
from drayman.placement.decision.outcomes import (
    BeingWritten,
    Fitting,
    KeptOut,
    Lacking,
    NoNode,
    NoPlacement,
    NotCharged,
    PromisedAway,
    Unfinished,
)
from drayman.placement.demand import Demand
from drayman.placement.gangs.gang import GangKey
from drayman.placement.schedulers import LEASE_NAMESPACE, SERVED, AbsentScheduler, scheduler_of
from drayman.placement.state import ClusterState
from drayman.placement.world import World
from drayman.reasons.lost import (
    absent_drivers,
    kept_from_lost_claims,
    lost_by_pod,
    node_state,
    node_trouble,
    unallocated,
    without_devices,
)
from drayman.reasons.not_started import failed, not_started, overdue
from drayman.reasons.queues import kept_out
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import and_list, counted, lasting


def held_back(world: World, pod: Pod, schedulers: frozenset[str] = SERVED) -> Headline | None:
    """Why there is nothing to decide about a pod, whatever its claims are; None if there is."""
    return _settled(world, pod) or held_by_itself(pod, schedulers) or _said_not_charged(pod)


def before_nodes(world: World, outcome: NoPlacement | Fitting, pod: Pod) -> Headline | None:
    """Why a pod about which this was decided waits for something else first; None if it is for nodes to take or refuse it."""
    match outcome:
        case Lacking(error):
            return lacking(world.state, pod, error)
        case NotCharged(message):
            return not_charged(message)
        case PromisedAway(claim, nomination):
            return given_back(claim, nomination.pod)
        case KeptOut(demand, withheld):
            return _of_the_devices(world, demand) or kept_out(withheld, world.state)
        case NoNode(demand, _) | Fitting(demand, _):
            return _of_the_devices(world, demand)
        case BeingWritten() | Unfinished():
            return None


def before_a_demand(
    state: ClusterState, pod: Pod, why: NoPlacement | None, *, knows_templates: bool = True
) -> Headline | None:
    """What a pod whose demand is not known waits for; None if that is not worth a word. `why` is None if it is not up for a decision."""
    match why:
        case None:
            return held_by_itself(pod)
        case Lacking(error):
            return lacking(state, pod, error, knows_templates=knows_templates)
        case NotCharged(message):
            return not_charged(message)
        case PromisedAway(claim, nomination):
            return given_back(claim, nomination.pod)
        case KeptOut(_, withheld):
            return kept_out(withheld, state)
        case BeingWritten() | Unfinished() | NoNode():
            return None


def demand_of(world: World, round_: Round, pod: Pod) -> Demand | Headline:
    """What a pod asks of nodes, or why none is to be looked for, or no longer. Asks no node."""
    own = held_back(world, pod)
    if own is not None:
        return own
    try:
        demand = round_.demand(pod)
    except ClaimsNotReadyError as error:
        return lacking(world.state, pod, error)
    early = _of_the_devices(world, demand)
    if early is not None:
        return early
    withheld = world.state.queues.withheld((pod.metadata.uid,))
    return demand if withheld is None else kept_out(withheld, world.state)


def named_in_vain(world: World, pod: Pod) -> Headline | None:
    """Why a pod that is to be created with its node named, so that no scheduler sees it, would not start there."""
    node = pod.spec.node_name
    trouble = node_trouble(world, node, f"The pod names node {node} itself")
    if trouble is not None:
        return trouble
    try:
        return without_devices(pod, claims_of(pod, world.state.find_claim))
    except ClaimsNotReadyError as error:
        why = lacking(world.state, pod, error)
        if why.reason is not Reason.CLAIM_PENDING:
            return why
        return unallocated(pod, f"the claim that is made from template {error.name} gets none")


def lacking(
    state: ClusterState, pod: Pod, error: ClaimsNotReadyError, *, knows_templates: bool = True
) -> Headline:
    """What is missing for a pod that cannot be scheduled for lack of a claim.

    A state that does not follow templates cannot distinguish a missing template from one that is yet to be used.
    """
    name = error.name
    match error.lack:
        case ClaimLack.CLAIM:
            return Headline.of(Reason.CLAIM_MISSING, _sentence(error))
        case ClaimLack.DELETING:
            return Headline.of(
                Reason.CLAIM_DELETING,
                f"Claim {name} is being deleted; no pod can start to use it.",
            )
        case ClaimLack.SHARE:
            return Headline.of(Reason.NO_SUCH_DEVICE, _sentence(error))
        case ClaimLack.SHARE_INVALID:
            return Headline.of(Reason.CLAIM_INVALID, _sentence(error))
        case ClaimLack.CONTESTED:
            return Headline.of(Reason.DEVICES_IN_USE, _sentence(error))
        case ClaimLack.FOREIGN:
            return Headline.of(
                Reason.CLAIM_FOREIGN,
                f"Claim {name} has the name of the pod's claim, but was created for another owner.",
            )
        case ClaimLack.GROUP:
            return Headline.of(
                Reason.POD_GROUP_MISSING,
                f"Pod group {name} does not exist, so it is not known which claims the pod shares.",
            )
        case ClaimLack.GENERATED:
            if knows_templates and state.find_template(pod.metadata.namespace, name) is None:
                return Headline.of(
                    Reason.TEMPLATE_MISSING,
                    f"{_sentence(error)[:-1]}, which does not exist in namespace"
                    f" {pod.metadata.namespace}.",
                )
            return Headline.of(Reason.CLAIM_PENDING, _sentence(error))


def not_charged(message: str) -> Headline:
    """Why a pod waits that no quota covers."""
    return Headline.of(Reason.NOT_CHARGED, f"No quota covers the pod: {message}")


def _said_not_charged(pod: Pod) -> Headline | None:
    """What the scheduler has said of a pod that no quota covers: only where queues are at work it is known what covers which pod."""
    title = f"{Reason.NOT_CHARGED.title}: "
    for condition in pod.status.conditions:
        if condition.type_ == "PodScheduled" and condition.status == "False":
            if not condition.message.startswith(title):
                return None
            return Headline.of(Reason.NOT_CHARGED, condition.message.removeprefix(title))
    return None


def given_back(claim: ResourceClaim, pod: Pod) -> Headline:
    """Why a claim whose devices another pod is about to get cannot be used."""
    return Headline.of(
        Reason.DEVICES_IN_USE,
        f"Claim {claim.metadata.name} gives back its devices: they are kept for pod"
        f" {pod.metadata.namespace}/{pod.metadata.name}, which preempted the pods that had them.",
    )


def others_leave(gang: GangKey, pods: int) -> Headline:
    """Why a gang waits for which others were preempted."""
    title = str(gang)
    return Headline.of(
        Reason.GANG_TOO_LARGE,
        f"{title[0].upper()}{title[1:]}: room is being made. {counted(pods, 'pod')} that it preempted"
        f" {'has' if pods == 1 else 'have'} yet to go, or to give back devices.",
    )


def costly_claims() -> Headline:
    """Why a pod waits whose selectors are still being evaluated, or for whose devices a long search goes on."""
    return Headline.of(
        Reason.SEARCH_LIMIT,
        "Its claims are costly: their selectors are still being evaluated on the devices of the cluster, or a long search goes on.",
    )


def _settled(world: World, pod: Pod) -> Headline | None:
    """For a pod that no longer waits for a node."""
    status, node = pod.status, pod.spec.node_name
    if status.phase == FAILED:
        return failed(pod)
    if is_finished(pod):
        return Headline.of(Reason.RUNS, f"The pod has finished: {status.phase}.")
    if is_leaving(pod):
        where = f" and still on node {node}" if node else ""
        trouble = node_state(world, node) if node else ""
        which = f", which {trouble}" if trouble else ""
        stuck = ""
        if node and not trouble and _is_overdue(world, pod):
            stuck = f" {overdue(pod, absent_drivers(world, pod))}"
        return Headline.of(Reason.TERMINATING, f"The pod is being deleted{where}{which}.{stuck}")
    if node:
        early = lost_by_pod(world, pod) or not_started(pod)
        kept = "".join(f" {sentence}" for sentence in kept_from_lost_claims(pod))
        return early or Headline.of(Reason.RUNS, f"The pod is on node {node}.{kept}")
    return None


def _is_overdue(world: World, pod: Pod) -> bool:
    """Whether a pod that is being deleted has had all of its time to end, which its deletion timestamp includes."""
    end = seconds_of(pod.metadata.deletion_timestamp)
    return end is not None and end < world.now


def held_by_itself(pod: Pod, schedulers: frozenset[str] = SERVED) -> Headline | None:
    """Why no scheduler of these names looks at a pod without a node."""
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if gates:
        noun = "a scheduling gate" if len(gates) == 1 else f"{len(gates)} scheduling gates"
        return Headline.of(Reason.GATED, f"The pod is held back by {noun}: {and_list(gates)}.")
    return None if scheduler_of(pod) in schedulers else left_to_another(pod, schedulers)


def left_to_another(pod: Pod, schedulers: frozenset[str]) -> Headline:
    """Why a scheduler of these names does not look at a pod that names none of them."""
    served = and_list([f'"{name}"' for name in sorted(schedulers)])
    text = f'The pod is left to the scheduler "{scheduler_of(pod)}"; Drayman serves {served}.'
    return Headline.of(Reason.OTHER_SCHEDULER, text)


def unscheduled(world: World, pod: Pod, found: Headline) -> Headline:
    """What there is to say about a pod that no scheduler evaluates: that is why it waits, unless something else is in its way too."""
    if found.reason.kind is None and found.reason is not Reason.FITS:
        return found
    absent = world.absent_scheduler(pod)
    if absent is None or found.reason is Reason.OTHER_SCHEDULER:
        return found
    text = absence(absent)
    if found.reason is Reason.FITS:
        return Headline.of(Reason.NO_SCHEDULER, f"{text} {found.sentence}")
    return Headline.of(found.reason, f"{found.sentence} {text}")


def absence(absent: AbsentScheduler) -> str:
    """The sentence about a scheduler that does not run."""
    said = f'No scheduler runs for pods with the schedulerName "{absent.name}"'
    if absent.lease is None:
        return f"{said}: none holds a Lease in {LEASE_NAMESPACE}, and none has evaluated the pod."
    lease = absent.lease
    which = f"Lease {lease.metadata.namespace}/{lease.metadata.name}"
    by = f" by {lease.spec.holder_identity}" if lease.spec.holder_identity else ""
    return f"{said}: {which} was last renewed at {lease.spec.renew_time or 'no time'}{by}."


def _of_the_devices(world: World, demand: Demand) -> Headline | None:
    """For devices that the pod has been given, but that are not ready yet."""
    for claim in demand.held:
        # What a plan has only just reserved for the pod's group has not been given to the pod.
        if is_reserved_for(claim, demand.pod) and not world.state.is_under_way(claim):
            headline = unready(claim, world.now)
            if headline is not None:
                return headline
    return None


def unready(
    claim: ResourceClaim, now: float, timeout_s: float = BINDING_TIMEOUT_S
) -> Headline | None:
    """What keeps the devices of a claim from being used; None if they are ready, or there are none."""
    state, name = readiness(claim), claim.metadata.name
    if state.failure:
        return Headline.of(Reason.BINDING_FAILED, f"Claim {name}: {state.failure}.")
    if not state.pending:
        return None
    has = f"Claim {name} has {counted(len(state.pending), 'device')} that the driver has"
    which = and_list(state.pending)
    if is_late(claim, now, timeout_s):
        late = f"{has} not made ready within {lasting(timeout_s)}: {which}."
        return Headline.of(Reason.BINDING_FAILED, late)
    return Headline.of(Reason.DEVICES_NOT_READY, f"{has} yet to make ready: {which}.")


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
